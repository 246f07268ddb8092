"""Which files are hosts of one run: loose files that were captured together, and folders of hosts seconds apart."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest

from tests.xspace_builder import event, line, plane, space
from tfcompare import find_runs, load
from tfcompare.errors import SeveralRuns
from tfcompare.sources.logdir.hosts import Outline, joinable, outline

SECOND_NS = 1_000_000_000
BEGIN_NS = 1_800_000_000 * SECOND_NS


def profile(start_s: float | None, seconds: float = 2.0, *devices: str) -> bytes:
    """A profile that was captured that long after a common time, or that carries no time."""
    planes = [plane("/host:CPU", line("python", event("work", 0, 10)))]
    planes += [plane(f"/device:{name}:0", line("Stream #1", event(name, 0, 10))) for name in devices]
    if start_s is not None:
        start_ns = BEGIN_NS + int(start_s * SECOND_NS)
        times = {"profile_start_time": start_ns, "profile_stop_time": start_ns + int(seconds * SECOND_NS)}
        planes.append(plane("Task Environment", stats=times))
    return space(*planes)


def files(folder: Path, **profiles: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in profiles.items():
        (folder / f"{name}.xplane.pb").write_bytes(content)
    return folder


def hosts(place: Path, *, join: bool = False) -> list[tuple[str, ...]]:
    return sorted(run.host_names for run in find_runs(place, join=join))


def test_the_outline_has_times_and_kinds_of_devices(tmp_path: Path) -> None:
    content = profile(1.0, 2.0, "GPU")
    expected = Outline(BEGIN_NS + SECOND_NS, BEGIN_NS + 3 * SECOND_NS, frozenset({"GPU"}))
    plain, packed = tmp_path / "a.xplane.pb", tmp_path / "a.xplane.pb.gz"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    assert outline(plain) == outline(packed) == expected
    for length in range(len(content)):
        plain.write_bytes(content[:length])
        assert outline(plain).devices <= {"GPU"}, "a damaged file has no more to say"
    for at in range(10, len(packed.read_bytes())):
        damaged = bytearray(packed.read_bytes())
        damaged[at] ^= 0xFF
        (tmp_path / "b.xplane.pb.gz").write_bytes(damaged)
        assert outline(tmp_path / "b.xplane.pb.gz").devices <= {"GPU"}
    assert outline(tmp_path / "missing") == Outline()


def test_loose_files_that_were_captured_together_are_hosts_of_one_run(tmp_path: Path) -> None:
    folder = files(tmp_path / "loose", a=profile(0.0), b=profile(1.5), c=profile(3.0))
    assert hosts(folder) == [("a", "b", "c")]
    untimed = files(tmp_path / "untimed", a=profile(None), b=profile(None), c=profile(0.0))
    assert hosts(untimed) == [("a", "b", "c")]


def test_loose_files_of_other_times_or_devices_are_runs_of_their_own(tmp_path: Path) -> None:
    folder = files(
        tmp_path / "loose",
        monday=profile(0.0),
        tuesday=profile(86_400.0),
        gpu_0=profile(0.0, 2.0, "GPU"),
        gpu_1=profile(1.0, 2.0, "GPU"),
        tpu=profile(0.0, 2.0, "TPU"),
        unknown=profile(None),
    )
    assert hosts(folder) == [("gpu_0", "gpu_1"), ("monday",), ("tpu",), ("tuesday",), ("unknown",)]
    assert sorted(run.name for run in find_runs(folder)) == ["gpu_0", "monday", "tpu", "tuesday", "unknown"]
    with pytest.raises(SeveralRuns, match=r"holds 5 runs.* put its files into a folder of their own"):
        load(folder)
    assert load(folder / "tpu.xplane.pb").host_names == ("tpu",)
    (pair,) = [run for run in find_runs(folder) if len(run.files) == 2]
    assert load(pair).host_names == ("gpu_0", "gpu_1")


def test_what_a_profiler_put_into_one_folder_is_one_run(tmp_path: Path) -> None:
    run = files(tmp_path / "plugins/profile/run", a=profile(0.0), b=profile(86_400.0), c=profile(0.0, 2.0, "GPU"))
    assert hosts(tmp_path) == hosts(run) == [("a", "b", "c")]


STAMPS = ("2026_11_24_10_00_01", "2026_11_24_10_00_03")


def stamped(logdir: Path, first: dict[str, bytes], second: dict[str, bytes], stamps: tuple[str, str] = STAMPS) -> Path:
    for stamp, profiles in zip(stamps, (first, second), strict=True):
        files(logdir / "plugins" / "profile" / stamp, **profiles)
    return logdir


def test_hosts_captured_together_into_folders_of_their_own_can_be_joined(tmp_path: Path) -> None:
    logdir = stamped(tmp_path / "logs", {"a": profile(0.0)}, {"b": profile(1.5)})
    between = files(logdir / "plugins/profile/2026_11_24_10_00_02", gpu=profile(0.5, 2.0, "GPU"))
    assert hosts(logdir, join=True) == [("a", "b"), ("gpu",)]
    shutil.rmtree(between)
    assert hosts(logdir) == [("a",), ("b",)]
    assert hosts(logdir, join=True) == [("a", "b")]
    (run,) = find_runs(logdir, join=True)
    assert run.path.name == STAMPS[0]
    with pytest.raises(SeveralRuns, match="were captured at the same time on different hosts: --join makes them one"):
        load(logdir)
    assert load(logdir, join=True).host_names == ("a", "b")
    for stamp in STAMPS:
        assert load(logdir / "plugins" / "profile" / stamp, join=True).host_names == ("a", "b")
        assert len(load(logdir / "plugins" / "profile" / stamp).host_names) == 1


@pytest.mark.parametrize(
    ("first", "second", "stamps"),
    [
        ({"a": profile(0.0)}, {"a": profile(1.0)}, STAMPS),
        ({"a": profile(0.0)}, {"b": profile(9.0)}, STAMPS),
        ({"a": profile(0.0)}, {"b": profile(None)}, STAMPS),
        ({"a": profile(0.0)}, {"b": profile(1.0, 2.0, "GPU")}, STAMPS),
        ({"a": profile(0.0)}, {"b": profile(1.0)}, (STAMPS[0], "2026_11_24_10_30_00")),
        ({"a": profile(0.0)}, {"b": profile(1.0)}, ("before", "after")),
    ],
    ids=["one host", "one after the other", "no time", "other devices", "stamps far apart", "names"],
)
def test_other_runs_stay_apart(tmp_path, first, second, stamps) -> None:
    logdir = stamped(tmp_path, first, second, stamps)
    assert joinable(find_runs(logdir)) == []
    assert len(find_runs(logdir, join=True)) == 2


def test_each_of_two_captures_is_joined_by_itself(tmp_path: Path) -> None:
    profiles = tmp_path / "plugins" / "profile"
    captured = {1: ("a", 0.0), 2: ("b", 0.5), 3: ("c", 1.0), 40: ("a", 39.0), 41: ("b", 39.5)}
    for second, (host, start_s) in captured.items():
        files(profiles / f"2026_11_24_10_00_{second:02}", **{host: profile(start_s)})
    assert hosts(tmp_path, join=True) == [("a", "b"), ("a", "b", "c")]
