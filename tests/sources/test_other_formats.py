"""Files that are no profiles: what they are, and what to do with them."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.xspace_builder import chunk
from tfcompare.errors import NoRuns, NotAProfile
from tfcompare.sources.logdir import check_file, find_runs
from tfcompare.sources.logdir.other_formats import recognize
from tfcompare.xspace import parse, read

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:91ab\nsize 4711\n"
KINETO = b'{\n  "schemaVersion": 1,\n  "deviceProperties": [{"id": 3}],\n  "traceEvents": []}'
CHROME = b'{"displayTimeUnit": "ms", "traceEvents": [{"ph": "M"}]}'


def zipped() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("run/notes.txt", "seven")
    return out.getvalue()


def tarred() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("run/notes.txt"))
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "what", "to_do"),
    [
        (LFS, "a Git LFS pointer", "run `git lfs pull`"),
        (zipped(), "a zip archive", "unpack it"),
        (tarred(), "a tar archive", "unpack it"),
        (b"\n<!DOCTYPE html>\n<html>", "a web page", "download the file itself"),
        (KINETO, "a PyTorch trace", "record a .xplane.pb"),
        (CHROME, "a trace in Chrome's JSON format", "record a .xplane.pb"),
        (b'[{"ph": "X"}]', "JSON text", "record a .xplane.pb"),
        (b"SQLite format 3\0\x10\0", "an SQLite database", "record a .xplane.pb"),
        (
            b"\x18\0\0\0\0\0\0\0\x87\x99\x55\x10\x09\0\0\0\0\0\0\0\0\x1a\x0dbrain.Event:2",
            "a TensorBoard event file",
            "plugins/profile",
        ),
    ],
)
def test_a_file_of_another_format_in_place_of_a_profile(tmp_path: Path, content: bytes, what: str, to_do: str) -> None:
    path, packed = tmp_path / "vm7.xplane.pb", tmp_path / "vm8.xplane.pb.gz"
    path.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    assert check_file(packed) is None, "nothing is decompressed before it is read"
    for place, told in ((path, str(check_file(path))), (path, refusal(path)), (packed, refusal(packed))):
        assert told.startswith(f"{place}: is {what}")
        assert " where a profile was expected; " in told
        assert to_do in told.partition("; ")[2]


def refusal(path: Path) -> str:
    with pytest.raises(NotAProfile) as refused:
        read(path)
    return str(refused.value)


def test_a_profile_is_a_profile_whatever_its_texts_say() -> None:
    text = f"{LFS!r} <html> ustar brain.Event:2 {KINETO!r}"
    assert parse(chunk(4, text) + chunk(1, chunk(2, "/host:CPU"))).hostnames == (text,)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("logs.ZIP", "a zip archive"),
        ("logs.tar.gz", "a tar archive"),
        ("logs.tar.xz", "an archive"),
        ("rank3.pt.trace.json.gz", "a PyTorch trace"),
        ("job.nsys-rep", "an Nsight Systems report"),
        ("job.sqlite", "an SQLite database, as the profilers of NVIDIA and AMD export"),
        ("phone.perfetto-trace", "a Perfetto trace"),
        ("my.trace.json.gz", "a trace in Chrome's JSON format"),
        ("results.rocpd", "an SQLite database, as the profilers of NVIDIA and AMD export"),
    ],
)
def test_a_place_with_files_of_another_format_alone(tmp_path: Path, name: str, what: str) -> None:
    (tmp_path / "notes.txt").write_text("eleven")
    (tmp_path / "events.out.tfevents.17.vm").write_bytes(b"")
    path = tmp_path / name
    path.write_bytes(b"\x0a\x00")
    with pytest.raises(NoRuns) as caught:
        find_runs(tmp_path)
    assert f", found {name} ({what}) and 2 other files; {recognize(name).advice}" in str(caught.value)  # type: ignore[union-attr]
    (run,) = find_runs(path)
    assert run.problems[0].startswith(f"{path}: is {what} where")


def test_a_trace_of_any_name_is_recognized_by_its_first_bytes(tmp_path: Path) -> None:
    for folder, name in (("a", "trace.json.gz"), ("b", "step7.json.gz"), ("c", "settings.json")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(gzip.compress(KINETO) if name.endswith("gz") else b'{"lr": 0.3}')
        with pytest.raises(NoRuns) as caught:
            find_runs(tmp_path / folder)
        found = "1 other file" if folder == "c" else f"{name} (a PyTorch trace)"
        assert f", found {found}; " in str(caught.value)


def test_a_run_folder_with_an_archive_in_place_of_the_profile(tmp_path: Path) -> None:
    folder = tmp_path / "plugins/profile/2026_03_01_09_15_00"
    folder.mkdir(parents=True)
    (folder / "vm7.tgz").write_bytes(b"")
    (run,) = find_runs(tmp_path)
    assert run.problems[0].startswith(f"{folder}: holds no .xplane.pb, only vm7.tgz (a tar archive); ")
