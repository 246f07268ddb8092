"""Rows of a diff in groups: sums, verdicts, kernels of an op, name scopes."""
