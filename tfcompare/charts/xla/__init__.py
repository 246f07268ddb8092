"""Charts of compiled programs."""
