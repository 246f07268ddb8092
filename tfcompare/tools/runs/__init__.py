"""Many runs at once: their list, their summary and series of a metric."""
