"""Rows of image and sound models."""
