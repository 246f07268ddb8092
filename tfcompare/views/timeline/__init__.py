"""The timeline: which hosts and steps are on the axis, and what is said of them."""
