"""Reproducible scaling laws of dense retrieval."""
