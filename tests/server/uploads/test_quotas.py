"""All uploads together have limits, also if they arrive at the same time."""

from __future__ import annotations

import io
import threading
from multiprocessing.pool import ThreadPool
from pathlib import Path

import pytest

from tests.server.uploads.hostile import files_in, zipped
from tfcompare.server.uploads.limits import BadUpload
from tfcompare.server.uploads.quotas import Quotas, session_owner
from tfcompare.server.uploads.receiving import Arrival, Uploads
from tfcompare.sources.abandoned_folders import this_process

KB = 1000


def profile(number: int, size_bytes: int = 100 * KB) -> Arrival:
    return Arrival(f"{number}.xplane.pb", io.BytesIO(bytes([number]) * size_bytes), size_bytes)


def test_the_uploads_of_one_user_have_a_limit_until_one_is_deleted(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path, "ann", quotas=Quotas(owner_bytes=250 * KB))
    first, _ = (uploads.receive([profile(number)]) for number in (1, 2))
    before = files_in(tmp_path)
    with pytest.raises(
        BadUpload,
        match=(
            r"^3\.xplane\.pb: needs 100 kB, but only 50\.0 kB of the 250 kB for your uploads are free; delete some of "
            "them, or ask who runs the server to raise TFCOMPARE_USER_UPLOADS_MB$"
        ),
    ):
        uploads.receive([profile(3)])
    assert files_in(tmp_path) == before
    uploads.delete(first.digest)
    uploads.receive([profile(3)])


def test_the_uploads_of_all_users_have_a_limit(tmp_path: Path) -> None:
    quotas = Quotas(all_bytes=250 * KB)
    for number, owner in enumerate(("ann", "bob")):
        Uploads(tmp_path, owner, quotas=quotas).receive([profile(number)])
    with pytest.raises(BadUpload, match=r"for the uploads of all users are free; .* TFCOMPARE_UPLOADS_MB"):
        Uploads(tmp_path, "eve", quotas=quotas).receive([profile(9)])


def test_an_archive_needs_room_for_what_it_expands_to(tmp_path: Path) -> None:
    packed = zipped(("a.xplane.pb", bytes(200 * KB)))
    assert len(packed) < KB
    uploads = Uploads(tmp_path, "ann", quotas=Quotas(owner_bytes=200 * KB))
    with pytest.raises(BadUpload, match=r"^a\.zip: needs 200 kB, but only 200 kB .* are free"):
        uploads.receive([Arrival("a.zip", io.BytesIO(packed), len(packed))])
    assert not files_in(tmp_path)


def test_files_that_are_not_stored_need_no_room(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path, "ann", quotas=Quotas(owner_bytes=150 * KB))
    uploads.receive([profile(1), Arrival("events.out", io.BytesIO(bytes(500 * KB)), 500 * KB)])


def test_what_ended_sessions_left_makes_room(tmp_path: Path) -> None:
    gone = f"session-{this_process().partition('-')[0]}-{2**22 + 1}-abc"
    quotas = Quotas(all_bytes=150 * KB)
    Uploads(tmp_path, gone, quotas=quotas).receive([profile(1)])
    Uploads(tmp_path, "ann", quotas=quotas).receive([profile(2)])
    assert Uploads(tmp_path, gone).all() == []


def test_uploads_that_arrive_at_the_same_time_do_not_exceed_the_limit_together(tmp_path: Path) -> None:
    quotas = Quotas(all_bytes=350 * KB)
    refused = threading.Semaphore(0)

    def receive(number: int) -> bool:
        def wait_for_the_others(_: int) -> None:
            assert refused.acquire(timeout=20)
            refused.release()

        uploads = Uploads(tmp_path, session_owner(f"{number}"), quotas=quotas)
        try:
            uploads.receive([profile(number)], wait_for_the_others)
        except BadUpload as error:
            assert "for the uploads of all users are free" in str(error)
            refusals.append(number)
            if len(refusals) == 5:
                refused.release()
            return False
        return True

    refusals: list[int] = []
    with ThreadPool(8) as pool:
        accepted = pool.map(receive, range(8))
    assert sum(accepted) == 3
    assert sum(path.stat().st_size for path in files_in(tmp_path) if path.suffix == ".pb") == 300 * KB
