"""Text formats: names of layers and rows, printable text, CSV, and the facts of a source."""
