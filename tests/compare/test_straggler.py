"""Which host holds the others up, from step times and what of them is waiting for other hosts."""

from __future__ import annotations

import pandas as pd
import pytest

from tfcompare import schema
from tfcompare.compare.straggler import steps_of_straggler, straggler


def steps(**hosts: list[tuple[float, float]]) -> pd.DataFrame:
    """For each host (step time, time in device collectives) of each step."""
    rows = [
        {"host": host, "step": number, "duration_us": duration, "device_collectives_us": waiting}
        for host, of_host in hosts.items()
        for number, (duration, waiting) in enumerate(of_host)
    ]
    frame = schema.STEPS.empty().reindex(range(len(rows))).drop(columns=["host", "step"])
    numbers = frame.select_dtypes("number").columns
    frame[numbers] = 0.0
    return frame.assign(included=True, **pd.DataFrame(rows).to_dict("list"))


def test_the_straggler_waits_for_nobody() -> None:
    table = steps(a=[(10_000, 8_000)] * 4, b=[(10_000, 0)] * 4, c=[(10_000, 7_000)] * 4)
    found = straggler(table)
    assert found is not None
    assert found.host == "b"
    assert found.excess_us == 10_000 - 2_500
    assert steps_of_straggler(table)["host"].unique().tolist() == ["b"]


def test_one_host_has_no_straggler_and_its_own_steps() -> None:
    table = steps(a=[(10, 0), (12, 0)])
    assert straggler(table) is None
    assert steps_of_straggler(table)["duration_us"].tolist() == [10, 12]
    assert steps_of_straggler(schema.STEPS.empty()).empty


@pytest.mark.parametrize("missing", ["a", "b"])
def test_steps_that_one_host_lacks_are_not_compared(missing: str) -> None:
    table = steps(a=[(10, 0)] * 3, b=[(20, 0)] * 3)
    found = straggler(table[~((table["host"] == missing) & (table["step"] == 2))])
    assert found is not None
    assert (found.host, found.excess_us) == ("b", 10)
