"""Text formats: names of layers and rows, printable text, CSV and JSON."""
