"""The verdict on a space in plain words, and the table of thresholds behind it."""
