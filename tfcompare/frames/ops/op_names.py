"""Parses the name of an event into the op it represents, by xprof's rules (`docs/numbers.md`, "From an event's
name")."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from tfcompare.xspace import XSpace
from tfcompare.xspace.space import once_per_space

_TF_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_./>-]*")
_TF_TYPE = re.compile(r"[A-Z_][A-Za-z0-9_]*")
_JAX_TYPE = re.compile(r"[a-z_][a-z0-9_]*(\[.*\])?", re.DOTALL)
_NUMBER_AT_END = re.compile(r"_\d+$")
_COPIES = ("MemcpyHToD", "MemcpyDToH", "MemcpyDToD", "MemcpyHToH")

DATASET = "Dataset"
"""Type of the ops of a tf.data iterator."""

EAGER_EXECUTION = "EagerLocalExecute: "
"""Name prefix of the event in which TensorFlow runs an op called from Python: `EagerLocalExecute: MatMul`."""

_INPUT_TYPES = ("IteratorGetNext", "MultiDeviceIteratorGetNext")

UNKNOWN = "Unknown"
"""Type of a device op that the profile does not name."""


class Op(NamedTuple):
    """An op's name and type."""

    name: str
    type: str


def eager_op(full_name: str) -> Op | None:
    """The op in the name of an eager execution, with the event's full name as op name; None for other events.

    Fetching the next element of tf.data does not count: that is input time.
    """
    kind = full_name.removeprefix(EAGER_EXECUTION)
    if kind == full_name or kind in _INPUT_TYPES or not _TF_TYPE.fullmatch(kind):
        return None
    return Op(full_name, kind)


@once_per_space
def named_ops(space: XSpace) -> list[Op | None]:
    """The op in the name of each event metadata entry; None if it is no op's, or the entry has no events."""
    op_of = cache(parse_op)  # planes have their own entries for the same names
    used = zip(space.metadata_names.tolist(), space.has_events.tolist(), strict=True)
    return [op_of(name) if has_events else None for name, has_events in used]


def parse_op(full_name: str) -> Op | None:
    """The op in a name like `name:type`; None if the name is no op's."""
    name, colon, kind = full_name.partition(":")
    if not colon:
        lower = full_name.lower()
        return next((Op(full_name, copy) for copy in _COPIES if lower.startswith(copy.lower())), None)
    if name == "Iterator":
        return Op(full_name, DATASET)
    if _TF_NAME.fullmatch(name) and _TF_TYPE.fullmatch(kind):
        return Op(name, kind)
    derived = kind or _NUMBER_AT_END.sub("", name.rpartition("/")[2])
    if _JAX_TYPE.fullmatch(derived):
        return Op(name, derived.partition("[")[0])
    return None if kind else Op(name, derived)
