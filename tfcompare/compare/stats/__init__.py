"""Confidence intervals of changes, and verdicts on whether they are significant."""
