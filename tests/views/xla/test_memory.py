"""Live bytes over program order."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tfcompare.views.xla.memory import over_program_order


def buffer(
    name: str, size: int, first: int, last: int, positions: int = 6, *, at_peak: bool = False, host: str = "vm"
) -> dict[str, object]:
    kind = "parameter" if (first, last) == (1, positions) else "temporary"
    place = {"host": host, "program": "f(1)", "memory_space": 0, "hlo_op": name, "is_live_at_peak": at_peak}
    return place | {
        "kind": kind,
        "size_bytes": size,
        "first_position": first,
        "last_position": last,
        "positions": positions,
    }


def test_live_bytes_follow_from_where_buffers_begin_and_end() -> None:
    memory = pd.DataFrame(
        [buffer("p", 1, 1, 6, at_peak=True), buffer("dot", 20, 2, 4, at_peak=True), buffer("", 300, 5, 5)]
    )
    rows = over_program_order(memory, {"f(1)"}, 0)
    assert rows[["position", "live_bytes"]].values.tolist() == [[1, 1], [2, 21], [5, 301], [6, 1]]
    assert rows["event"].tolist() == [
        "",
        "allocates dot, 20 B",
        "allocates a value of an unknown instruction, 300 B",
        "frees a value of an unknown instruction, 300 B",
    ]
    assert rows.loc[rows["is_peak"], "position"].tolist() == [5]
    assert set(rows["positions"]) == {6}
    assert over_program_order(memory, {"g(1)"}, 0).empty and over_program_order(memory, {"f(1)"}, 5).empty


def test_of_several_hosts_the_one_with_the_largest_peak_is_shown() -> None:
    small, large = (buffer("p", size, 1, 1, 1, at_peak=True, host=f"vm{size}") for size in (5, 7))
    assert over_program_order(pd.DataFrame([small, large]), {"f(1)"}, 0)["live_bytes"].tolist() == [7]


def test_a_long_program_keeps_its_peak() -> None:
    """A hundred thousand buffers, one live at a time, the largest in between."""
    sizes = np.full(100_000, 10)
    sizes[54_321] = 11
    rows = [buffer("a", 1, 1, 1, 1)] * len(sizes)
    memory = pd.DataFrame(rows).assign(
        size_bytes=sizes, first_position=range(1, 200_000, 2), last_position=range(1, 200_000, 2), positions=200_000
    )
    thinned = over_program_order(memory, {"f(1)"}, 0)
    assert len(thinned) < 2100
    assert thinned.loc[thinned["is_peak"], ["position", "live_bytes"]].values.tolist() == [[2 * 54_321 + 1, 11]]
    assert thinned["live_bytes"].max() == 11
