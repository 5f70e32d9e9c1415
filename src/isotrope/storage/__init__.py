"""Files on disk: atomic writes, locks, checksums, provenance, and what must not be written down."""
