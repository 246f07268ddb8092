"""The pages Op stats and of a single op."""
