"""Ingesting captures into a store over many processes and machines. Everything else works without this package."""
