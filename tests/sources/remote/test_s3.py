"""A real S3 server on this machine."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

import tfcompare as tfc
from tests.sources.remote.servers import S3
from tests.store.runs_in_stores import SMALL, STAMP, small
from tfcompare.errors import NoSuchPlace, NotFetched
from tfcompare.sources.logdir import find_run, find_runs
from tfcompare.sources.remote import stores
from tfcompare.sources.remote.failures import ANSWER_S

BEFORE, AFTER = SMALL["ours"], SMALL["theirs"]


def requests_to_s3(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The S3 operations asked for from now on."""
    from aiobotocore.client import AioBaseClient

    asked: list[str] = []
    real = AioBaseClient._make_api_call

    async def noted(self: object, name: str, options: object) -> object:
        asked.append(name)
        return await real(self, name, options)

    monkeypatch.setattr(AioBaseClient, "_make_api_call", noted)
    return asked


def test_a_run_in_a_bucket_is_the_run_on_the_disk(s3: S3, tmp_path: Path) -> None:
    folder = small("ours", tmp_path)
    s3.put_folder(folder, "logs/ours")
    run, local = tfc.load("s3://bucket/logs"), tfc.load(folder)
    assert run.content_id == local.content_id
    assert run.id == f"logs/ours/plugins/profile/{STAMP}"
    assert str(run.path) == f"s3://bucket/{run.id}"
    assert run.table("op_stats").equals(local.table("op_stats"))


@pytest.mark.usefixtures("s3")
def test_listing_takes_a_request_for_a_thousand_objects_and_downloads_none(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"logs/run_{i:04}/plugins/profile/2026_11_20_10_17_24/vm.xplane.pb" for i in range(1010)]
    for key in keys:
        s3_backends[DEFAULT_ACCOUNT_ID]["aws"].put_object("bucket", key, b"x")
    asked = requests_to_s3(monkeypatch)
    assert len(find_runs("s3://bucket/logs")) == 1010
    assert asked == ["ListObjectsV2"] * 2


def test_a_changed_object_is_fetched_anew_and_the_old_copy_never_read(s3: S3) -> None:
    place = "s3://bucket/vm.xplane.pb"
    s3.put("vm.xplane.pb", BEFORE)
    listed = find_run(place)
    first = tfc.load(listed)
    s3.put("vm.xplane.pb", AFTER)
    assert find_run(place).stat_key != listed.stat_key
    assert tfc.load(place).content_id != first.content_id
    assert tfc.load(listed).content_id == first.content_id, "that version is at hand"


def test_an_object_that_changes_while_it_is_fetched_is_not_read(s3: S3, cache_folder: Path) -> None:
    s3.put("vm.xplane.pb", b"a" * 1000)
    listed = find_run("s3://bucket/vm.xplane.pb")
    s3.put("vm.xplane.pb", b"b" * 1000)
    with pytest.raises(NotFetched, match=r"s3://bucket/vm.xplane.pb: has changed since it was listed; look again"):
        tfc.load(listed)
    assert list(cache_folder.iterdir()) == []


def test_an_object_that_is_gone_or_damaged(s3: S3) -> None:
    s3.put("vm.xplane.pb", b"a")
    listed = find_run("s3://bucket/vm.xplane.pb")
    s3.client.delete_object(Bucket="bucket", Key="vm.xplane.pb")
    with pytest.raises(NotFetched, match=r"s3://bucket/vm.xplane.pb: there is no such file or folder"):
        tfc.load(listed)
    s3.put("logs/vm.xplane.pb", b"Hello, world")
    with pytest.raises(tfc.TfcompareError, match=r"^s3://bucket/logs/vm.xplane.pb: not a readable profile: at byte 2"):
        tfc.load("s3://bucket/logs")


@pytest.mark.usefixtures("s3")
def test_no_such_bucket_and_no_such_folder() -> None:
    with pytest.raises(NoSuchPlace, match=r"^s3://nobody/logs: there is no bucket nobody; check its spelling$"):
        find_runs("s3://nobody/logs")
    with pytest.raises(NoSuchPlace, match=r"^s3://bucket/logs: there is no such file or folder; check the spelling"):
        find_runs("s3://bucket/logs")


def test_no_access(s3: S3) -> None:
    s3.put("logs/vm.xplane.pb", b"x")
    listed = find_run("s3://bucket/logs")
    s3.lock()
    said = "access is denied; check that the environment holds the right credentials: AWS_PROFILE, or AWS_ACCESS_KEY_ID"
    with pytest.raises(NoSuchPlace, match=said):
        find_runs("s3://bucket/logs")
    with pytest.raises(NotFetched, match=said):
        tfc.load(listed)


def test_without_credentials_a_public_bucket_is_read(s3: S3, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    s3.put("logs/vm.xplane.pb", BEFORE, ACL="public-read")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    assert tfc.load("s3://bucket/logs").info.hosts == 1


@pytest.mark.usefixtures("s3")
def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free.getsockname()[1]}")
    with pytest.raises(NoSuchPlace, match=r"cannot be reached \(connection refused\); check the network and AWS_END"):
        find_runs("s3://bucket/logs")


@pytest.mark.usefixtures("s3")
def test_a_server_that_never_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(stores._OPTIONS["s3fs"]["config_kwargs"], "read_timeout", 1)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(NoSuchPlace, match="the server cannot be reached: no answer within 20 seconds"):
            find_runs("s3://bucket/logs")
        silent.setblocking(False)
        tries = []
        with suppress(BlockingIOError):
            while True:
                tries.append(silent.accept()[0])
        for one in tries:
            one.close()
    assert len(tries) == 2, "of a second each"
    monkeypatch.undo()
    options = stores._OPTIONS["s3fs"]["config_kwargs"]
    assert stores._TRIES * max(options["connect_timeout"], options["read_timeout"]) < ANSWER_S
