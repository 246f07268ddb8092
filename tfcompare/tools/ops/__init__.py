"""Ops, kernels and gaps: rows, shares, key figures and sentences."""
