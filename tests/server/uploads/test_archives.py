"""Archives: what is kept of good ones, and that bad ones are refused by name before anything is written."""

from __future__ import annotations

import io
import tarfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.server.uploads.hostile import (
    HOSTILE,
    PROFILE,
    TOO_MUCH,
    arrival,
    files_in,
    large_dictionary,
    lying_size,
    special,
    tarred,
    with_headers,
    zipped,
)
from tfcompare.server.uploads.archives import is_archive, list_archive, list_in_child, unpack, unpack_in_child
from tfcompare.server.uploads.limits import BadUpload, Limits
from tfcompare.server.uploads.receiving import Uploads

RUN = "logs/plugins/profile/2026_01_01_00_00_00"
GOOD = (
    (f"{RUN}/worker-0.xplane.pb", b"zero" * 1000),
    (f"{RUN}/worker-1.xplane.pb.gz", b"one"),
    (f"./{RUN}/worker-0.trace.json.gz", b"trace"),
    ("logs/events.out.tfevents.1.host", b"events"),
    ("__MACOSX/._worker-0.xplane.pb", b"mac"),
    ("logs/grüße und leer zeichen.txt", b""),
)


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        ("logs.zip", zipped(*GOOD)),
        ("logs.tgz", tarred(*GOOD)),
        ("logs.tar", tarred(*GOOD, gzipped=False)),
        ("logs.zip", zipped(*GOOD, method=zipfile.ZIP_LZMA)),
    ],
)
def test_of_a_good_archive_all_is_listed_and_the_profiles_are_written(name: str, packed: bytes, tmp_path: Path) -> None:
    assert is_archive(name, packed[:512])
    members = list_archive(name, io.BytesIO(packed), Limits())
    assert [(str(m.path), m.size_bytes) for m in members] == [(n.removeprefix("./"), len(data)) for n, data in GOOD]
    assert [m.is_profile for m in members] == [True, True, False, False, False, False]
    written: list[int] = []
    unpack(name, io.BytesIO(packed), Limits(), tmp_path, written.append)
    files = {str(p.relative_to(tmp_path)): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert files == dict(GOOD[:2])
    assert sum(written) == sum(len(data) for _, data in GOOD[:2])


def test_folders_are_no_files() -> None:
    entries = (special("logs", tarfile.DIRTYPE), (f"{RUN}/a.xplane.pb", b"a"))
    assert len(list_archive("a.tgz", io.BytesIO(tarred(*entries)), Limits())) == 1
    assert len(list_archive("a.zip", io.BytesIO(zipped(("logs/", b""), ("logs/a.xplane.pb", b"a"))), Limits())) == 1


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.thorough] * ("millions" in kind)) for kind in HOSTILE]
)
def test_a_hostile_archive_is_refused_in_one_sentence_and_nothing_is_written(kind: str, tmp_path: Path) -> None:
    make, expected = HOSTILE[kind]
    packed, folder = tmp_path / "packed", tmp_path / "unpacked"
    packed.write_bytes(make())
    folder.mkdir()
    # Others do not take a minute on the slowest machine: what is refused is refused for what it is.
    limits = Limits(seconds=1 if expected == TOO_MUCH else 60, total_bytes=20_000_000)
    with pytest.raises(BadUpload) as refused:
        list_in_child("theirs.bin", packed, limits, lambda: None)
        unpack_in_child("theirs.bin", packed, limits, folder, tmp_path / "count", lambda _: None)
    text = str(refused.value)
    assert text.startswith("theirs.bin: ")
    assert expected in text
    assert text.isprintable()
    assert not list(folder.iterdir())


def test_a_member_that_is_shorter_than_it_is_said_to_be_is_told_once_it_is_unpacked(tmp_path: Path) -> None:
    packed = io.BytesIO(lying_size(24))
    assert [m.size_bytes for m in list_archive("a.zip", packed, Limits())] == [500]
    with pytest.raises(BadUpload, match=r"'a\.xplane\.pb' breaks off 495 bytes before its end"):
        unpack("a.zip", packed, Limits(), tmp_path, lambda _: None)


def test_limits_can_be_set() -> None:
    packed = io.BytesIO(zipped(("a.xplane.pb", b"a" * 2000), ("b.txt", b"")))
    for limits, why in (
        (Limits(members=1), "more than the 1 allowed"),
        (Limits(file_bytes=1000), r"'a\.xplane\.pb' has .* allowed for a file"),
        (Limits(total_bytes=1000), "expand to more than"),
    ):
        with pytest.raises(BadUpload, match=why):
            list_archive("a.zip", packed, limits)


def test_a_full_disk_is_no_bad_archive(tmp_path: Path) -> None:
    place = tmp_path / "logs"
    place.write_text("a file where a folder should be")
    with pytest.raises(OSError, match="logs"):
        unpack("a.zip", io.BytesIO(zipped(("logs/a.xplane.pb", b"a"))), Limits(), tmp_path, lambda _: None)


SLOW = with_headers(tarfile.XHDTYPE, *[b"1" * 63_000] * 4)
"""Within the limits on headers, `tarfile` takes a quadratic time for them."""


def test_an_archive_that_takes_too_long_is_refused_and_other_threads_go_on(tmp_path: Path) -> None:
    uploads, ticks = Uploads(tmp_path, "local", Limits(seconds=0.5, total_bytes=1_000_000)), 0
    with ThreadPoolExecutor(1) as pool:
        receiving = pool.submit(uploads.receive, [arrival("slow.tgz", SLOW)])
        while not receiving.done():
            ticks += 1
            time.sleep(0.005)
    with pytest.raises(
        BadUpload, match=r"^slow\.tgz: examining the archive takes more than .* s of processor time; it"
    ):
        receiving.result()
    assert ticks > 20, "the archive's headers do not hold this process's threads up"
    assert uploads.all() == [] and not files_in(tmp_path)


def test_an_archive_that_takes_too_much_memory_is_refused(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path, "local")
    with pytest.raises(BadUpload, match=r"^a\.zip: examining the archive takes more memory than allowed; .*fewer"):
        uploads.receive([arrival("a.zip", large_dictionary())])
    assert not files_in(tmp_path)


def test_what_progress_raises_ends_the_child_and_leaves_nothing(tmp_path: Path) -> None:
    def stop(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Uploads(tmp_path, "local").receive([arrival("a.tgz", SLOW)], stop)
    assert not files_in(tmp_path)
    (tmp_path / "packed").write_bytes(tarred(PROFILE))
    assert list_in_child("a.tgz", tmp_path / "packed", Limits(), lambda: None)
