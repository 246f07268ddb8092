"""How the value of an instruction is divided among devices, in XLA's notation."""

from __future__ import annotations

from itertools import islice

from tfcompare.hlo.proto_fields import fields, unpacked

SHARDING = 40
"""The field of an instruction with its `OpSharding` (`xla/xla_data.proto`)."""
_TYPE, _TILES, _DEVICES, _PARTS, _REPLICATES_LAST, _LAST_TILES = 1, 3, 4, 5, 6, 8
_IOTA, _TRANSPOSED = 9, 10
_MAXIMAL, _TUPLE, _OTHER = 1, 2, 3
_WORDS = {0: "replicated", 4: "manual", 5: "unknown", 6: "unreduced"}
_MOST_PARTS = 20  # of a tuple, and listed devices: more say no more to a reader
_DEEPEST = 3


def sharding_text(message: memoryview, depth: int = 0) -> str:
    """`replicated`, `devices=[2,1,2]<=[4] last_tile_dim_replicate`, `{…}, {…}` for a tuple: what XLA writes in braces.

    Where the sharding came from in the framework's program is left out. Raises `NotAProfile` for damage.
    """
    found = list(islice(fields(message), 10_000))
    kind = next((content for number, content in found if number == _TYPE and isinstance(content, int)), 0)
    if kind == _TUPLE and depth < _DEEPEST:
        parts = [part for number, part in found if number == _PARTS and not isinstance(part, int)]
        texts = [f"{{{sharding_text(part, depth + 1)}}}" for part in parts[:_MOST_PARTS]]
        return ", ".join([*texts, "…"] if len(parts) > _MOST_PARTS else texts)

    def numbers(wanted: int) -> list[int]:
        return unpacked(content for number, content in found if number == wanted)

    if kind == _MAXIMAL:
        return f"maximal device={_listed(numbers(_DEVICES))}"
    if kind != _OTHER:
        return _WORDS.get(kind, f"sharding of type {kind}")

    devices, iota, transposed = numbers(_DEVICES), numbers(_IOTA), numbers(_TRANSPOSED)
    text = f"devices=[{_listed(numbers(_TILES))}]"
    if iota:
        text += f"<=[{_listed(iota)}]"
        if transposed != sorted(transposed):
            text += f"T({_listed(transposed)})"
    elif devices:
        text += _listed(devices)
    if any(numbers(_REPLICATES_LAST)):
        text += " last_tile_dim_replicate"
    if last := numbers(_LAST_TILES):
        text += f" last_tile_dims={{{', '.join(_WORDS.get(one, str(one)) for one in last[:_MOST_PARTS])}}}"
    return text


def _listed(numbers: list[int]) -> str:
    shown = list(map(str, numbers[:_MOST_PARTS]))
    return ",".join([*shown, "…"] if len(numbers) > _MOST_PARTS else shown)
