"""`input_pipeline`: host ops that read, preprocess and enqueue input, by category."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.frames.ops.op_names import DATASET
from tfcompare.schema.input import ENQUEUING, IN_ADVANCE, INPUT_PIPELINE, ON_DEMAND, OTHER_INPUT, PREPROCESSING
from tfcompare.xspace.space import PS_PER_US

_ENQUEUE, _COPY_TO_DEVICE = "InfeedEnqueue", "memcpyhtod"
_FILE_READERS = tuple(
    f"::{name}" for name in ("TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "RecordIO", "ArrayRecord")
)
_READS_AHEAD = tuple(f"::{name}" for name in ("MemoryReader", "MemoryWriter", "Interleave", "Prefetch", "ParallelMap"))
_CATEGORY_OF_STAGE = {"enqueue": ENQUEUING, "read": ON_DEMAND, "preprocessing": PREPROCESSING, "unknown": OTHER_INPUT}


def category(op_name: str, op_type: str) -> str | None:
    """One of `INPUT_CATEGORIES`; None if the op is no input op, which depends on its type alone.

    The rules are those of xprof (`docs/numbers.md`, "Input pipeline"). `IteratorGetNext` has no category: it waits for
    input.
    """
    if op_type.startswith(_ENQUEUE) or op_type.lower().startswith(_COPY_TO_DEVICE):
        return ENQUEUING
    if op_type != DATASET:
        return _CATEGORY_OF_STAGE.get(op_type.lower())
    if not op_name.endswith(_FILE_READERS):
        return PREPROCESSING
    return IN_ADVANCE if any(part in op_name for part in _READS_AHEAD) else ON_DEMAND


def input_pipeline(parts: pd.DataFrame, totals: pd.DataFrame) -> pd.DataFrame:
    """Columns of `schema.INPUT_PIPELINE` for the ops of each host: self time descending, then name.

    `parts` and `totals` are the tables `op_parts` and `op_totals` of all hosts, with a column `host`; `part` in the
    latter is a row of the former.
    """
    type_of_part, types = pd.factorize(parts["op_type"])
    may_be_input = np.array([category("", kind) is not None for kind in types], np.bool_)
    is_event = parts["part"] == ""  # instructions of XLA programs may be of type `Unknown` too
    named = parts[(parts["host_or_device"] == schema.HOST) & is_event & may_be_input[type_of_part]]
    if named.empty:
        return INPUT_PIPELINE.empty()
    found = [category(name, kind) for name, kind in zip(named["op_name"], named["op_type"], strict=True)]
    of_part = named[["host", "op_name"]].assign(category=pd.Series(found, index=named.index, dtype="object"))
    cells = totals.drop(columns="host").merge(of_part, left_on="part", right_index=True)
    keys = ["host", "op_name", "category"]
    rows = cells.groupby(keys, as_index=False)[["occurrences", "total_time_ps", "self_time_ps"]].sum()
    rows = rows.sort_values(
        ["host", "self_time_ps", "op_name", "category"], ascending=[True, False, True, True], kind="stable"
    )
    return INPUT_PIPELINE.conform(
        rows.reset_index(drop=True).assign(
            total_time_us=lambda r: r["total_time_ps"] / PS_PER_US,
            self_time_us=lambda r: r["self_time_ps"] / PS_PER_US,
        )
    )
