"""Ops and kernels of a profile."""
