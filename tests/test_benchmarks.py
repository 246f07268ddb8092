"""The benchmarks: that the yardstick can be laid on, and what its report says; never how long anything takes."""

from __future__ import annotations

import itertools
import platform
import re
from collections import Counter
from pathlib import Path

import pytest

import benchmarks.__main__
from benchmarks import measure
from benchmarks.__main__ import Plan, main
from benchmarks.jobs import (
    JOBS,
    TFCOMPARE,
    TFCOMPARE_AGAIN,
    TFCOMPARE_KEEPING,
    TFCOMPARE_OP_STEPS,
    TFCOMPARE_WARM,
    TURNS,
    XPROF,
    XPROF_WARM,
)
from benchmarks.measure import Cost
from benchmarks.page import ResultsPage
from benchmarks.report import Measured, aims, peak_mb, work_s


def cost(work: float, peak: float = 100) -> Cost:
    return Cost(work_s=work, import_s=1, process_s=work + 1, peak_bytes=int(peak * 1e6))


def measured(megabytes: float, scale: float = 1) -> Measured:
    """xprof takes 20 times as long as we do, 60 times as long as we do from what was kept."""
    costs = {
        TFCOMPARE: [cost(3 * scale, 100), cost(6 * scale, 100)],
        TFCOMPARE_AGAIN: [cost(3 * scale, 110), cost(6 * scale, 110)],
        TFCOMPARE_WARM: [cost(1 * scale, 50), cost(2 * scale, 50)],
        XPROF: [cost(60 * scale, 320), cost(120 * scale, 320)],
        XPROF_WARM: [cost(20 * scale, 40), cost(40 * scale, 40)],
    }
    return Measured(f"{megabytes:g} MB", megabytes, costs)


def rows_of(text: str) -> dict[str, list[str]]:
    """The cells behind the first one, by it."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {row[0]: row[1:] for row in rows}


def test_aims_are_told_as_reached_or_by_what_they_fall_short() -> None:
    rows = rows_of("\n".join(aims("tf_cpu", [measured(30.04), measured(299.8, scale=13)])))
    assert rows["work at 30 MB, in a running process"] == ["at most 1/10 of xprof's", "1/20.0", "reached"]
    assert rows["peak memory at 30 MB"][1:] == ["1/2.9", "short of it: 1.0 times as much as aimed at"]
    assert rows["work at 300 MB, in a running process"][1:] == ["1/20.0", "reached"]
    assert rows["work for a MB at 300 MB, to that at 30 MB"][1:] == [
        "1.30 times",
        "short of it: 1.09 times as much as aimed at",
    ]


def test_without_the_sizes_that_aims_are_about_nothing_is_said_of_them() -> None:
    assert aims("jax_tpu", [measured(3), measured(300)]) == []
    assert "300 MB" not in "\n".join(aims("jax_gpu", [measured(3), measured(30)]))


def test_ratios_are_medians_of_rounds_not_of_sums() -> None:
    odd = Measured("x", 1, {TFCOMPARE: [cost(1), cost(10), cost(1)], XPROF: [cost(2), cost(20), cost(9)]})
    assert odd.ratio(work_s, XPROF) == 2
    assert odd.ratio(peak_mb, XPROF) == 1
    fewer = Measured("x", 1, {TFCOMPARE: [cost(1), cost(10), cost(1)], XPROF: [cost(3)]})
    assert fewer.ratio(work_s, XPROF) == 3


def test_a_section_is_replaced_without_the_others(tmp_path: Path) -> None:
    out = tmp_path / "results.md"
    out.write_text("# old\n\n<!-- browser: by hand -->\n\nof theirs\n\n<!-- end of browser -->\n\nloose\n")
    ResultsPage(out).put("tf_gpu", "first")
    ResultsPage(out).put("how", "second")
    ResultsPage(out).put("tf_gpu", "third")
    assert re.findall(r"\w+(?=\n\n<!-- end)", out.read_text()) == ["second", "third", "theirs"]
    assert "<!-- browser: by hand -->" in out.read_text()
    assert out.read_text().startswith("# tfcompare beside xprof\n")


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


def test_what_is_warm_finds_what_the_job_before_left_and_nothing_else_does(
    asked: list[tuple[str, Path, str]], tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"recorded")
    found = Plan(runs=2, large_runs=1, slow_runs=1).rounds(tmp_path / "file")
    assert {job: len(costs) for job, costs in found.costs.items()} == dict.fromkeys(JOBS, 2)
    ours = [(job, store) for job, _, store in asked if job not in (XPROF, XPROF_WARM)]
    stores = [store for _, store in ours if store != "off"]
    assert [job for job, store in ours if store != "off"] == [TFCOMPARE_KEEPING, TFCOMPARE_WARM] * 2
    assert stores[0] == stores[1] != stores[2] == stores[3]
    theirs = [file for job, file, _ in asked if job in (XPROF, XPROF_WARM)]
    assert theirs[0] == theirs[1] != theirs[2] == theirs[3]
    assert {file for job, file, _ in asked if job in (TFCOMPARE, TFCOMPARE_WARM)} == {asked[0][1]}


def test_no_job_always_follows_the_same_one(asked: list[tuple[str, Path, str]], tmp_path: Path) -> None:
    """But for a warm one, which follows the one that leaves something for it."""
    (tmp_path / "file").write_bytes(b"recorded")
    for _ in range(2):
        Plan(runs=5, large_runs=1, slow_runs=1).rounds(tmp_path / "file")
    order = [job for job, _, _ in asked]
    assert order[: len(order) // 2] == order[len(order) // 2 :]
    before: dict[str, set[str]] = {job: set() for job in JOBS}
    for first, second in itertools.pairwise(order):
        before[second].add(first)
    assert {job: len(others) > 1 for job, others in before.items()} == {
        job: job not in (TFCOMPARE_WARM, XPROF_WARM) for job in JOBS
    }
    assert sorted(job for turn in TURNS for job in turn) == sorted(JOBS)


def test_large_files_are_measured_less_often(
    asked: list[tuple[str, Path, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmarks.__main__, "_LARGE_MEGABYTES", 0)
    (tmp_path / "file").write_bytes(b"recorded")
    Plan(runs=5, large_runs=3, slow_runs=2).rounds(tmp_path / "file")
    counts = Counter(job for job, _, _ in asked)
    assert (counts[TFCOMPARE], counts[TFCOMPARE_WARM], counts[XPROF], counts[XPROF_WARM]) == (3, 3, 2, 2)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("bench")
    out = folder / "results.md"
    small = ["--runs", "1", "--sizes", "0.05", "--compilations", "0"]
    main([*small, "--kinds", "tf_cpu", "--no-samples", "--out", str(out)])
    assert str(folder) not in out.read_text()
    return out.read_text()


def test_the_report_has_a_figure_for_every_job(page: str) -> None:
    tables = re.findall(r"^\| file \| MB \|(.*)\n\|.*\n\|[^|]*\|[^|]*\|(.*)\n", page, re.M)
    running, fresh, process, memory = (
        {
            job.strip(): float(cell.split()[0])
            for job, cell in zip(*(r.strip("|").split("|") for r in table), strict=True)
        }
        for table in tables
    )
    assert {*running, *fresh} == {*process} == {*memory} == {*JOBS}
    assert TFCOMPARE_AGAIN in running and TFCOMPARE_AGAIN not in fresh
    running.pop(TFCOMPARE_OP_STEPS)  # of so small a file they take less than can be measured
    assert min(min(table.values()) for table in (running, fresh, process, memory)) > 0


def test_the_report_names_its_command_and_not_the_machine(page: str) -> None:
    assert "`python -m benchmarks --kinds tf_cpu --sizes 0.05 --runs 1`" in page
    assert not re.search(rf"\b{re.escape(platform.node())}\b", page)
    assert "## What bounds it" in page
