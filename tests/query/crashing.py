"""Stands in for DuckDB's process: it says something, and breaks."""

import os

os.write(1, b'{"wants": ')
os.abort()
