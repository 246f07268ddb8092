"""What pages show, as blocks: data that every renderer shows in its own way."""

NAMES = (
    "overview", "op_stats", "kernel_stats", "memory", "input_pipeline", "tf_data", "timeline", "xla", "hosts",
)  # fmt: skip
"""The views, in the order of their pages. Each is a module with a `VIEW`."""
MORE = ("candidates", "op")
"""Those without a page of their own."""
