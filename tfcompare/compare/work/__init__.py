"""What changed in the work that two programs do: on which shapes, how much of it, and at what rate."""
