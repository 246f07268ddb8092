"""What acts on pages rather than says something: the functions that show `Live` blocks, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

import pandas as pd
import streamlit as st

from tfcompare.compare.groups.aggregate import of_side
from tfcompare.compare.matching.manual import Name, names_of_rows
from tfcompare.compare.pair import Pair
from tfcompare.run import Run
from tfcompare.schema import SIDES
from tfcompare.ui.pages import timeline
from tfcompare.ui.widgets import manual
from tfcompare.ui.widgets.blocks import file_button
from tfcompare.ui.widgets.renderer import Acts
from tfcompare.views.csv_files import file_stem, gzipped, spreadsheet_csv_of
from tfcompare.views.kernels import details as kernel_details
from tfcompare.views.kernels import figures as kernel_stats
from tfcompare.views.memory.curve import event_count, timeline_parts
from tfcompare.views.ops.figures import ops_of

GZIP_FROM_ROWS = 200_000
"""A longer CSV is sent compressed: it would be as large as the profile itself."""


def _pair_op(pair: Pair, row: pd.Series) -> None:
    """Widgets that pair the op of a row of `ops_of` manually, or separate it from its counterpart."""
    every = ops_of(pair, idle=True)
    here = every[every["host_or_device"] == row["host_or_device"]]
    side = "candidate" if row["status"] == "added" else "baseline"
    subject = manual.Subject(
        None if row["status"] == "added" else (str(row["op_name"]),),
        None if row["status"] == "removed" else (str(row["op_name_candidate"]),),
        kind=str(row["op_type"]),
        time_us=float(row[f"self_time_us_{side}"]),
        match=str(row["match"]),
    )
    place = row["host_or_device"]
    rows = manual.Rows(here, ("op_name",), "self_time_us", lambda name, kind, _: f"{place}:{kind}:{name[0]}")
    manual.of_row(pair, subject, rows)


def _pair_kernel(pair: Pair, launches: pd.DataFrame, match: str, columns: tuple[str, ...]) -> None:
    """Widgets that pair the kernel or op of some launches manually, or separate it; nothing if a side has several."""
    found: list[list[Name]] = []
    for side in SIDES:
        own = [f"{column}_candidate" if side == "candidate" else column for column in columns]
        found.append(list(dict.fromkeys(names_of_rows(of_side(launches, side), own))))
    if any(len(names) > 1 for names in found):
        return
    ours, theirs = (names[0] if names else None for names in found)
    times = launches[[f"{kernel_stats.TIME}_{side}" for side in SIDES]].sum()
    readings = kernel_details.display_names(pair)
    rows = manual.Rows(
        pair.diff("kernel_stats"),
        columns,
        kernel_stats.TIME,
        lambda name, _, status: kernel_address(name, columns, status),
        lambda name: readings.get(name, name),
    )
    manual.of_row(pair, manual.Subject(ours, theirs, time_us=float(times.max()), match=match), rows)


def kernel_address(name: Name, columns: tuple[str, ...], status: str) -> str:
    """The key of the row of kernel stats that aggregates this name."""
    row = pd.DataFrame([{**dict(zip(columns, name, strict=True)), "status": status}])
    return str(kernel_details.kernel_key(row).iloc[0])


def _memory_events(pair: Pair) -> None:
    """A button per run: every event of all its memories, as a file made on request."""
    with st.container(horizontal=True):
        for side, run in pair.shown:
            host = pair.host_of(run)
            rows = event_count(run, host)
            if rows:
                is_long = rows > GZIP_FROM_ROWS
                label = f"CSV of the {side.role_in_text}'s events{' (compressed)' if is_long else ''}"
                name = f"memory_timeline_{file_stem(run.name)}.csv{'.gz' if is_long else ''}"
                make = partial(memory_events_csv, run, host, is_long)
                meaning = f"{rows:,} events of all memories, in full precision"
                file_button(label, make, name, f"timeline_csv_{side.position > 0}", meaning)


def memory_events_csv(run: Run, host: str | None, is_long: bool) -> bytes:
    """The table `memory_timeline` of one host or all as a CSV file, compressed if it is long."""
    join = gzipped if is_long else b"".join
    return join(spreadsheet_csv_of(timeline_parts(run, host)))


def _open_row(pair: Pair, label: str, names: Mapping[str, str], opened: str) -> None:
    """Widgets that open another row than `opened` of a table; `names` are what rows are called, by their keys."""
    del pair
    if chosen := st.pills(label, list(names), format_func=names.__getitem__, key=f"{label} {opened}"):
        st.query_params["row"] = chosen
        st.rerun()


LIVE: dict[str, Acts] = {
    "manual_pairs": lambda pair, readings=MappingProxyType({}): manual.choices(pair, lambda n: readings.get(n, n)),
    "load_manual_pairs": manual.upload,
    "pair_op": _pair_op,
    "pair_kernel": _pair_kernel,
    "memory_events": _memory_events,
    "open_row": _open_row,
    "timeline": timeline.show,
    "timeline_steps": timeline.choose_steps,
    "typical_step": timeline.small,
}
