"""Blocks as HTML, Markdown, terminal text and notebook cells."""
