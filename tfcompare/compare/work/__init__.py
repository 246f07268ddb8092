"""What changed in the work that two programs do, apart from how long it takes."""
