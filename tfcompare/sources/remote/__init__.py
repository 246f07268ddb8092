"""Logdirs behind URLs, through fsspec: lists them, and copies their files into a cache on this machine."""
