"""Hostile profiles by the thousand, through everything that looks at a run: `python -m tests.fuzz`."""
