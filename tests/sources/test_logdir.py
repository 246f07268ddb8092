import gzip
import os
import random
import re
import shutil
import time
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from tfcompare.errors import NoRuns, NoSuchPlace, SeveralRuns
from tfcompare.sources.logdir import find_run, find_runs
from tfcompare.sources.logdir.files import host_of, text_of
from tfcompare.sources.logdir.naming import Address, display_names, stamp_time

PLANE = b"\x0a\x0b\x12\x09/host:CPU"
PROFILE = PLANE + b"\x0a\x13\x12\x11Task Environment_" + b"\x22\x02vm"
STAMP = "2026_11_20_10_17_24"
LATER = "2026_11_20_10_18_00"
KERAS, LATER_KERAS = "20261104-213654", "20261104-214500"


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def put(path: Path, data: bytes = PROFILE, seconds: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    if seconds is not None:
        os.utime(path, (seconds, seconds))
    return path


def add_run(logdir: Path, stamp: str = STAMP, host: str = "vm", data: bytes = PROFILE) -> Path:
    return put(logdir / "plugins" / "profile" / stamp / f"{host}.xplane.pb", data).parent


def listing(*places) -> list[str]:
    """Each run as `name | id | hosts | problems`, the paths in problems less their folders."""
    lines = []
    for run in find_runs(*places):
        problems = " & ".join(p.replace(str(run.path.parent) + os.sep, "") for p in run.problems)
        lines.append(f"{run.name} | {run.id} | {','.join(f.host for f in run.files)} | {problems}".strip(" |"))
    return lines


def only_problem(place) -> str:
    (run,) = find_runs(place)
    assert not run.is_readable
    (problem,) = run.problems
    return problem


# Layouts


@pytest.mark.parametrize(
    ("file", "place", "expected"),
    [
        ("a/plugins/profile/S/vm.xplane.pb", "a", "a | a/plugins/profile/S | vm"),
        ("a/train/plugins/profile/S/vm.xplane.pb", "a", "a | a/train/plugins/profile/S | vm"),
        ("fit/S/train/plugins/profile/S/vm.xplane.pb", ".", "S | logs/fit/S/train/plugins/profile/S | vm"),
        ("a/plugins/profile/S", "a/plugins/profile/S/vm.xplane.pb", "a | vm.xplane.pb | vm"),
        ("a/plugins/profile/S/vm.xplane.pb", "a/plugins/profile/S", "a | S | vm"),
        ("a/plugins/profile/S/vm.xplane.pb", "a/plugins/profile", "a | profile/S | vm"),
        ("a/plugins/profile/named/vm.xplane.pb", "a", "named | a/plugins/profile/named | vm"),
        ("copied/vm.xplane.pb", ".", "copied | logs/copied | vm"),
        ("vm.xplane.pb", ".", "logs | logs | vm"),
        ("before.xplane.pb", "before.xplane.pb", "before | before.xplane.pb | before"),
        ("a/vm.xplane.pb.gz", "a/vm.xplane.pb.gz", "vm | vm.xplane.pb.gz | vm"),
        ("a/foo.pb", "a/foo.pb", "foo | foo.pb | foo"),
        ("a/10.0.0.2_6009.xplane.pb", "a", "a | a | 10.0.0.2_6009"),
        ("a/chi-013.ord.example.com.xplane.pb", "a", "a | a | chi-013.ord.example.com"),
        ("a/.xplane.pb", "a", "a | a | unnamed"),
        (".hidden/vm.xplane.pb", ".hidden", ".hidden | .hidden | vm"),
    ],
)
def test_every_layout_is_found_from_every_place(tmp_path, file, place, expected):
    logs = tmp_path / "logs"
    file = logs / file.replace("S", STAMP)
    if not file.suffix:
        file = file / "vm.xplane.pb" if "profile" in file.parts else file
    put(file, gzip.compress(PROFILE) if file.suffix == ".gz" else PROFILE)
    assert listing(logs / place.replace("S", STAMP)) == [expected.replace("S", STAMP)]


def test_a_run_tells_its_files_size_and_time(tmp_path):
    folder = add_run(tmp_path / "logs", host="vm-2")
    add_run(tmp_path / "logs", host="10.0.0.1_6009", data=PLANE)
    put(folder / "vm-2.hlo_proto.pb")
    put(folder / "ALL_HOSTS.op_stats_v2.pb")
    put(folder / "vm-2.trace.json.gz")
    put(folder / "x.SSTABLE")
    put(folder / "._vm-2.xplane.pb", b"AppleDouble")
    (run,) = find_runs(tmp_path / "logs")
    assert run.path == folder
    assert [(f.host, f.path.name, f.size_bytes) for f in run.files] == [
        ("10.0.0.1_6009", "10.0.0.1_6009.xplane.pb", len(PLANE)),
        ("vm-2", "vm-2.xplane.pb", len(PROFILE)),
    ]
    assert run.files[0].modified_ns == run.files[0].path.stat().st_mtime_ns
    assert run.size_bytes == len(PLANE) + len(PROFILE)
    assert (run.recorded, run.recorded_source) == (datetime(2026, 11, 20, 10, 17, 24, tzinfo=UTC), "folder name")
    assert run.problems == ()
    assert find_run(tmp_path) == find_run(tmp_path)
    assert hash(run) == hash(find_run(tmp_path / "logs"))


def test_a_profile_and_its_gzip_are_one_host(tmp_path):
    put(tmp_path / "a/vm.xplane.pb")
    put(tmp_path / "a/vm.xplane.pb.gz", gzip.compress(PROFILE))
    run = find_run(tmp_path)
    assert [f.path.name for f in run.files] == ["vm.xplane.pb"]
    assert "vm.xplane.pb.gz: is passed over, since vm.xplane.pb is of the same host" in run.problems[0]
    put(tmp_path / "a/vm.xplane.pb", b"")
    run = find_run(tmp_path)
    assert [f.path.name for f in run.files] == ["vm.xplane.pb.gz"]
    assert "is empty" in run.problems[0]


def test_runs_within_run_folders_are_found_and_some_folders_passed_over(tmp_path):
    put(tmp_path / "logs/vm.xplane.pb")
    put(tmp_path / "logs/inner/vm.xplane.pb")
    for name in (".git", ".venv", "node_modules", "__pycache__", ".hidden"):
        put(tmp_path / "logs" / name / "vm.xplane.pb")
    assert sorted(run.id for run in find_runs(tmp_path / "logs")) == ["logs", "logs/inner"]


# Places


def test_a_place_goes_by_any_spelling(tmp_path, monkeypatch):
    add_run(tmp_path / "logs")
    (tmp_path / "link").symlink_to("logs")
    monkeypatch.chdir(tmp_path / "logs")
    monkeypatch.setenv("HOME", str(tmp_path))
    below = f"plugins/profile/{STAMP}"
    for place in (".", "../logs", "../logs/", "~/logs", "../link/../logs", Path(), tmp_path / "logs"):
        assert [run.id for run in find_runs(place)] == [f"logs/{below}"]
    assert [run.id for run in find_runs(tmp_path / "link")] == [f"link/{below}"]
    (tmp_path / "logs/~nobody-here").mkdir()
    put(tmp_path / "logs/~nobody-here/vm.xplane.pb")
    assert find_run("~nobody-here").id == "~nobody-here"


def test_places_of_one_name_get_more_of_their_path(tmp_path):
    for place in ("x/logs", "y/logs", "z"):
        add_run(tmp_path / place)
    assert listing(tmp_path / "x/logs", tmp_path / "y/logs", tmp_path / "z") == [
        f"x | x/logs/plugins/profile/{STAMP} | vm",
        f"y | y/logs/plugins/profile/{STAMP} | vm",
        f"z | z/plugins/profile/{STAMP} | vm",
    ]


def test_what_lies_in_two_places_is_the_first_ones(tmp_path):
    inner, outer = tmp_path / "logs/a", tmp_path / "logs"
    folder = add_run(inner)
    add_run(outer / "b", LATER)
    file = folder / "vm.xplane.pb"
    below = f"plugins/profile/{STAMP}"
    for places, expected in {
        (inner, outer): [f"a/{below}", f"logs/b/plugins/profile/{LATER}"],
        (outer, inner): [f"logs/a/{below}", f"logs/b/plugins/profile/{LATER}"],
        (inner, file): [f"a/{below}"],
        (file, inner): ["vm.xplane.pb"],
    }.items():
        assert [run.id for run in find_runs(*places)] == expected
    add_run(inner, host="vm2")  # now the folder holds more than the file named before it
    assert [run.id for run in find_runs(file, inner)] == [f"a/{below}", "vm.xplane.pb"]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("gone", "there is no such file or folder; check the spelling of {tmp}/gone"),
        ("a.txt/x", "there is no such file or folder"),
        ("lost", "is a link to {tmp}/nowhere, which does not exist"),
        ("circle", "cannot be opened"),
        ("nul\0", "is not the name of a file or folder"),
        ("x" * 300, "cannot be opened"),
    ],
)
def test_a_place_that_is_not_there(tmp_path, place, said):
    put(tmp_path / "a.txt")
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(NoSuchPlace, match=re.escape(said.format(tmp=tmp_path))):
        find_runs(tmp_path / place)


def test_no_place_an_empty_one_and_half_a_url():
    with pytest.raises(NoRuns, match="no place was given"):
        find_runs()
    with pytest.raises(NoSuchPlace, match="no path was given"):
        find_runs("")
    with pytest.raises(NoSuchPlace, match=r"no such file or folder; a URL has two slashes: gs://bucket/logs"):
        find_runs("gs:/bucket/logs")


# No runs, one run, several


def test_a_place_without_runs_says_what_it_holds_instead(tmp_path):
    (tmp_path / "logs/train").mkdir(parents=True)
    with pytest.raises(NoRuns) as empty:
        find_runs(tmp_path / "logs")
    assert str(empty.value) == (
        f"{tmp_path}/logs: no profile run here: looked for .xplane.pb and .xplane.pb.gz files in this folder and "
        "1 folder below it, found no file at all; record a run with tf.profiler.experimental.start, or name the "
        "folder that holds plugins/profile"
    )
    put(tmp_path / "logs/notes.txt")
    with pytest.raises(NoRuns, match="found 1 other file;"):
        find_runs(tmp_path / "logs")
    put(tmp_path / "logs/train/events.out.tfevents.1.vm")
    put(tmp_path / "logs/events.out.tfevents.1.vm.profile-empty")
    with pytest.raises(NoRuns, match="found 2 TensorBoard event files but no profile"):
        find_runs(tmp_path / "logs")
    with pytest.raises(NoRuns, match="is a TensorBoard event file"):
        find_runs(tmp_path / "logs/train/events.out.tfevents.1.vm")


def test_a_place_without_runs_is_listed_beside_one_that_has_some(tmp_path):
    add_run(tmp_path / "good")
    put(tmp_path / "bare/notes.txt", seconds=0)
    good, bare = find_runs(tmp_path / "bare", tmp_path / "good")
    assert (good.name, good.problems, bare.name) == ("good", (), "bare")
    assert "found 1 other file" in bare.problems[0]


def test_find_run_wants_exactly_one(tmp_path):
    for minute in range(12):
        add_run(tmp_path / f"logs/r{minute}", f"2026_11_20_10_{minute:02}_00")
    with pytest.raises(SeveralRuns) as caught:
        find_run(tmp_path / "logs")
    text = str(caught.value)
    assert text.startswith(f"{tmp_path}/logs: holds 12 runs; name one of them: r0 ({tmp_path}/logs/r0/plugins/profile/")
    assert text.endswith("_10_09_00) and 2 more")
    assert find_run(tmp_path / "logs/r3").name == "r3"
    add_run(tmp_path / "bad", data=b"")
    with pytest.raises(NoRuns, match="is empty"):
        find_run(tmp_path / "bad")


# Time, keys, order


def test_stamps():
    same = (
        "2026_11_20_10_17_24",
        "2026-11-20_10-17-24",
        "20261120-101724",
        "20261120101724",
        "b_2026_11_20_10_17_24.1",
    )
    assert {stamp_time(name) for name in same} == {datetime(2026, 11, 20, 10, 17, 24, tzinfo=UTC)}
    for name in ("2026_13_20_10_17_24", "0000_00_00_00_00_00", "12026_11_20_10_17_24", "named"):
        assert stamp_time(name) is None, name


def test_a_stamp_is_local_time_and_file_time_stands_in(tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    add_run(tmp_path / "stamped")
    folder = add_run(tmp_path / "named", "warmup")
    put(folder / "vm.xplane.pb", seconds=1_700_000_000)
    put(folder / "vm2.xplane.pb", seconds=1_800_000_000)
    stamped, named = find_runs(tmp_path)
    assert (stamped.recorded, stamped.recorded_source) == (datetime(2026, 11, 20, 9, 17, 24, tzinfo=UTC), "folder name")
    assert (named.recorded, named.recorded_source) == (datetime(2027, 1, 15, 8, 0, tzinfo=UTC), "file time")
    assert find_run(tmp_path / "stamped/plugins/profile" / STAMP / "vm.xplane.pb").recorded == stamped.recorded


def test_the_stat_key_follows_every_file(tmp_path):
    folder = add_run(tmp_path / "logs")
    keys = [find_run(tmp_path).stat_key]
    assert find_run(folder).stat_key == keys[0]
    for name, data, seconds in (("vm", PROFILE, 5), ("vm", PROFILE + PLANE, 5), ("vm2", PROFILE, None)):
        put(folder / f"{name}.xplane.pb", data, seconds)
        keys.append(find_run(tmp_path).stat_key)
    shutil.copytree(tmp_path / "logs", tmp_path / "copy")
    bad = [put(tmp_path / name / "vm.xplane.pb", b"") for name in ("bad1", "bad2")]
    keys += [find_runs(place)[0].stat_key for place in (tmp_path / "copy", *bad)]
    assert len(set(keys)) == len(keys) == 7


def test_the_order_in_which_folders_are_listed_does_not_matter(tmp_path, monkeypatch):
    logs = tmp_path / "logs"
    for i in range(6):
        add_run(logs / f"m{i % 3}", f"2026_11_20_10_17_{i:02}", host=f"h{i}")
    add_run(logs / "m0", "2026_11_20_10_17_00", host="h9", data=b"")
    add_run(tmp_path / "outside")
    (logs / "link_b").symlink_to(tmp_path / "outside")
    (logs / "link_a").symlink_to(tmp_path / "outside")
    (logs / "lost").symlink_to("gone")
    expected = find_runs(logs)
    assert [run.recorded for run in expected] == sorted(run.recorded for run in expected)
    assert any("link_a" in run.id for run in expected)
    real_scandir = os.scandir

    def shuffled(listed):
        with real_scandir(listed) as entries:
            found = list(entries)
        rng.shuffle(found)
        handle = MagicMock()
        handle.__enter__.return_value = found
        return handle

    monkeypatch.setattr(os, "scandir", shuffled)
    for seed in range(10):
        rng = random.Random(seed)
        assert find_runs(logs) == expected


def test_a_logdir_is_left_as_it_was(tmp_path):
    folder = add_run(tmp_path / "logs")
    add_run(tmp_path / "logs", host="bad", data=b"xyz")
    paths = [p for p in tmp_path.rglob("*") if "logs" in p.parts]
    for path in paths:  # an access time before the change is one that reading would set anew
        os.utime(path, (1000, 2000))

    def times():
        return {p: (p.stat().st_atime_ns, p.stat().st_mtime_ns, p.stat().st_ctime_ns) for p in paths}

    before = times()
    find_runs(tmp_path / "logs")
    find_runs(folder / "vm.xplane.pb")
    assert times() == before
    assert sorted(p for p in tmp_path.rglob("*") if "logs" in p.parts) == sorted(paths)


# Names


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["ae/f_16/plugins/profile/A", "ae/f_512/plugins/profile/B"], ["f_16", "f_512"]),
        (["ae/f_16/plugins/profile/A", "ae/f_16/plugins/profile/B"], ["A", "B"]),
        (
            ["ae/f_16/plugins/profile/A", "ae/f_16/plugins/profile/B", "ae/f_512/plugins/profile/A"],
            ["f_16/A", "f_16/B", "f_512"],
        ),
        (["logs/fit/A/train/plugins/profile/A", "logs/fit/B/train/plugins/profile/B"], ["A", "B"]),
        (["logs/m/train/plugins/profile/A", "logs/m/validation/plugins/profile/A"], ["train", "validation"]),
        (["logs", "logs/inner"], ["logs", "inner"]),
        (["logs/a/b", "logs/a/c", "logs/d/b"], ["a/b", "a/c", "d/b"]),
        (["logs/my/plugins/x", "logs/profile/x"], ["my/plugins", "profile"]),
        (["logs/train"], ["logs"]),
        (["ae/cpu/f_16/A", "ae/gpu/f_16_sim/A", "ae/gpu/f_8_sim/A"], ["f_16", "f_16_sim", "f_8_sim"]),
        (["lr_1/seed_1", "lr_2/seed_1", "lr_2/seed_2"], ["lr_1/seed_1", "lr_2/seed_1", "lr_2/seed_2"]),
        (["A"], ["A"]),
        ([], []),
        (["logs/fit/K/train/plugins/profile/A", "logs/fit/L/train/plugins/profile/B"], ["K", "L"]),
        (
            [f"logs/fit/{stamp}/{part}/plugins/profile/A" for stamp in "KL" for part in ("train", "validation")],
            ["K/train", "K/validation", "L/train", "L/validation"],
        ),
        (
            ["cnn/K/train/plugins/profile/A", "cnn/L/train/plugins/profile/B", "mlp/K/train/plugins/profile/A"],
            ["cnn/K", "cnn/L", "mlp"],
        ),
        (["logs/before/train/plugins/profile/A", "logs/after/train/plugins/profile/B"], ["before", "after"]),
        (["old/logs/fit/K/train/plugins/profile/A", "new/plugins/profile/B"], ["old", "new"]),
        (["lr_1/out/tb/train/plugins/profile/A", "lr_2/out/tb/train/plugins/profile/B"], ["lr_1", "lr_2"]),
    ],
)
def test_display_names(ids, expected):
    stamps = {"A": STAMP, "B": LATER, "K": KERAS, "L": LATER_KERAS}
    addresses = [tuple(stamps.get(part, part) for part in run.split("/")) for run in ids]
    wanted = ["/".join(stamps.get(part, part) for part in name.split("/")) for name in expected]
    assert display_names([Address("/".join(parts), parts, len(parts)) for parts in addresses]) == wanted


def test_runs_named_one_by_one_are_told_apart_by_the_folders_above(tmp_path):
    before, after = add_run(tmp_path / "before"), add_run(tmp_path / "after", LATER)
    add_run(tmp_path / "after", LATER, host="vm2")
    assert [run.name for run in find_runs(after, before)] == ["before", "after"]
    files = [after / "vm.xplane.pb", after / "vm2.xplane.pb", before / "vm.xplane.pb"]
    assert [run.name for run in find_runs(*files)] == ["before", "after/vm", "after/vm2"]
    old, new = put(tmp_path / "got/old.xplane.pb", seconds=1), put(tmp_path / "got/new.xplane.pb", seconds=2)
    assert [run.name for run in find_runs(new, old)] == ["old", "new"]


def test_hosts_with_dots_name_the_files_of_one_run_folder(tmp_path):
    folder = add_run(tmp_path / "x", host="host.1.example.com")
    add_run(tmp_path / "x", host="host.2.example.com")
    assert [run.name for run in find_runs(folder)] == ["x"]
    names = [run.name for run in find_runs(*sorted(folder.iterdir()))]
    assert names == ["host.1.example.com", "host.2.example.com"]


def test_names_are_text_whatever_the_file_system_holds(tmp_path):
    add_run(tmp_path / "logs" / os.fsdecode(b"caf\xe9"), host="h\nx")
    (run,) = find_runs(tmp_path / "logs")
    assert run.id == rf"logs/caf\xe9/plugins/profile/{STAMP}"
    assert run.name == r"caf\xe9"
    assert run.files[0].host == r"h\nx"
    assert len(run.stat_key) == 32
    assert text_of("é\x1b[31m") == r"é\x1b[31m"


def test_hosts():
    expected = {
        "a.b.xplane.pb": "a.b",
        "a.xplane.pb.gz": "a",
        "foo.pb": "foo",
        "foo.gz": "foo",
        ".xplane.pb": "unnamed",
    }
    assert {name: host_of(name) for name in expected} == expected
