"""Matches rows of the candidate to rows of the baseline, and grades how certain each match is."""
