"""Commands on runs of a store."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.profiles import SAMPLE_RUNS
from tests.store.runs_in_stores import copied, put

PAIR = ("filters_512_128", "filters_16_8")


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store of two runs, whose profiles are gone."""
    for name in PAIR:
        copied(name, tmp_path / "logs")
    put([tmp_path / "logs"], tmp_path / "store")
    shutil.rmtree(tmp_path / "logs")
    return str(tmp_path / "store")


def test_runs_lists_them(store: str, tfcompare) -> None:
    status, out, err = tfcompare("runs", "--store", store, "--format", "json")
    assert (status, err) == (0, "")
    assert [run["name"] for run in json.loads(out)] == list(PAIR)
    assert [run["state"] for run in json.loads(out)] == ["read", "read"]
    only = json.loads(tfcompare("runs", "logs/filters_16_8", "--store", store, "--format", "json")[1])
    assert [run["name"] for run in only] == ["filters_16_8"]


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("diff", ("--format", "csv")),
        ("check", ("--fail-if", "step_time>+5%", "--format", "json")),
    ],
)
def test_they_are_compared_by_id_or_name(command: str, more: tuple[str, ...], store: str, tfcompare) -> None:
    theirs = tfcompare(command, *(str(SAMPLE_RUNS[name]) for name in PAIR), *more)
    ours = tfcompare(command, *PAIR, *more, "--store", store)
    assert (ours[0], ours[1].replace("logs/filters", "filters")) == (theirs[0], theirs[1])
    by_id = "logs/filters_512_128/plugins/profile/2026_11_20_11_13_10"
    assert tfcompare(command, by_id, PAIR[1], *more, "--store", store) == ours


def test_repeats_come_from_the_store_as_well(store: str, tfcompare, tmp_path: Path) -> None:
    put([copied("filters_16_8_again", tmp_path / "again")], store)
    words = ("diff", *PAIR, "--store", store, "--limit", "1", "--candidate-repeat")
    status, _, err = tfcompare(*words, "filters_16_8_again")
    assert (status, "note: verdicts are based on 2 captures of the candidate" in err) == (0, True)
    status, _, err = tfcompare(*words, "nowhere")
    assert (status, "has no run 'nowhere'" in err) == (2, True)


def test_show_and_query(store: str, tfcompare) -> None:
    theirs = tfcompare("show", str(SAMPLE_RUNS["filters_16_8"]), "steps", "--format", "csv")
    assert tfcompare("show", "filters_16_8", "steps", "--format", "csv", "--store", store) == theirs
    status, out, _ = tfcompare("query", "SELECT count(*) AS n FROM steps", *PAIR, "--store", store, "--format", "csv")
    assert (status, out) == (0, "n\n44\n")


def test_names_that_no_run_has_are_answered_with_the_nearest(store: str, tfcompare) -> None:
    status, _, err = tfcompare("show", "filters_16_9", "steps", "--store", store)
    assert status == 2
    assert err.startswith(
        f"tfcompare: {store}: has no run 'filters_16_9'; the nearest of its 2: "
        "logs/filters_16_8/plugins/profile/2026_11_20_11_13_16, "
    )
    status, _, err = tfcompare("runs", "nowhere", "--store", store)
    assert (status, "has no run 'nowhere'" in err) == (2, True)


def test_names_that_several_runs_have_are_refused(store: str, tfcompare, tmp_path: Path) -> None:
    for place in ("a", "b"):
        folder = tmp_path / place / "run"
        folder.mkdir(parents=True)
        shutil.copy(next(SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")), folder / "vm.xplane.pb")
        put([tmp_path / place], store)
    status, _, err = tfcompare("show", "run", "steps", "--store", store)
    assert (status, "2 runs go by 'run'; name one of them: a/run, b/run" in err) == (2, True)


def test_serve_refuses_what_is_no_store(tfcompare, tmp_path: Path) -> None:
    status, _, err = tfcompare("serve", "--store", str(tmp_path))
    assert (status, "is no store of tfcompare" in err) == (2, True)


def test_runs_needs_a_path_or_a_store(tfcompare) -> None:
    status, _, err = tfcompare("runs")
    assert (status, "no place was given" in err) == (2, True)
