"""Commands on runs of a store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.store.runs_in_stores import SMALL, STAMP, put, small

PAIR = ("theirs", "ours")


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store of two runs, whose profiles are gone from where they were, and can be read elsewhere."""
    for name in PAIR:
        small(name, tmp_path / "logs")
    put([tmp_path / "logs"], tmp_path / "store")
    (tmp_path / "logs").rename(tmp_path / "raw")
    return str(tmp_path / "store")


def test_runs_lists_them(store: str, tfcompare) -> None:
    status, out, err = tfcompare("runs", "--store", store, "--format", "json")
    assert (status, err) == (0, "")
    assert [run["name"] for run in json.loads(out)] == sorted(PAIR)
    assert [run["state"] for run in json.loads(out)] == ["read", "read"]
    only = json.loads(tfcompare("runs", "logs/ours", "--store", store, "--format", "json")[1])
    assert [run["name"] for run in only] == ["ours"]


@pytest.mark.parametrize(
    ("command", "more"),
    [("diff", ("--format", "csv")), ("check", ("--fail-if", "step_time>+5%", "--format", "json"))],
)
def test_they_are_compared_by_id_or_name(command: str, more: tuple[str, ...], store: str, tfcompare, tmp_path) -> None:
    theirs = tfcompare(command, *(str(tmp_path / "raw" / name) for name in PAIR), *more)
    ours = tfcompare(command, *PAIR, *more, "--store", store)
    assert (ours[0], ours[1].replace("logs/", "")) == (theirs[0], theirs[1])
    by_id = f"logs/theirs/plugins/profile/{STAMP}"
    assert tfcompare(command, by_id, PAIR[1], *more, "--store", store) == ours


def test_repeats_come_from_the_store_as_well(store: str, tfcompare, tmp_path: Path) -> None:
    put([small("ours_again", tmp_path / "again")], store)
    words = ("diff", *PAIR, "--store", store, "--limit", "1", "--candidate-repeat")
    status, out, _ = tfcompare(*words, "ours_again")
    assert (status, " 1 and 2 captures)" in out) == (0, True)
    status, _, err = tfcompare(*words, "nowhere")
    assert (status, "has no run 'nowhere'" in err) == (2, True)


def test_show_and_query(store: str, tfcompare, tmp_path: Path) -> None:
    theirs = tfcompare("show", str(tmp_path / "raw" / "ours"), "steps", "--format", "csv")
    assert tfcompare("show", "ours", "steps", "--format", "csv", "--store", store) == theirs
    status, out, _ = tfcompare("query", "SELECT count(*) AS n FROM steps", *PAIR, "--store", store, "--format", "csv")
    assert (status, out) == (0, "n\n26\n")


def test_names_that_no_run_has_are_answered_with_the_nearest(store: str, tfcompare) -> None:
    status, _, err = tfcompare("show", "our", "steps", "--store", store)
    assert status == 2
    assert err.startswith(
        f"tfcompare: {store}: has no run 'our'; the nearest of its 2: logs/ours/plugins/profile/{STAMP}, "
    )
    status, _, err = tfcompare("runs", "nowhere", "--store", store)
    assert (status, "has no run 'nowhere'" in err) == (2, True)


def test_names_that_several_runs_have_are_refused(store: str, tfcompare, tmp_path: Path) -> None:
    for place in ("a", "b"):
        folder = tmp_path / place / "run"
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(SMALL["ours"])
        put([tmp_path / place], store)
    status, _, err = tfcompare("show", "run", "steps", "--store", store)
    assert (status, "2 runs go by 'run'; name one of them: a/run, b/run" in err) == (2, True)


def test_serve_refuses_what_is_no_store(tfcompare, tmp_path: Path) -> None:
    status, _, err = tfcompare("serve", "--store", str(tmp_path))
    assert (status, "is no store of tfcompare" in err) == (2, True)


def test_runs_needs_a_path_or_a_store(tfcompare) -> None:
    status, _, err = tfcompare("runs")
    assert (status, "no place was given" in err) == (2, True)
