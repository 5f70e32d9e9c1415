"""Threads, arrays of numpy and torch, and memory."""
