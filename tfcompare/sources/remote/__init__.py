"""Logdirs behind URLs, through fsspec: what lies there, and a copy of its files in a cache on this machine."""
