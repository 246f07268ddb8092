"""Which row of the candidate is which row of the baseline, and how sure that is."""
