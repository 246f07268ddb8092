"""The contents of the pages: one or more modules per page."""
