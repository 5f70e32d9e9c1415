"""What a scan found: readings, verdict, counts and provenance."""

from isotrope.findings.document import FORMAT
from isotrope.findings.findings import Findings
from isotrope.findings.reading import Reading, Statement, Verdict, in_layer_order

__all__ = ["FORMAT", "Findings", "Reading", "Statement", "Verdict", "in_layer_order"]
