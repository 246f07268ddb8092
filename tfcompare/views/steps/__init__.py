"""The steps of runs: what the headline says of them, and why they take longer or less time."""
