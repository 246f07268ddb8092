"""The comparison of several candidates."""
