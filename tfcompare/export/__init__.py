"""Exports: CSV (and later a report)."""
