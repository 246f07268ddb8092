"""Memory: its peak, and its use over time."""
