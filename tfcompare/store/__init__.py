"""Frames kept for the next time, and of many runs in one place."""
