"""Frames stored on disk: this machine's cache, and stores of many runs."""
