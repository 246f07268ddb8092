"""Every table's columns, declared once: name, dtype, kind, unit, label, meaning.

Frames, diffs, the command line, CSV headers and pages all read the columns from here. Times are microseconds as float64
unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tfcompare.errors import Unknown

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["key", "sum", "mean", "min", "max", "level", "time_point", "flag", "text"]
"""What a diff may do with a column: sums are put per step, flags and texts are only laid side by side."""

ALL_HOSTS = "all"
"""The `host` of a row that was summed over hosts."""

IDLE = "IDLE"
"""`op_type` and `op_name` of the time in which no op ran (TensorBoard's name for it)."""

HOST = "Host"
DEVICE = "Device"


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
    """A table's columns in their order, and the one metric that a verdict on a row judges (None: rows get none)."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    headline: str | None = None
    has_diff: bool = True

    @property
    def keys(self) -> tuple[str, ...]:
        """Names of the columns that tell rows apart."""
        return tuple(c.name for c in self.columns if c.kind == "key")

    @property
    def metrics(self) -> tuple[Column, ...]:
        """The columns that are no keys."""
        return tuple(c for c in self.columns if c.kind != "key")

    @property
    def column_names(self) -> list[str]:
        """All names, in order."""
        return [c.name for c in self.columns]

    def column(self, name: str) -> Column:
        """Raises `Unknown` for a name that the table does not have."""
        for column in self.columns:
            if column.name == name:
                return column
        raise Unknown(f"column of {self.name}", name, self.column_names)

    def conform(self, frame: pd.DataFrame) -> pd.DataFrame:
        """`frame` with exactly this table's columns, in order, in their declared dtypes."""
        return frame[self.column_names].astype({c.name: c.dtype for c in self.columns})

    def empty(self) -> pd.DataFrame:
        """A frame of no rows with this table's columns."""
        import pandas as pd

        return pd.DataFrame({c.name: pd.Series(dtype=c.dtype) for c in self.columns})


def _key(name: str, label: str, meaning: str, dtype: str = "str") -> Column:
    return Column(name, dtype, "key", "", label, meaning)


def _text(name: str, label: str, meaning: str) -> Column:
    return Column(name, "str", "text", "", label, meaning)


def _level(name: str, unit: str, label: str, meaning: str, dtype: str = "float64") -> Column:
    return Column(name, dtype, "level", unit, label, meaning)


def _sum(name: str, unit: str, label: str, meaning: str, dtype: str = "float64") -> Column:
    return Column(name, dtype, "sum", unit, label, meaning)


_HOST = _key("host", "Host", f"Host the row comes from; `{ALL_HOSTS}` when summed over hosts.")
_SIDE = _key("host_or_device", "Host or device", f"`{HOST}` or `{DEVICE}`: where the op ran.")
_OP_TYPE = _key("op_type", "Op type", "Kind of op, e.g. `Conv2D`; `Unknown` where the profile names none.")
_OP_NAME = _key("op_name", "Op", "Name of the op in its graph, e.g. `model/dense/MatMul`.")
_STEP = _key("step", "Step", "The step's number as the program gave it, else its position.", "int64")

RUN_INFO = Table(
    "run_info",
    "One row on the run: where and when it was recorded, and how long its steps are.",
    (
        _key("run", "Run", "The run's identity: its path relative to the place it was found under."),
        _level("hosts", "", "Hosts", "Number of hosts that were read.", "int64"),
        _text("host_names", "Host names", "The hosts' names, separated by commas."),
        _text("framework", "Framework", "What recorded the profile, judged by its events: TensorFlow, JAX or empty."),
        _text("device_type", "Device type", "`CPU`, `GPU` or `TPU`: where the run computed."),
        _text("device_name", "Device", "The device's model as far as the profile tells it."),
        _level(
            "device_count", "", "Devices", "Devices (GPUs, TPU cores) with recorded events, over all hosts.", "int64"
        ),
        Column("start_time", "datetime64[us, UTC]", "time_point", "UTC", "Recorded", "When the profile was started."),
        _text(
            "start_time_source", "Time from", "`profile`, `folder name` or `file time`: where `start_time` comes from."
        ),
        _level("duration_ms", "ms", "Profile length", "From the first event to the end of the last."),
        _level("step_count", "", "Steps", "Steps found; of several hosts, the most.", "int64"),
        _level("steps_included", "", "Steps counted", "Steps that the figures rest on.", "int64"),
        _text("step_source", "Steps from", "What marked the steps; `whole profile` when nothing did."),
        _level(
            "step_time_ms_median", "ms", "Step time (median)", "Median over the included steps of the slowest host."
        ),
        _level("step_time_ms_mean", "ms", "Step time (mean)", "Mean over the included steps of the slowest host."),
        _level("size_bytes", "bytes", "Size", "Bytes on disk of all host files.", "int64"),
        _text("warnings", "Warnings", "What the profiler or tfcompare has to remark, separated by `; `."),
    ),
)

STEPS = Table(
    "steps",
    "One row for each step on each host.",
    (
        _HOST,
        _STEP,
        Column("start_us", "float64", "time_point", "µs", "Start", "Start of the step since the start of the profile."),
        _level("duration_us", "µs", "Step time", "Length of the step."),
        Column("included", "bool", "flag", "", "Counted", "False for the first and last of more than five steps."),
    ),
)

OP_STATS = Table(
    "op_stats",
    "One row for each op on host or device, summed over the profile; an IDLE row a side.",
    (
        _HOST,
        _SIDE,
        _OP_TYPE,
        _OP_NAME,
        _sum("occurrences", "", "Occurrences", "How often the op ran.", "int64"),
        _sum("total_time_us", "µs", "Total time", "Time between the op's begin and end, ops within it included."),
        _sum("self_time_us", "µs", "Self time", "Total time less that of the ops within it."),
        Column("is_eager", "bool", "flag", "", "Eager", "Whether the op was run eagerly, outside a tf.function."),
    ),
    headline="self_time_us",
)

OP_STEPS = Table(
    "op_steps",
    "One row for each op in each step: what happened outside of all steps is in no row.",
    (
        _HOST,
        _SIDE,
        _OP_TYPE,
        _OP_NAME,
        _STEP,
        _sum("occurrences", "", "Occurrences", "How often the op ran in the step.", "int64"),
        _sum("self_time_us", "µs", "Self time", "The op's self time in the step."),
    ),
    has_diff=False,
)

TABLES: dict[str, Table] = {t.name: t for t in (RUN_INFO, STEPS, OP_STATS, OP_STEPS)}


def table(name: str) -> Table:
    """The declared table of that name; raises `Unknown` for any other."""
    if name not in TABLES:
        raise Unknown("table", name, sorted(TABLES))
    return TABLES[name]


def names(columns: Iterable[Column]) -> list[str]:
    """The columns' names, in their order."""
    return [c.name for c in columns]
