"""Reproducible scaling laws of dense retrieval."""

__version__ = "0.1.0"
