"""The input pipeline: whether steps wait for it, and its ops."""
