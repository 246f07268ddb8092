"""The flame graph: a tree of times on both sides as bars below bars, coloured by the change."""
