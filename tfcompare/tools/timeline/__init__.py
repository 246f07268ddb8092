"""Timelines of runs: aligned, laid out in rows, paired span by span, and cut to what fits on a screen."""
