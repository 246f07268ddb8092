"""Runs put into a store: their host files read on many processes or machines, each only where it is new."""
