"""The Kernel stats page."""
