"""The Overview: the steps of runs, and why they take longer or less time."""
