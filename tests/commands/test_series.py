"""`tfcompare series`, and `check --against-series`."""

from __future__ import annotations

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.store.runs_in_stores import put
from tests.views.series.series_runs import BEFORE, FACTOR, nights, profile, write
from tfcompare.render import as_json
from tfcompare.store import cached_frames
from tfcompare.store.run_store import Store

NIGHTS = 20


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `logs` of the nights, and a `store` that has them."""
    folder = tmp_path_factory.mktemp("series")
    nights(folder / "logs", NIGHTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cached_frames, "_SETTLED_NS", -1)
        put([folder / "logs"], folder / "store")
    return folder


def tonight(folder: Path, matmul: float, name: str = f"night_{NIGHTS}") -> str:
    return str(write(folder / name, profile(np.random.default_rng(3), matmul), NIGHTS, branch="main"))


def test_the_change_is_one_sentence_with_what_explains_it(place: Path, tfcompare) -> None:
    status, out, err = tfcompare("series", "--store", str(place / "store"))
    assert (status, err) == (0, "")
    assert out.startswith(f"Step time rose by 17.7 % (16.4–19.1 %) at c0ffee{BEFORE} on 2026-03-{BEFORE + 1}, from ")
    assert "explained by model/matmul +29" in out
    assert "Last run before: logs/night_11/plugins/profile/" in out


def test_every_run_is_a_row_of_csv_and_json(place: Path, tfcompare) -> None:
    words = ("series", "--store", str(place / "store"), "--metric", "op:MatMul")
    status, out, _ = tfcompare(*words, "--format", "csv")
    rows = pd.read_csv(io.StringIO(out))
    assert (status, len(rows)) == (0, NIGHTS)
    assert rows["value"][BEFORE:].mean() / rows["value"][:BEFORE].mean() == pytest.approx(FACTOR, rel=0.03)
    found = json.loads(tfcompare(*words, "--format", "json", "--limit", "0")[1])
    assert (found["version"], found["view"], found["metric"]) == (as_json.VERSION, "series", "op:MatMul")
    table = found["blocks"][-1]
    records = pd.DataFrame(table["rows"], columns=[column["name"] for column in table["columns"]])[::-1]
    assert records["label"].tolist() == rows["label"].tolist()
    assert records["value"].tolist() == pytest.approx(rows["value"].tolist())


def test_documents_are_written_by_the_suffix_of_their_file(place: Path, tmp_path: Path, tfcompare) -> None:
    for name, expected in (("a.html", "c0ffee12"), ("a.md", "| First run after | Recorded (UTC) |")):
        status, _, err = tfcompare("series", "--store", str(place / "store"), "-o", str(tmp_path / name))
        assert (status, f"wrote {tmp_path / name}" in err) == (0, True)
        assert expected in (tmp_path / name).read_text(encoding="utf-8")


def test_where_versions_of_tables_changed_is_noted_once(place: Path, tmp_path: Path, tfcompare) -> None:
    store = Store(str(shutil.copytree(place / "store", tmp_path / "store")))
    for row in store.rows()[0][:1]:
        record = store.record(row.run)
        assert record is not None
        store.put(replace(record, versions=record.versions | {"steps": "0-1"}))
    status, _, err = tfcompare("series", "--store", str(tmp_path / "store"), "--format", "csv")
    assert (status, err.count("note: Different versions of tfcompare made steps, which")) == (0, 1)
    assert err.count("note:") == 1


def test_tags_and_keys_choose_and_order_the_runs(place: Path, tfcompare) -> None:
    words = ("series", "--store", str(place / "store"))
    assert tfcompare(*words, "--tag", "branch=other")[::2] == (
        2,
        "tfcompare: no readable run matches; leave out --tag, --program or --by, or name other runs\n",
    )
    assert " at 13 on 2026-03-13" in tfcompare(*words, "--tag", "branch=main", "--tag", "nightly", "--by", "build")[1]
    assert tfcompare("series")[2] == "tfcompare: no runs were named: give a PATH, or a store with --store\n"
    assert "unknown metric 'step_tim'" in tfcompare(*words, "--metric", "step_tim")[2]


def test_a_new_run_is_compared_with_the_last_of_its_kind(place: Path, tmp_path: Path, tfcompare) -> None:
    store = str(place / "store")
    conditions = ("--fail-if", "step_time>+5%", "--fail-if", "op:MatMul>+10%", "--last", "8")
    status, out, _ = tfcompare("check", tonight(tmp_path / "a", FACTOR), "--against-series", store, *conditions)
    assert status == 0
    assert f"night_{NIGHTS} vs the last 8 runs: night_19, night_18, night_17 and 5 more: passed (2 passed)" in out
    assert "(as in the series)" in out
    status, out, _ = tfcompare("check", tonight(tmp_path / "b", 2.2), "--against-series", store, *conditions)
    assert status == 1
    assert "FAILED (2 failed)" in out


def test_the_kind_of_a_run_is_its_name_or_a_tag(place: Path, tmp_path: Path, tfcompare) -> None:
    other = tonight(tmp_path, FACTOR, "another")
    words = ("check", other, "--against-series", str(place / "store"), "--fail-if", "step_time>+5%")
    status, _, err = tfcompare(*words)
    assert (status, "has no earlier run of the kind of another; give a tag" in err) == (2, True)
    status, out, _ = tfcompare(*words, "--series-tag", "branch=main")
    assert (status, "another vs the last 10 runs: night_19, " in out) == (0, True)


def test_two_runs_or_a_series_but_not_both(place: Path, tfcompare) -> None:
    for words in (("a",), ("a", "b", "--against-series", str(place / "store"))):
        status, _, err = tfcompare("check", *words)
        assert (status, "check takes BASELINE and CANDIDATE, or a single run" in err) == (2, True)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of the nights of two programs."""
    folder = tmp_path_factory.mktemp("programs")
    nights(folder / "logs" / "resnet", 8, before=4)
    nights(folder / "logs" / "bert", 6, before=6)
    put([folder / "logs"], folder / "store")
    return str(folder / "store")


def test_programs_are_never_mixed_and_every_op_of_one_is_tested(programs: str, tfcompare) -> None:
    words = ("series", "--store", programs, "--format", "csv")
    _, out, err = tfcompare(*words)
    assert {row.split("/")[1] for row in out.splitlines()[1:]} == {"resnet"}
    assert err == "note: resnet/night · CPU: 8 of 14 runs; --program takes another: bert/night · CPU (6)\n"
    _, out, err = tfcompare(*words, "--program", "bert")
    assert ({row.split("/")[1] for row in out.splitlines()[1:]}, err) == ({"bert"}, "")
    _, out, _ = tfcompare("series", str(Path(programs).parent / "logs" / "resnet"))
    assert out.startswith("Step time rose by 17.5 % (15.2–19.7 %) at c0ffee04 "), (
        "a folder of profiles is a series, too"
    )
    _, out, _ = tfcompare("series", "--store", programs, "--every-op")
    assert "1 of 3 tested ops changed.\n" in out
    status, _, err = tfcompare(*words, "--program", "gpt")
    assert (status, "must be one of: 'bert/night · CPU', 'resnet/night · CPU'" in err) == (2, True)


def test_a_new_run_is_compared_with_its_program_only(programs: str, tmp_path: Path, tfcompare) -> None:
    words = ("--against-series", programs, "--fail-if", "step_time>+5%")
    ours = tonight(tmp_path / "new" / "bert", 1.0)
    status, out, _ = tfcompare("check", ours, *words)
    assert (status, "vs the last 6 runs" in out) == (0, True)
    other = tonight(tmp_path / "new", 1.0, "another")
    status, _, err = tfcompare("check", other, *words, "--series-tag", "branch=main")
    assert status == 2
    assert "its runs with branch=main are of 2 programs: bert/night · CPU, resnet/night · CPU; give a tag" in err
