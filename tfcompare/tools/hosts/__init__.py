"""Hosts beside each other: figures, stragglers, clocks, and what made a host slow."""
