"""Calls of tf.data, written by hand."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from tests.frames.tables import host_frame
from tests.xspace_builder import Event, Value, event, line, plane, space
from tfcompare.frames.tf_data.tf_data import tf_data
from tfcompare.frames.tf_data.tf_data_executions import MOST_ROWS
from tfcompare.xspace import XSpace, parse

ROOT, A, B, C, D, E = 1, 2, 3, 4, 5, 6
"""Ids of iterators."""


@dataclass(frozen=True, eq=False)
class Found:
    """The tables of `TfData` as frames, and its remarks."""

    pipelines: pd.DataFrame
    executions: pd.DataFrame
    calls: pd.DataFrame
    remarks: list[str]


def found_in(space: XSpace, host: str = "a", most_rows: int = MOST_ROWS) -> Found:
    """What `tf_data` finds."""
    found = tf_data(space, most_rows)
    names = ("pipelines", "executions", "calls")
    return Found(*(host_frame(f"tf_data_{name}", getattr(found, name), host) for name in names), found.remarks)


def call(
    path: str, start_us: float, duration_us: float, id: int, parent_id: int | None = None, **stats: Value
) -> Event:
    """A call of the iterator `Iterator::<path>`."""
    parent: dict[str, Value] = {} if parent_id is None else {"parent_id": parent_id}
    return event(f"Iterator::{path}", start_us, duration_us, parent | stats, id=id)


def produce(stage: str, start_us: float, duration_us: float, element: int) -> Event:
    return event(f"{stage}Produce", start_us, duration_us, element_id=element)


def consume(stage: str, start_us: float, element: int) -> Event:
    return event(f"{stage}Consume", start_us, 1, element_id=element)


def of_threads(*threads: list[Event], most_rows: int = MOST_ROWS) -> Found:
    lines = [line(f"thread {i}", *events, id=i + 1) for i, events in enumerate(threads)]
    return found_in(parse(space(plane("/host:CPU", *lines))), most_rows=most_rows)


def cells(frame: pd.DataFrame, columns: str) -> list[str]:
    """The rows of these columns, as in a CSV file."""
    return frame[columns.split(",")].to_csv(index=False, header=False).splitlines()
