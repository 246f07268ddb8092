"""What ran of the XLA programs of a host, and the memory that they need."""
