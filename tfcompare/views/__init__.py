"""What pages show, as blocks: data that every renderer shows in its own way."""

MODULES = {
    "overview": "steps.view",
    "op_stats": "ops.view",
    "kernel_stats": "kernels.view",
    "memory": "memory.view",
    "input_pipeline": "input.view",
    "tf_data": "tf_data.view",
    "timeline": "timeline.view",
    "xla": "xla.view",
    "hosts": "hosts.view",
    "candidates": "candidates.view",
    "op": "ops.op",
}
"""Each view's module within this package; it has a `VIEW`."""
MORE = ("candidates", "op")
"""The views without a page of their own."""
NAMES = tuple(name for name in MODULES if name not in MORE)
"""The others, in the order of their pages."""
