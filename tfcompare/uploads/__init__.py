"""Profiles that arrive by the browser: checked, unpacked and kept in the user's data folder."""
