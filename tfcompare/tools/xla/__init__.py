"""Compiled programs: their instructions, buffers, text and compilations."""
