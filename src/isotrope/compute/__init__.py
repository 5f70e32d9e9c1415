"""Threads and memory."""
