"""Rows of text models: tokens, words, or one row for each text."""
