"""The classes that declare tables and their columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from inspect import cleandoc
from typing import TYPE_CHECKING, Literal, get_args

from tfcompare.errors import Unknown

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["key", "sum", "mean", "min", "max", "level", "time_point", "flag", "text"]
"""What a diff does with a column: sums are given per step; flags and texts are only shown for both sides."""

ALL_HOSTS = "all"
"""`host` of a row that is summed over hosts."""

IDLE = "IDLE"
"""`op_type` and `op_name` of time in which no op ran (TensorBoard's name)."""

HOST = "Host"
DEVICE = "Device"
SPARSE_CORE = "SparseCore"
"""A part of a TPU chip that runs ops beside its TensorCore, which is the device."""


def place_word(host_or_device: str) -> str:
    """What a sentence calls a value of `host_or_device`: `host`, `device` or `SparseCore`."""
    return host_or_device if host_or_device == SPARSE_CORE else host_or_device.lower()


SIDES = ("baseline", "candidate")
"""The two sides of a diff: a metric's columns are `<metric>_baseline` and `<metric>_candidate`."""


@dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    dtype: str
    kind: Kind
    unit: str
    label: str
    meaning: str

    @property
    def is_number(self) -> bool:
        """Whether a diff of this column has a delta and a ratio."""
        return self.kind in ("sum", "mean", "min", "max", "level")


@dataclass(frozen=True)
class Table:
    """A table's columns, in order.

    `headline` is the metric that verdicts on rows are about; None if rows get no verdict.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    headline: str | None = None
    has_diff: bool = True

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns that identify a row."""
        return tuple(c.name for c in self.columns if c.kind == "key")

    @property
    def metrics(self) -> tuple[Column, ...]:
        """The columns that are no keys."""
        return tuple(c for c in self.columns if c.kind != "key")

    @property
    def column_names(self) -> list[str]:
        """The names of all columns, in order."""
        return [c.name for c in self.columns]

    def column(self, name: str) -> Column:
        """The column of that name. Raises `Unknown` if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise Unknown(f"column of {self.name}", name, self.column_names)

    def conform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """`frame` with exactly this table's columns, in order, in their declared dtypes."""
        names = self.column_names
        chosen = frame if list(frame.columns) == names else frame[names]
        pairs = zip(self.columns, chosen.dtypes, strict=True)
        others = {column.name: column.dtype for column, dtype in pairs if dtype != column.dtype}
        return chosen.astype(others) if others else chosen

    def empty(self) -> pd.DataFrame:
        """An empty frame with this table's columns."""
        return _empty(self.columns).copy()


@cache
def _empty(columns: tuple[Column, ...]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({c.name: pd.Series(dtype=c.dtype) for c in columns})


_DTYPES = {"key": "str", "text": "str", "flag": "bool"}
"""Of a column that names no other; those of numbers have `float64`."""
_COLUMN = re.compile(r"(\w+) (\w+)(?: ([Ii]nt64|[Ff]loat64|datetime64\[.+\]))?(?: (\S+))? \| (.+?) \| (.+)")
_KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}


def column(text: str) -> Column:
    """The column that a text declares: name, kind, dtype (if not the usual one of the kind), unit (if any), label and
    meaning, as in `size_bytes level int64 bytes | Size | Bytes on disk of all host files.`"""
    declared = _COLUMN.fullmatch(" ".join(text.split()))
    if declared is None:
        raise ValueError(f"expected a column as `name kind dtype unit | Label | Meaning.`, found {text!r}")
    name, kind, dtype, unit, label, meaning = declared.groups()
    return Column(name, dtype or _DTYPES.get(kind, "float64"), _KINDS[kind], unit or "", label, meaning)


def columns(text: str) -> tuple[Column, ...]:
    """The columns that the lines of a text declare; a line that is indented more goes on with the one above it."""
    return tuple(map(column, re.split(r"\n(?! )", cleandoc(text))))


HOST_KEY = column(f"host key | Host | Host the row comes from; `{ALL_HOSTS}` when summed over hosts.")
SIDE_KEY = column(f"""
    host_or_device key | Host or device | `{HOST}`, `{DEVICE}`, or `{SPARSE_CORE}` (a part of a TPU chip beside what is
        the device): where the op ran.
""")
OP_TYPE_KEY = column("op_type key | Op type | Kind of op, e.g. `Conv2D`; `Unknown` where the profile names none.")
OP_NAME_KEY = column("op_name key | Op | Name of the op in its graph, e.g. `model/dense/MatMul`.")
STEP_KEY = column("step key int64 | Step number | The step's number as the program gave it, else its position.")
