"""One module or more a page."""
