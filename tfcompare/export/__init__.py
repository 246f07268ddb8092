"""What leaves tfcompare: CSV (and later a report)."""
