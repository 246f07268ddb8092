"""The Timeline page: two traces on one axis."""
