"""SQL over the tables of runs."""
