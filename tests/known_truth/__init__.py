"""Profiles of CPU programs whose true times are known by construction: README.md says what is true of each."""
