"""The sentence on what was compiled."""

from __future__ import annotations

import pandas as pd
import pytest

from tests.frames.tables import run_of
from tests.views.advice.advice_facts import compilations
from tests.xspace_builder import line, plane, space
from tfcompare.views.xla.view import NOTHING, NOTHING_ALONE, compilation_rows, sentence, sentence_alone

Row = tuple[str, str, int, float, float, int, str]
RUN = run_of(space(plane("/host:CPU", line("t"))))
ONCE: Row = ("f", "compiling", 1, 2000.0, 2000.0, 1, "")
OFTEN: Row = ("f", "compiling", 5, 9000.0, 2000.0, 5, "f32[8]; f32[9]; f32[10]; f32[11]; f32[12]")
TRACED: Row = ("g", "tracing", 3, 99_000.0, 50_000.0, 0, "")
LOWERED: Row = ("h", "lowering", 3, 99_000.0, 50_000.0, 0, "")


def rows(ours: list[Row], theirs: list[Row]) -> pd.DataFrame:
    return compilation_rows(RUN, compilations(*ours), compilations(*theirs))


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        ([], [], NOTHING),
        ([LOWERED], [LOWERED], NOTHING),
        ([], [ONCE], "`f` was compiled once (2.00 ms) in `B`, not once in `A`."),
        ([ONCE], [], "`f` was compiled once (2.00 ms) in `A`, not once in `B`."),
        ([ONCE], [ONCE, TRACED], "`f` was compiled once (2.00 ms) in `B`, once (2.00 ms) in `A`."),
        ([], [TRACED, LOWERED], "`g` was traced 3 times (99.0 ms) in `B`, not once in `A`."),
        (
            [ONCE],
            [OFTEN],
            "`f` was compiled 5 times (9.00 ms) in `B`, once (2.00 ms) in `A`. The shapes of its arguments change: "
            "`f32[8]`, `f32[9]`, `f32[10]`, `f32[11]`, ….",
        ),
        ([], [("", *ONCE[1:])], "A function without a name was compiled once (2.00 ms) in `B`, not once in `A`."),
    ],
)
def test_the_sentence_is_about_what_changed_most(ours: list[Row], theirs: list[Row], text: str) -> None:
    assert sentence(rows(ours, theirs), ("A", "B")) == text


def test_a_run_alone() -> None:
    assert sentence_alone(rows([ONCE], [ONCE])) == "`f` was compiled once (2.00 ms)."
    assert sentence_alone(rows([], [])) == NOTHING_ALONE


def test_hosts_that_compile_the_same_are_not_added_up() -> None:
    both = pd.concat([compilations(OFTEN, host=host) for host in "ab"], ignore_index=True)
    found = compilation_rows(RUN, compilations(), both)
    assert sentence(found, ("A", "B")).startswith("`f` was compiled 5 times (9.00 ms) in `B`, not once")
