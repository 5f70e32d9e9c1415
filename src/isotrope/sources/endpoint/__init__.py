"""Rows from an embedding endpoint: one row for each text, over HTTP, as the OpenAI API defines it."""
