"""Evidence that helps to match ops besides their names: allocated shapes, kernel launches and order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

import pandas as pd

from tfcompare import schema

Place = tuple[int, int]

_BYTES_OF_TEXT, _BYTES_OF_PLACE = 100, 250  # of a text besides its characters; of an entry of two numbers
_LAUNCH = ["grid_dim", "block_dim"]


@dataclass(frozen=True, eq=False)
class OpEvidence:
    """Evidence about the ops of some hosts.

    `names` are the names of all ops. By op name: `shapes` are the distinct shapes that it allocated; `launches` the
    grid and block sizes of its kernels; `places` its first and last position in the order in which the ops of a step
    start, on devices if there are any, else on the host. `fusions` are the names of ops that XLA ran as fusions, which
    may do the work of other ops too.
    """

    names: frozenset[str] = frozenset()
    shapes: Mapping[str, str] = field(default_factory=dict)
    launches: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    fusions: frozenset[str] = frozenset()

    @cached_property
    def memory_bytes(self) -> int:
        """Roughly the memory used, in bytes."""
        texts = chain(self.names, self.fusions, self.shapes.values(), self.launches.values())
        return sum(len(text) + _BYTES_OF_TEXT for text in texts) + _BYTES_OF_PLACE * len(self.places)


def op_evidence(ops: pd.DataFrame, kernels: pd.DataFrame, instructions: pd.DataFrame) -> OpEvidence:
    """The evidence of some hosts, given their tables `op_parts`, `kernel_stats` and `hlo_ops`."""
    ordered = ops[ops["earliest"] >= 0]
    on_device = ordered["host_or_device"] == schema.DEVICE
    places = (
        (ordered[on_device] if on_device.any() else ordered)
        .groupby("op_name")
        .agg(earliest=("earliest", "min"), latest=("latest", "max"))
    )
    shapes = ops[ops["shapes"] != ""].drop_duplicates("op_name")
    launched = kernels[["op_name", *_LAUNCH]].drop_duplicates()
    fusions = instructions.loc[instructions["category"].str.endswith("fusion"), "op_name"]
    launches = (launched["grid_dim"] + "/" + launched["block_dim"]).groupby(launched["op_name"])
    return OpEvidence(
        frozenset(ops["op_name"]),
        dict(zip(shapes["op_name"], shapes["shapes"], strict=True)),
        {str(name): " ".join(sorted(texts)) for name, texts in launches if name},
        dict(zip(places.index, zip(places["earliest"].tolist(), places["latest"].tolist(), strict=True), strict=True)),
        frozenset(name for name in fusions.unique() if name),
    )
