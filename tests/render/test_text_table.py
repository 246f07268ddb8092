"""Tables as text: fitted to a width, with distinct names, and coloured on a terminal only."""

from __future__ import annotations

import sys

import pytest

from tfcompare.render.text_table import TextColumn, fitting, paint, paragraph, render, tone_of

LONG = [f"model/{scope}/very/long/scope/of/a/layer/Conv2D" for scope in ("encoder", "decoder")]


def columns() -> list[TextColumn]:
    return [
        TextColumn("type", ["Conv2D", "Conv2D"], rank=2),
        TextColumn("name", LONG),
        TextColumn("baseline", ["1.0", "2.0"], True, "time"),
        TextColumn("change", ["1.0", "2.0"], True, "time", 1),
        TextColumn("count", ["1", "2"], True, "calls", 3),
        TextColumn("other", ["1", "2"], True, "calls", 3),
    ]


@pytest.mark.parametrize(
    ("width", "dropped"),
    [(None, []), (120, []), (70, ["calls"]), (57, ["type", "calls"]), (48, ["type", "change", "calls"])],
)
def test_columns_of_the_highest_rank_are_dropped_first(width: int | None, dropped: list[str]) -> None:
    shown, names = fitting(columns(), width)
    assert names == dropped
    assert width is None or max(map(len, render(shown, width).splitlines())) <= width


def test_no_column_without_rank_is_dropped() -> None:
    shown, _ = fitting(columns(), 10)
    assert [c.header for c in shown] == ["name", "baseline"]


def test_abbreviated_names_stay_distinct_and_control_characters_are_escaped() -> None:
    lines = render([TextColumn("name", LONG), TextColumn("time", ["1.0", "2.0"], True)], 24).splitlines()
    assert all("…" in line for line in lines[1:])
    assert lines[1].split()[0] != lines[2].split()[0]
    assert LONG[0] in render(columns(), None), "without a width nothing is abbreviated"
    assert "\x1b" not in render([TextColumn("a\x1b[2J", ["\x1b]0;evil\x07"])], None)


def test_paragraphs_are_wrapped_to_a_width() -> None:
    assert paragraph("one two three", 9, 2) == "one two\n  three"
    assert paragraph("one two three", None) == "one two three"


@pytest.mark.parametrize(
    ("is_terminal", "variables", "expected"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_colours_are_for_terminals_without_no_color(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, variables: dict[str, str], expected: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    assert (paint("slower", "worse") != "slower") is expected
    assert paint("same", "") == "same"


def test_only_claims_have_a_tone() -> None:
    words = ("faster", "likely slower", "less", "more", "same", "inconclusive", "not tested", "")
    assert [tone_of(word) for word in words] == ["better", "likely-worse", "better", "worse", "", "", "", ""]
