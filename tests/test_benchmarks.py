"""The benchmarks: what the generator writes, and that the yardstick can be laid on; never how long anything takes."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.generate import generate
from benchmarks.jobs import JOBS
from tests import xprof_oracle
from tfcompare.frames.steps import WHOLE_PROFILE
from tfcompare.run import Run, load
from tfcompare.xspace import XSpace, read

KEYS = ["host_or_device", "op_name", "op_type"]
TOLERANCE = 0.001


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("generated") / "small.xplane.pb"
    generate(path, 0.3)
    return path


@pytest.fixture(scope="module")
def run(file: Path) -> Run:
    return load(file)


@pytest.fixture(scope="module")
def space(file: Path) -> XSpace:
    return read(file).space


def test_the_same_arguments_give_the_same_bytes(file: Path, tmp_path: Path) -> None:
    generate(tmp_path / "again", 0.3)
    generate(tmp_path / "other", 0.3, seed=2)
    assert (tmp_path / "again").read_bytes() == file.read_bytes()
    assert (tmp_path / "other").read_bytes() != file.read_bytes()


@pytest.mark.parametrize("megabytes", [0.1, 1.0])
def test_a_file_is_about_as_large_as_asked_for(tmp_path: Path, megabytes: float) -> None:
    generate(tmp_path / "file", megabytes)
    assert (tmp_path / "file").stat().st_size == pytest.approx(megabytes * 1e6, rel=0.4)


def test_a_file_looks_like_a_recording(run: Run, space: XSpace) -> None:
    assert run.info.step_source != WHOLE_PROFILE
    assert run.info.step_count > 5
    assert run.info.framework == "TensorFlow"
    assert run.remarks == ()
    assert 25 < len(space.buffer) / len(space.events) < 45
    assert 1 < len(space.event_stats.owner) / len(space.events) < 4


def test_steps_differ_and_so_do_the_times_of_an_op(run: Run) -> None:
    ops = run.table("op_steps")
    conv = ops[ops["op_name"] == "model/block_0/conv/Conv2D"]
    assert conv["self_time_us"].nunique() == run.info.step_count
    assert run.steps["duration_us"].nunique() == run.info.step_count


def test_memory_never_falls_below_nothing(space: XSpace) -> None:
    in_use = space.numbers("bytes_allocated")[1]
    assert len(in_use) > 100
    assert in_use.min() > 0


def test_xprof_reads_it_and_gives_the_same_op_stats(file: Path, run: Run) -> None:
    xprof = xprof_oracle.framework_op_stats(file)
    both = run.table("op_stats").merge(xprof, on=KEYS, how="outer", suffixes=("", "_xprof"), indicator=True)
    assert both["_merge"].eq("both").all()
    difference = (both["self_time_us"] - both["self_time_us_xprof"]).abs()
    assert difference.le(TOLERANCE * both["self_time_us_xprof"]).all()


def test_xprof_finds_the_same_steps(file: Path, run: Run) -> None:
    steps = run.table("steps")
    xprof = xprof_oracle.step_table(file)
    assert xprof["duration_us"].to_numpy() == pytest.approx(
        steps.loc[steps["included"], "duration_us"].to_numpy(), rel=TOLERANCE
    )


def test_the_report_has_a_figure_for_every_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results.md"
    main(["--runs", "1", "--sizes", "0.05", "--compilations", "0", "--samples", str(tmp_path), "--out", str(out)])
    page = out.read_text()
    assert capsys.readouterr().out.strip() == page.strip()
    assert [line.removeprefix("## ").split(":")[0] for line in page.splitlines() if line.startswith("## ")] == [
        "Time from the file to the tables, in seconds",
        "Time of the whole process, in seconds",
        "Peak memory, in MB",
        "Growth",
        "First use",
        "What bounds it",
    ]
    header, _, row = [line for line in page.splitlines() if line.startswith("|")][:3]
    assert header.count("|") == row.count("|") == len(JOBS) + 3
    assert str(tmp_path) not in page
    assert not re.search(rf"\b{re.escape(platform.node())}\b", page)
