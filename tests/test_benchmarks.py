"""The benchmarks run, and what their reports and docs/verdicts.md say; never how long anything takes."""

from __future__ import annotations

import itertools
import platform
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import tfcompare as tfc
from benchmarks import measure, real_recordings
from benchmarks.__main__ import main
from benchmarks.browser import PAGES
from benchmarks.calibration import PAGE
from benchmarks.jobs import JOBS, TFCOMPARE, TFCOMPARE_AGAIN, TFCOMPARE_WARM, TURNS, XPROF, XPROF_WARM
from benchmarks.measure import Cost, Measured, rounds
from benchmarks.page import put, section
from benchmarks.real_recordings import claims_between, claims_of_pairs, claims_of_repeats
from benchmarks.report import aims, peak_mb, work_s
from tests.laws import mostly_thorough
from tests.profiles import ROOT, SAMPLES


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
    assert rows["work at 30 MB, in a running process"] == ["at most 1/10 of xprof's", "1/20.0", "reached"]
    assert rows["peak memory at 30 MB"][1:] == ["1/2.9", "short of it"]
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


def test_nothing_is_claimed_between_two_recordings_of_one_program(alike) -> None:
    found = claims_of_pairs(alike)
    assert (found.pairs, found.step_time, found.any_op, found.ops) == (1, 0, 0, 0)
    assert found.tested_ops > 5


def test_what_is_claimed_between_two_programs_is_counted(alike) -> None:
    other = tfc.load(SAMPLES / "autoencoder" / "filters_512_128")
    found = claims_between([tfc.compare(other, alike[0]), tfc.compare(alike[0], alike[1])])
    assert (found.pairs, found.step_time, found.any_op) == (2, 1, 1)
    assert 1 < found.ops < found.tested_ops


def test_five_recordings_are_held_against_five_others_drawn_the_same_way_for_the_same_seed(alike, monkeypatch) -> None:
    drawn: list[tuple[set[str], ...]] = []
    with_itself = tfc.compare(alike[0], alike[0])

    def compare(ours, theirs, repeats):
        drawn.append(tuple({run.id, *(r.id for r in repeats[run.id])} for run in (ours, theirs)))
        return with_itself

    runs = [replace(alike[0], id=f"run {i}") for i in range(12)]
    monkeypatch.setattr(real_recordings.tfc, "compare", compare)
    claims_of_repeats(runs, 3, seed=3)
    claims_of_repeats(runs, 3, seed=3)
    assert drawn[:3] == drawn[3:]
    assert all(len(ours) == len(theirs) == 5 and not ours & theirs for ours, theirs in drawn)


def test_the_page_says_how_many_recordings_and_that_at_most_one_claim_in_twenty_is_false() -> None:
    figures = section(PAGE, "real_recordings")
    rows = [line.split("|")[1:-1] for line in figures.splitlines() if line.startswith("| `")]
    assert [row[0].strip(" `") for row in rows] == list(real_recordings.VARIANTS)
    for row in rows:
        recordings, pairs = int(row[1]), int(row[4])
        assert recordings >= 12
        assert pairs == recordings * (recordings - 1) // 2
        shares = [float(share) for share in re.findall(r"\((\d+\.\d) %\)", "|".join(row))]
        assert len(shares) == 5
        assert max(shares) <= 5.0
