"""The benchmarks run, and what their reports and docs/verdicts.md say; never how long anything takes."""

from __future__ import annotations

import itertools
import multiprocessing
import platform
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

import tfcompare as tfc
from benchmarks import measure, real_recordings
from benchmarks.__main__ import main
from benchmarks.browser import PAGES
from benchmarks.calibration import PAGE
from benchmarks.jobs import JOBS, TFCOMPARE, TFCOMPARE_AGAIN, TFCOMPARE_WARM, TURNS, XPROF, XPROF_WARM
from benchmarks.machine_load import Load, under_load
from benchmarks.measure import Cost, Measured, rounds
from benchmarks.page import put, section
from benchmarks.real_recordings import (
    A_SIDE,
    H100_PROGRAMS,
    PROGRAMS,
    claims_between,
    several_a_side,
    single_captures,
)
from benchmarks.report import aims, peak_mb, work_s
from tests.laws import mostly_thorough
from tests.profiles import ROOT, SAMPLES
from tfcompare.compare.pairs import pair_with


def cost(work: float, peak: float = 100) -> Cost:
    return Cost(work_s=work, import_s=1, process_s=work + 1, peak_bytes=int(peak * 1e6))


def measured(megabytes: float, scale: float = 1) -> Measured:
    """xprof takes 20 times as long as we do."""
    costs = {
        TFCOMPARE_AGAIN: [cost(3 * scale, 110), cost(6 * scale, 110)],
        XPROF: [cost(60 * scale, 320), cost(120 * scale, 320)],
    }
    return Measured(f"{megabytes:g} MB", megabytes, costs)


def rows_of(text: str) -> dict[str, list[str]]:
    """The cells behind the first one, by it."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {row[0]: row[1:] for row in rows}


def test_aims_are_reached_or_not() -> None:
    rows = rows_of("\n".join(aims("tf_cpu", [measured(30.04), measured(299.8, scale=13)])))
    assert rows["work at 30 MB, in a running process"] == ["at most 1/8 of xprof's", "1/20.0", "reached"]
    assert rows["peak memory at 30 MB"][1:] == ["1/2.9", "reached"]
    assert rows["work at 300 MB, in a running process"][1:] == ["1/20.0", "reached"]
    assert rows["work for a MB at 300 MB, to that at 30 MB"][1:] == ["1.30 times", "short of it"]


def test_without_the_sizes_that_aims_are_about_nothing_is_said_of_them() -> None:
    assert aims("jax_tpu", [measured(3)]) == []
    assert "300 MB" not in "\n".join(aims("jax_gpu", [measured(3), measured(30)]))


def test_ratios_are_medians_of_rounds_not_of_sums() -> None:
    odd = Measured("x", 1, {TFCOMPARE: [cost(1), cost(10), cost(1)], XPROF: [cost(2), cost(20), cost(9)]})
    assert odd.ratio(work_s, XPROF) == 2
    assert odd.ratio(peak_mb, XPROF) == 1
    fewer = Measured("x", 1, {TFCOMPARE: [cost(1), cost(10), cost(1)], XPROF: [cost(3)]})
    assert fewer.ratio(work_s, XPROF) == 3


def test_a_section_goes_to_the_end_and_then_in_place_of_itself(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\nfirst\n")
    put(page, "a", "one")
    put(page, "b", "of theirs")
    put(page, "a", "two")
    assert page.read_text() == (
        "# Title\n\nfirst\n\n<!-- a -->\n\ntwo\n\n<!-- end of a -->\n\n<!-- b -->\n\nof theirs\n\n<!-- end of b -->\n"
    )
    assert (section(page, "a"), section(page, "c")) == ("two", "")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path, str]]:
    """(job, its file, its store) of all that would have been measured."""
    out: list[tuple[str, Path, str]] = []

    def fake(job: str, file: Path, **environment: str) -> Cost:
        assert file.read_bytes() == b"recorded"
        out.append((job, file, environment["TFCOMPARE_STORE"]))
        return cost(1)

    monkeypatch.setattr(measure, "cost_of", fake)
    monkeypatch.setattr(measure, "_SETTLED_S", 0)
    return out


def recorded(folder: Path) -> Path:
    (folder / "file").write_bytes(b"recorded")
    return folder / "file"


def test_what_is_warm_finds_what_the_job_before_left_and_nothing_else_does(
    asked: list[tuple[str, Path, str]], tmp_path: Path
) -> None:
    found = rounds(recorded(tmp_path), "file", 2, lambda _: None)
    assert {job: len(costs) for job, costs in found.costs.items()} == dict.fromkeys(JOBS, 2)
    stores = {job: [store for other, _, store in asked if other == job] for job in JOBS}
    assert stores[TFCOMPARE] == stores[TFCOMPARE_WARM] and len(set(stores[TFCOMPARE])) == 2
    assert {*stores[TFCOMPARE_AGAIN], *stores[XPROF]} == {"off"}
    theirs = [file for job, file, _ in asked if job in (XPROF, XPROF_WARM)]
    assert theirs[0] == theirs[1] != theirs[2] == theirs[3]
    assert len({file for job, file, _ in asked if job in (TFCOMPARE, TFCOMPARE_WARM, TFCOMPARE_AGAIN)}) == 1


def test_no_job_always_follows_the_same_one(asked: list[tuple[str, Path, str]], tmp_path: Path) -> None:
    """But for a warm one, which follows the one that leaves something for it."""
    for _ in range(2):
        rounds(recorded(tmp_path), "file", 5, lambda _: None)
    order = [job for job, _, _ in asked]
    assert order[: len(order) // 2] == order[len(order) // 2 :]
    before: dict[str, set[str]] = {job: set() for job in JOBS}
    for first, second in itertools.pairwise(order):
        before[second].add(first)
    assert {job: len(others) > 1 for job, others in before.items()} == {
        job: job not in (TFCOMPARE_WARM, XPROF_WARM) for job in JOBS
    }
    assert sorted(job for turn in TURNS for job in turn) == sorted(JOBS)


def test_xprof_reads_large_files_less_often(
    asked: list[tuple[str, Path, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "LARGE_MEGABYTES", 0)
    rounds(recorded(tmp_path), "file", 3, lambda _: None)
    counts = Counter(job for job, _, _ in asked)
    assert (counts[TFCOMPARE], counts[TFCOMPARE_WARM], counts[XPROF], counts[XPROF_WARM]) == (3, 3, 2, 2)


@pytest.mark.parametrize("how", mostly_thorough(["invented costs", "measured"], "invented costs"))
def test_the_report_has_a_figure_for_every_job_and_names_its_command_but_not_the_machine(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "invented costs":
        monkeypatch.setattr(measure, "cost_of", lambda *_, **__: cost(1))
        monkeypatch.setattr(measure, "_SETTLED_S", 0)
    out = tmp_path / "results.md"
    main(["--runs", "1", "--sizes", "0.05", "--kinds", "tf_cpu", "--no-samples", "--out", str(out)])
    page = out.read_text()
    assert "`python -m benchmarks --kinds tf_cpu --sizes 0.05 --runs 1`" in page
    assert str(tmp_path) not in page and not re.search(rf"\b{re.escape(platform.node())}\b", page)
    tables = re.findall(r"^\| file \| MB \|(.*)\n\|.*\n\|[^|]*\|[^|]*\|(.*)\n", page, re.M)
    running, fresh, process, memory = (
        {
            job.strip(): float(cell.split()[0])
            for job, cell in zip(*(r.strip("|").split("|") for r in table), strict=True)
        }
        for table in tables
    )
    assert {*running, *fresh} == {*memory} == {*JOBS}
    assert fresh.keys() == process.keys() == {*JOBS} - {TFCOMPARE_AGAIN}
    assert min(min(table.values()) for table in (running, fresh, process, memory)) > 0


def test_every_page_that_compares_is_measured() -> None:
    files = {path.stem.partition("_")[2] for path in (ROOT / "pages").glob("[0-9]*.py")}
    assert files - {"Capture", "Query", "Series"} == set(PAGES) - {""}


@pytest.fixture(scope="module")
def alike() -> list[tfc.Run]:
    return [tfc.load(SAMPLES / "autoencoder" / name) for name in ("filters_16_8", "filters_16_8_again")]


def test_nothing_is_claimed_between_two_captures_of_one_program(alike) -> None:
    found = claims_between(single_captures(alike))
    assert (found.pairs, found.step_time, found.any_op) == (1, 0, 0)
    assert (found.intervals, found.covered) == (1, 1)


def test_what_is_claimed_between_two_programs_is_counted(alike) -> None:
    other = tfc.load(SAMPLES / "autoencoder" / "filters_512_128")
    found = claims_between(map(pair_with, [tfc.compare(other, alike[0]), tfc.compare(alike[0], alike[1])]))
    assert (found.pairs, found.step_time, found.any_op) == (2, 1, 1)
    assert (found.intervals, found.covered) == (2, 1)


def test_threes_are_compared_with_other_threes_drawn_the_same_way_for_the_same_seed(alike, monkeypatch) -> None:
    drawn: list[tuple[set[str], ...]] = []
    with_itself = tfc.compare(alike[0], alike[0])

    def compare(ours, theirs, repeats):
        drawn.append(tuple({run.id, *(r.id for r in repeats[run.id])} for run in (ours, theirs)))
        return with_itself

    runs = [replace(alike[0], id=f"run {i}") for i in range(10)]
    monkeypatch.setattr(real_recordings.tfc, "compare", compare)
    for _ in range(2):
        assert len(list(several_a_side(runs, 3, seed=3))) == 3
    assert drawn[:3] == drawn[3:]
    assert all(len(ours) == len(theirs) == A_SIDE and not ours & theirs for ours, theirs in drawn)
    assert not list(several_a_side(runs[: 2 * A_SIDE - 1], 3, seed=3))


def test_captures_are_made_in_turn_under_each_load_and_only_those_that_are_missing(tmp_path, monkeypatch) -> None:
    at_once: list[str] = []
    made: list[tuple[str, ...]] = []

    @contextmanager
    def under_load(load):
        at_once.append(next(name for name, known in real_recordings.LOADS.items() if known == load))
        yield
        at_once.pop()

    def record(command, **_):
        place = command[-1]
        assert [place.parts[-3]] == at_once
        made.append(place.parts[-3:])
        place.mkdir(parents=True)
        (place / "host.xplane.pb").touch()

    monkeypatch.setattr(real_recordings, "under_load", under_load)
    monkeypatch.setattr(real_recordings.subprocess, "run", record)
    real_recordings.record(tmp_path, 1)
    assert made == [(load, program, "00") for load in real_recordings.LOADS for program in real_recordings.PROGRAMS]
    real_recordings.record(tmp_path, 2)
    assert {number for _, _, number in made[len(made) // 2 :]} == {"01"}


def test_a_load_runs_until_the_end_of_its_block() -> None:
    with pytest.raises(KeyError), under_load(Load(2, busy_s=0.01, idle_s=0.01), settle_s=0):
        running = multiprocessing.active_children()
        assert len(running) == 2
        assert all(process.is_alive() for process in running)
        raise KeyError
    assert not any(process.is_alive() for process in running)


def test_the_page_has_each_program_under_each_load_and_the_gpus() -> None:
    figures = section(PAGE, "real_recordings")
    rows = [[cell.strip(" `") for cell in line.split("|")[1:-1]] for line in figures.splitlines() if "| `" in line]
    expected = [(load.replace("_", " "), program) for load in real_recordings.LOADS for program in PROGRAMS]
    expected += [(real_recordings.H100, Path(program).name) for program in H100_PROGRAMS]
    assert [(row[0], row[1]) for row in rows] == expected
    for row in rows:
        captures = int(row[2])
        assert int(row[6]) == captures * (captures - 1) // 2


def test_the_page_has_at_most_one_false_claim_in_twenty() -> None:
    """Of single captures. Of threes, which are drawn from ten and overlap, on average, and in no cell twice as many."""
    rows = [line.split("|")[1:-1] for line in section(PAGE, "real_recordings").splitlines() if "| `" in line]
    assert rows
    single, several = ([_shares_in(row[at : at + 3]) for row in rows] for at in (7, 12))
    assert max(share for row in single for share in row) <= 5.0
    step_time, *_ = zip(*filter(None, several), strict=True)
    assert fmean(step_time) <= 6.0
    assert max(share for row in several for share in row) <= 10.0


def _shares_in(cells: list[str]) -> list[float]:
    return [float(share) for cell in cells for share in re.findall(r"\d+ \((\d+\.\d) %\)", cell)]
