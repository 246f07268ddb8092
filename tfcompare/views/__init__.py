"""What pages show, as blocks: data that every renderer shows in its own way."""

MODULES = {
    "overview": "overview",
    "op_stats": "op_stats",
    "kernel_stats": "kernel_stats",
    "memory": "memory.memory",
    "input_pipeline": "input.input_pipeline",
    "tf_data": "input.tf_data",
    "timeline": "timeline.view",
    "xla": "xla.xla",
    "hosts": "hosts.hosts",
    "candidates": "candidates",
    "op": "op",
}
"""Each view's module within this package; it has a `VIEW`."""
MORE = ("candidates", "op")
"""The views without a page of their own."""
NAMES = tuple(name for name in MODULES if name not in MORE)
"""The others, in the order of their pages."""
