"""Texts from files, folders, tables, datasets and pipes."""
