"""The Series page: a metric of many runs in order, when it changed, and which ops explain that."""
