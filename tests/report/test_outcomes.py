"""Every report says the same of what became of an op, in the words of the app."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.render.documents import payload_of
from tests.render.test_notebook_cells import lines
from tests.xspace_builder import event, line, plane, space
from tfcompare import compare, load
from tfcompare.compare.diff import outcome
from tfcompare.comparison import Comparison
from tfcompare.render.report import report
from tfcompare.run import Run
from tfcompare.views.ops.op import verdict_sentence
from tfcompare.views.verdict_marks import outcome_text, tone_of

STEPS = 24
OUTCOMES = {
    "worse": "▲ likely slower",
    "better": "▼ likely faster",
    "new": "added",
    "gone": "removed",
    "noisy": "? inconclusive",
    "tiny": "– not tested",
    "steady": "= same",
}
TONES = {"worse": "likely-worse", "better": "likely-better"}
TIMES_US: dict[str, tuple[float | None, float | None]] = {
    "worse": (200, 500),
    "better": (400, 200),
    "new": (None, 90),
    "gone": (80, None),
    "noisy": (300, 350),
} | {"tiny": (0.1, 0.2), "steady": (250, 250.02)}


def recorded(folder: Path, role: int) -> Run:
    """Steps with one op for each outcome."""
    rng = np.random.default_rng(role)
    events = []
    for step in range(STEPS):
        at = 4000.0 * step
        events.append(event("train", at, 3000, _r=1, step_num=step))
        for op, sides in TIMES_US.items():
            us = sides[role]
            if us is not None:
                spread = 0.8 if op == "noisy" else 0.001
                events.append(event(f"{op}:MatMul", at + 1, us * (1 + spread * rng.uniform(-1, 1))))
                at += us + 200
    place = folder / str(role)
    place.mkdir()
    (place / "vm.xplane.pb").write_bytes(space(plane("/host:CPU", line("python", *events, id=1))))
    return load(place)


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folder = tmp_path_factory.mktemp("outcomes")
    return compare(recorded(folder, 0), recorded(folder, 1), spread=0.001)


@pytest.fixture(scope="module", autouse=True)
def all_rows() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tfcompare.views.answer.TOP", len(OUTCOMES))
        patch.setattr("tfcompare.render.report.CHANGES_IN_SHORT", len(OUTCOMES))
        yield


@pytest.fixture(scope="module")
def document(comparison: Comparison) -> str:
    return report(comparison)


def columns_of(document: str) -> dict[str, dict[str, list[str]]]:
    """The columns of the table of ops, by their names in CSV."""
    (table,) = [one for one in payload_of(document) if one["kind"] == "table" and one["name"] == "op_stats"]
    return {one["csv"]: one for one in table["columns"]}


def cells(line_of_table: str) -> list[str]:
    return [cell.strip() for cell in line_of_table.strip("|").split("|")]


def test_html_says_it_in_the_first_lines_and_in_the_table(document: str) -> None:
    for op, words in OUTCOMES.items():
        row = next(one for one in document.split("<tr ") if f"<th>{op}</th>" in one)
        assert f"<td>{words}</td></tr>" in row
        assert row.startswith(f'class="{TONES.get(op, "neutral")}"')
    columns = columns_of(document)
    names = columns["op_name"]["texts"]
    assert dict(zip(names, columns["verdict"]["texts"], strict=True)) == OUTCOMES
    assert dict(zip(names, columns["verdict"]["tones"], strict=True)) == {op: TONES.get(op, "neutral") for op in names}


def test_markdown_and_a_notebook_say_the_same(comparison: Comparison) -> None:
    for shown in (report(comparison, "markdown").replace("\\", "").splitlines(), lines(comparison)):
        assert {row[0]: row[-1] for row in map(cells, shown) if row[0] in OUTCOMES} == OUTCOMES


def test_json_has_the_words_without_signs(comparison: Comparison) -> None:
    (candidate,) = json.loads(report(comparison, "json"))["candidates"]
    table = candidate["tables"]["op_stats"]
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in table["rows"]]
    of_ops = {row["op_name"]: row["verdict"] for row in rows if row["op_name"] in OUTCOMES}
    assert of_ops == {op: words.lstrip("▲▼?–= ") for op, words in OUTCOMES.items()}


def test_the_app_says_the_same_of_a_row(comparison: Comparison) -> None:
    diff = comparison.diffs("op_stats").set_index("op_name", drop=False)
    for op, words in OUTCOMES.items():
        sentence = verdict_sentence(diff.loc[op], (float("nan"), float("nan")))
        side = {"added": "candidate", "removed": "baseline"}.get(words)
        assert sentence.startswith(f"**Only in the {side}.**" if side else f"**{words}**: ")


def test_a_row_of_one_side_changed_by_its_whole_value_everywhere(comparison: Comparison, document: str) -> None:
    columns = columns_of(document)
    at = columns["op_name"]["texts"].index("gone")
    values = {name: column["texts"][at] for name, column in columns.items() if name.startswith("self_time_us")}
    ours = values["self_time_us_per_step_baseline"]
    assert list(values.values()) == [ours, "–", f"−{ours}", "–"]
    notebook = next(cells(one) for one in lines(comparison) if one.startswith("gone"))
    assert notebook[1:6] == [f"−{notebook[2]}", notebook[2], "–", "–", "–"]
    facts = next(one for one in document.split("<tr ") if "<th>gone</th>" in one)
    assert facts.count(">–</td>") == 3, "no candidate, no ratio, no interval"


def test_a_matched_row_without_a_verdict_is_not_given_one() -> None:
    row = {"status": "matched", "verdict": float("nan"), "evidence": None}
    assert outcome_text(row) == outcome("matched", None, None) == ""
    assert tone_of(row["verdict"], row["evidence"]) == "neutral"
    assert outcome_text(row | {"verdict": "less"}) == "▼ less"
    assert tone_of("more", None) == "worse"
