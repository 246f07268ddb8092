"""The XLA page."""
