"""Archives that take long or much memory end in one sentence, while the server goes on working."""

from __future__ import annotations

import io
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.server.uploads.hostile import PROFILE, large_dictionary, tarred, with_headers
from tfcompare.server.uploads.archives import list_in_child
from tfcompare.server.uploads.limits import BadUpload, Limits
from tfcompare.server.uploads.receiving import Arrival, Uploads

SLOW = with_headers(tarfile.XHDTYPE, *[b"1" * 63_000] * 4)
"""Within the limits on headers, `tarfile` takes a quadratic time for them."""


def arrival(name: str, data: bytes) -> Arrival:
    return Arrival(name, io.BytesIO(data), len(data))


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


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
