"""Puts runs into a store: many processes or machines read the host files, but only the new ones."""
