"""Loading a run: what one gets, what one is told where it cannot be had, and that nothing on disk changes."""

from __future__ import annotations

import gzip
import os
import random
import shutil
import stat
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from tests.frames.tables import ops
from tests.profiles import CORPUS, SAMPLE_RUNS
from tests.xspace.fuzz_inputs import built
from tests.xspace_builder import Event, chunk, event, integer, line, meta, plane, space
from tfcompare import schema
from tfcompare.errors import NoRuns, NoSuchPlace, NoSuchSteps, NotAProfile, SeveralRuns, TfcompareError, Unknown
from tfcompare.run import load

STAMP = "2026_11_20_10_17_24"


def profile(*extra: Event | bytes, steps: int = 3, length: float = 80, started: int = 0, **texts: list[str]) -> bytes:
    """A host with as many steps, of an op each that takes 5 µs."""
    markers = [event("train", 100 * i, length, _r=1, step_num=i) for i in range(steps)]
    computed = [event("op:A", 100 * i + 1, 5) for i in range(steps)]
    environment = plane("Task Environment", stats={"profile_start_time": started}) if started else b""
    return space(plane("/host:CPU", line("python", *markers, *computed, *extra)), environment, **texts)


def put(folder: Path, name: str, data: bytes) -> Path:
    path = folder / "plugins" / "profile" / STAMP / f"{name}.xplane.pb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def refusal(place: Path, kind: type[TfcompareError]) -> str:
    """The one line that is told of a place that holds nothing to read."""
    with pytest.raises(TfcompareError) as refused:
        load(place)
    assert type(refused.value) is kind
    told = str(refused.value)
    assert "\n" not in told
    assert told.startswith(f"{place}")
    return told.removeprefix(str(place))


# Ranges of steps of several hosts


def steps_of_lengths(lengths_us: list[float], first: int = 0) -> bytes:
    """A host with a step of each of these lengths, numbered from `first`."""
    starts = [sum(lengths_us[:i]) + i for i in range(len(lengths_us))]
    markers = [
        event("train", at, us, _r=1, step_num=i)
        for i, (at, us) in enumerate(zip(starts, lengths_us, strict=True), first)
    ]
    return space(plane("/host:CPU", line("python", *markers, *(event("op:A", at + 1, 5) for at in starts))))


@pytest.mark.parametrize("later", [0, 3])
def test_a_range_of_steps_is_by_their_positions_in_the_run_on_every_host(tmp_path: Path, later: int) -> None:
    """The capture of host b begins some steps later."""
    lengths = [100.0 + i for i in range(20)]
    put(tmp_path, "a", steps_of_lengths(lengths))
    put(tmp_path, "b", steps_of_lengths(lengths[later:], first=later))
    whole, part = load(tmp_path), load(tmp_path, steps="5:10")
    assert whole.steps["step"].tolist() == list(range(20))
    assert part.steps["step"].tolist() == whole.steps["step"].tolist()[4:10] == list(range(4, 10))
    assert part.info.step_time_ms_mean == pytest.approx(whole.steps["duration_us"][4:10].mean() / 1000)
    assert part.table("steps").groupby("step")["host"].nunique().tolist() == [2] * 6
    assert part.found == whole.found
    alone = load(tmp_path / "plugins" / "profile" / STAMP / "b.xplane.pb", steps="5:10")
    assert (part.only("b").content_id == alone.content_id) is (later == 0)


def test_a_host_without_a_step_in_the_range_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, "a", steps_of_lengths([100.0] * 20))
    put(tmp_path, "b", steps_of_lengths([100.0] * 6))
    put(tmp_path, "damaged", b"no profile")
    part = load(tmp_path, steps="8:")
    assert (part.host_names, part.info.step_count) == (("a",), 13)
    assert "left out: host b has none of the chosen steps" in part.remarks
    assert any("damaged.xplane.pb: not a readable profile" in remark for remark in part.remarks)
    with pytest.raises(NoSuchSteps, match=f"^{tmp_path.name}: no step is in the range 50:; it has 20$"):
        load(tmp_path, steps="50:")


# What a run tells


def test_what_is_known_of_a_run(tmp_path: Path) -> None:
    path = put(tmp_path / "logs", "vm", profile(started=1_700_000_000_123_456_789))
    run = load(tmp_path / "logs")
    assert (run.id, run.path, run.host_names, run.devices, run.remarks) == (
        f"logs/plugins/profile/{STAMP}",
        path.parent,
        ("vm",),
        (),
        (),
    )
    info = run.info
    assert info.start_time == datetime(2023, 11, 14, 22, 13, 20, 123457, tzinfo=UTC)
    assert info.start_time_source == "profile"
    assert (info.hosts, info.host_names, info.device_type, info.device_count) == (1, "vm", "CPU", 0)
    assert (info.step_count, info.steps_included, info.step_source) == (3, 3, "step markers")
    assert (info.step_time_ms_median, info.step_time_ms_mean) == (0.08, 0.08)
    assert info.duration_ms == 0.28
    assert info.size_bytes == path.stat().st_size
    row = run.table("run_info")
    assert row.to_dict("records")[0] == {**vars(info), "start_time": pd.Timestamp(info.start_time)}


def test_without_a_start_in_the_profile_the_folder_tells_it(tmp_path: Path) -> None:
    put(tmp_path, "vm", profile())
    assert load(tmp_path).info.start_time_source == "folder name"


def test_every_table_has_its_declared_columns(tmp_path: Path) -> None:
    for data in built():
        put(tmp_path, "vm", data)
        run = load(tmp_path)
        for name, table in schema.TABLES.items():
            assert {c: str(t) for c, t in run.table(name).dtypes.items()} == {c.name: c.dtype for c in table.columns}


def test_copies_of_a_run_have_the_same_content_packed_or_not(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    put(one, "a", profile())
    put(one, "b", profile(steps=4))
    put(two, "y", profile(steps=4))
    path = put(two, "x", b"")
    path.unlink()
    (path.parent / "x.xplane.pb.gz").write_bytes(gzip.compress(profile()))
    assert load(one).content_id == load(two).content_id
    put(two, "y", profile(steps=4, length=81))
    assert load(one).content_id != load(two).content_id


def test_progress_is_told_host_by_host(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    for host in "abc":
        put(tmp_path, host, profile())
    load(tmp_path, progress=lambda done, of: told.append((done, of)))
    assert told == [(1, 3), (2, 3), (3, 3)]


def test_a_table_handed_out_may_be_changed(tmp_path: Path) -> None:
    put(tmp_path, "vm", profile())
    run = load(tmp_path)
    for name in schema.TABLES:
        kept = run.table(name).copy()
        frame = run.table(name)
        column = frame.columns[-1]
        frame[column] = frame[column].iloc[::-1].to_numpy()
        frame.iloc[:, 0] = "changed" if frame.dtypes.iloc[0] == "str" else 0
        frame["new"] = 1
        del frame[frame.columns[0]]
        pd.testing.assert_frame_equal(run.table(name), kept)


def test_hosts_and_devices_to_choose_from(tmp_path: Path) -> None:
    gpu = plane("/device:GPU:3", line("Stream", event("k", 0, 9, tf_op="op:A")))
    host = plane("/host:CPU", line("t", event("op:A", 0, 5)))
    put(tmp_path, "a", space(host, gpu))
    put(tmp_path, "b", space(host))
    run = load(tmp_path)
    assert (run.host_names, run.devices) == (("a", "b"), ("/device:GPU:3",))
    assert set(run.table("op_stats")["host"]) == {"all"}
    assert set(run.table("op_stats", host="b")["host"]) == {"b"}
    assert ops(run, host="b") == ["Host A op 1 5 5", "Host IDLE IDLE 0 0 0"]
    assert ops(run, device="/device:GPU:3") == ["Device A op 1 9 9", "Device IDLE IDLE 0 0 0"]
    assert ops(run, host="b", device="/device:GPU:3") == []


@pytest.mark.parametrize("order", [[None, "a"], ["a", None]])
def test_the_only_host_can_be_chosen_and_is_told_then(tmp_path: Path, order: list[str | None]) -> None:
    put(tmp_path, "a", profile())
    run = load(tmp_path)
    for host in order:
        told = {host or "all"}
        assert set(run.table("op_stats", host=host)["host"]) == told
        assert set(run.table("op_steps", host=host)["host"]) == told
        assert set(run.tables.step_cells("op_stats", host=host).keys["host"]) == told


@pytest.mark.parametrize(
    ("name", "choice", "told"),
    [
        ("op_stat", {}, "unknown table 'op_stat'; must be one of: "),
        ("op_stats", {"host": "c"}, r"unknown host of .* 'c'; must be one of: 'a', 'b'$"),
        ("op_stats", {"device": "GPU"}, r"unknown device of .* 'GPU'; must be one of: none$"),
        ("kernel_stats", {"device": "GPU"}, r"unknown table of single devices 'kernel_stats'; .*'op_steps', 'copies'$"),
    ],
)
def test_an_unknown_name_is_answered_with_those_there_are(
    tmp_path: Path, name: str, choice: dict[str, str], told: str
) -> None:
    put(tmp_path, "a", profile())
    put(tmp_path, "b", profile(steps=4))
    with pytest.raises(Unknown, match=told):
        load(tmp_path).table(name, **choice)


# What is told instead


def test_a_place_that_holds_no_run_or_several(tmp_path: Path) -> None:
    assert "there is no such file or folder" in refusal(tmp_path / "nowhere", NoSuchPlace)
    assert refusal(tmp_path, NoRuns).startswith(": no profile run here: looked for .xplane.pb and .xplane.pb.gz files")
    put(tmp_path / "before", "vm", profile())
    put(tmp_path / "after", "vm", profile())
    assert refusal(tmp_path, SeveralRuns).startswith(": holds 2 runs; name one of them: ")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is empty (0 bytes) where a profile was expected"),
        (
            random.Random(1).randbytes(1024),
            "not a readable profile: at byte 0 expected a plane, error, warning or host",
        ),
        (profile()[:200], "the file breaks off at byte 200"),
    ],
    ids=["empty", "random", "cut"],
)
def test_files_whose_outline_tells_that_they_are_none(tmp_path: Path, data: bytes, told: str) -> None:
    path = put(tmp_path, "vm", data)
    assert told in refusal(path, NoRuns)


def test_a_file_that_is_damaged_within(tmp_path: Path) -> None:
    whole = profile()
    at = whole.index(b"python") + 8
    path = put(tmp_path, "vm", whole[:at] + b"\xff" * 20 + whole[at + 20 :])
    told = refusal(path, NotAProfile)
    assert told.startswith(": not a readable profile: at byte ")


def test_a_damaged_program_within_a_profile(tmp_path: Path) -> None:
    kernel = event("gemm", 0, 1, hlo_op="dot.1", program_id=1)
    broken = plane("/host:metadata", line("", event(meta("jit_f", "", hlo_proto=b"\x0a\x7f"), 0, 0)), ids={"jit_f": 1})
    path = put(tmp_path, "vm", space(plane("/device:GPU:0", line("Stream", kernel)), broken))
    assert "HLO module" in refusal(path, NotAProfile)


def test_a_corrupt_profile_and_files_of_an_older_profiler_of_the_corpus() -> None:
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus of real profiles at {CORPUS} (set TFCOMPARE_CORPUS)")
    with pytest.raises(TfcompareError, match=r"^[^\n]*tpu_inference_2\.xplane\.pb: not a readable profile: [^\n]*$"):
        load(CORPUS / "corrupt")
    with pytest.raises(NoRuns, match=r"^[^\n]*holds only tool files of an older profiler[^\n]*$"):
        load(CORPUS / "tool_files_only")


# Several hosts


def test_a_damaged_host_is_told_of_and_the_others_are_there(tmp_path: Path) -> None:
    whole = profile(steps=5)
    put(tmp_path, "a", profile())
    within = put(tmp_path, "b", whole[:100] + b"\xff" * 30 + whole[130:])
    cut = put(tmp_path, "c", whole[:-9])
    put(tmp_path, "d", profile(length=90))
    run = load(tmp_path)
    assert run.host_names == ("a", "d")
    assert run.steps["duration_us"].tolist() == [90, 90, 90]
    assert len(run.remarks) == 2
    assert run.remarks[0].startswith(f"{cut}: not a readable profile: ")
    assert run.remarks[1].startswith(f"left out: {within}: not a readable profile: ")
    assert run.info.warnings == "; ".join(run.remarks)


def test_hosts_that_cannot_be_read_at_all(tmp_path: Path) -> None:
    whole = profile()
    for host in "ab":
        put(tmp_path, host, whole[:60] + b"\xff" * 30 + whole[90:])
    with pytest.raises(NotAProfile, match=r"a\.xplane\.pb: not a readable profile"):
        load(tmp_path)


def test_identical_hosts_are_told_of(tmp_path: Path) -> None:
    for host in "abc":
        put(tmp_path, host, profile(steps=4 if host == "b" else 3))
    assert load(tmp_path).remarks == ("the files of hosts a, c are identical: one capture is counted 2 times",)


def test_what_the_profiler_remarks_is_told_in_a_line_each(tmp_path: Path) -> None:
    put(tmp_path, "a", profile(errors=["lost\n 5 events"], warnings=["x" * 1000]))
    assert load(tmp_path).remarks == ("lost 5 events", "x" * 300 + " …")
    put(tmp_path, "b", profile(steps=4, warnings=["late"]))
    assert load(tmp_path).remarks == ("a: lost 5 events", f"a: {'x' * 300} …", "b: late")


def test_odd_times_and_absent_names_are_remarked(tmp_path: Path) -> None:
    put(tmp_path, "a", profile(event("op:A", 5, 1 << 50), chunk(4, integer(1, 99)), chunk(4, b"")))
    assert load(tmp_path).remarks == (
        "events without a name in the file: 2",
        "events with times that cannot be: 1; do not trust their place and length",
    )


# Traces on disk


def state(folder: Path) -> dict[str, tuple[int, ...]]:
    """What is on disk below a folder: sizes, modes, times of change, and of access where looking here is none."""
    stats = {path: path.stat() for path in (folder, *folder.rglob("*"))}
    return {
        str(path): (s.st_size, s.st_mode, s.st_mtime_ns, s.st_ctime_ns, s.st_atime_ns if path.is_file() else 0)
        for path, s in stats.items()
    }


def test_reading_leaves_no_trace(tmp_path: Path) -> None:
    logdir = shutil.copytree(SAMPLE_RUNS["filters_16_8"], tmp_path / "logs")
    (folder,) = (logdir / "plugins" / "profile").iterdir()
    (folder / "damaged.xplane.pb").write_bytes(b"\xff" * 100)
    for path in logdir.rglob("*"):
        if path.is_file():
            path.chmod(stat.S_IRUSR)
            os.utime(path, ns=(10**18, 10**18 + 1))
    for path in (logdir, *logdir.rglob("*")):
        if path.is_dir():
            path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    before = state(logdir)
    try:
        run = load(logdir)
        for name in schema.TABLES:
            run.table(name)
        assert state(logdir) == before
    finally:
        for path in (logdir, *logdir.rglob("*")):
            if path.is_dir():
                path.chmod(stat.S_IRWXU)


def test_a_loaded_run_does_without_its_files(tmp_path: Path) -> None:
    put(tmp_path / "logs", "vm", profile())
    run = load(tmp_path / "logs")
    shutil.rmtree(tmp_path / "logs")
    assert run.info.step_count == 3
    assert ops(run)[1:] == ["Host A op 3 15 15"]
