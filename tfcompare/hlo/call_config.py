"""What the backend's configuration of a custom call says of the computation."""

from __future__ import annotations

import json

_AUTOTUNED = ("__cublas$", "__cudnn$")
"""Libraries of which XLA chooses an algorithm by measuring: it may choose another one at each compilation."""
_CHOSEN = frozenset({"algorithm", "selected_algorithm", "autotune_workspace_size"})
_PART = "_backend_config"
_CALLBACK = "callback"
"""In targets of calls into Python, whose configuration may be an address in memory."""


def computed_config(target: str, config: memoryview | None) -> bytes:
    """The configuration of a custom call, without what differs between two compilations of one program.

    It decides what is computed: the triangle of a LAPACK routine, the scale of a product, the code of a Pallas kernel.
    Empty without one.
    """
    if config is None or _CALLBACK in target:
        return b""
    if not target.startswith(_AUTOTUNED):
        return config.tobytes()
    try:
        found = json.loads(config.tobytes())
    except (ValueError, RecursionError):
        return b""
    parts = found.items() if isinstance(found, dict) else ()
    kept = {
        name: {key: value for key, value in part.items() if key not in _CHOSEN}
        for name, part in parts
        if name.endswith(_PART) and isinstance(part, dict)
    }
    return json.dumps(kept, sort_keys=True).encode() if kept else b""
