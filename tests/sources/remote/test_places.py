"""URLs: which are opened, and what of them is shown."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from tfcompare.errors import NoSuchPlace
from tfcompare.sources.logdir import find_runs
from tfcompare.sources.logdir.places import lies_in, open_places
from tfcompare.sources.remote.places import RemotePath, below, parse, shown
from tfcompare.text import is_url


@pytest.mark.parametrize(
    ("typed", "path", "address"),
    [
        ("s3://bucket/logs", "s3://bucket/logs", "s3://bucket/logs"),
        ("S3://bucket/logs/", "s3://bucket/logs", "s3://bucket/logs"),
        ("memory://logs", "memory://logs", "memory://logs"),
        ("memory:///logs/", "memory://logs", "memory://logs"),
        ("memory://", "memory://", "memory://"),
        ("http://host:8000/a%20b/c?sig=1#top", "http://host:8000/a b/c", "http://host:8000/a%20b/c?sig=1"),
        ("https://[::1]:8000/logs", "https://[::1]:8000/logs", "https://[::1]:8000/logs"),
        (
            "abfs://container@account.dfs.core.windows.net/x",
            "abfs://container@account.dfs.core.windows.net/x",
            "abfs://container@account.dfs.core.windows.net/x",
        ),
        ("sftp://me@host/srv/logs", "sftp://me@host/srv/logs", "sftp://me@host/srv/logs"),
    ],
)
def test_a_url_is_understood(typed: str, path: str, address: str) -> None:
    place = parse(typed)
    assert (str(place.path), place.address) == (path, address)
    assert is_url(typed)


@pytest.mark.parametrize(
    ("typed", "why"),
    [
        ("file:///etc/passwd", "file:///etc/passwd: is not opened as a URL; name the path itself"),
        ("simplecache::s3://bucket/logs", "is a chain of URLs"),
        ("zip://a.xplane.pb::file:///tmp/a.zip", "is a chain of URLs"),
        ("s3://bucket/a::file:///etc/passwd", "is a chain of URLs"),
        ("zip:///tmp/a.zip", "zip:// is not opened; expected one of s3, s3a, gs"),
        ("ftp://host/x", "ftp:// is not opened"),
        ("s3://", "names no bucket or host; expected a URL such as s3://bucket/logs"),
        ("s3:///logs", "names no bucket or host"),
        ("http://host:port/logs", "names no host"),
        ("http://host/a/%2e%2e/b", "leads upwards with `..`"),
        ("s3://bucket/../other", "leads upwards with `..`"),
        ("s3://bucket/logs?versionId=3", "what follows its question mark is not understood"),
        ("s3://bucket/lo\ngs", "holds characters that no URL has"),
    ],
)
def test_a_url_that_is_not_opened(typed: str, why: str) -> None:
    with pytest.raises(NoSuchPlace) as caught:
        parse(typed)
    assert why in str(caught.value)
    with pytest.raises(NoSuchPlace):
        find_runs(typed)


@pytest.mark.parametrize(
    "typed",
    [
        "s3://AKIA:hunter2@bucket/logs",
        "https://me:hunter2@host/logs?x=hunter2",
        "https://me@host/logs?sig=hunter2",
        "abfs://me:hunter2@account/x",
        "simplecache::s3://AKIA:hunter2@bucket/x",
        "nope://AKIA:hunter2@bucket/x?hunter2",
    ],
)
def test_secrets_are_refused_and_not_repeated(typed: str) -> None:
    with pytest.raises(NoSuchPlace) as caught:
        open_places([typed])
    assert "hunter2" not in str(caught.value) + shown(typed)
    assert "me@" not in shown(typed)


def test_a_signature_is_kept_for_the_server_alone() -> None:
    (place,) = open_places(["https://host/logs?X-Amz-Signature=hunter2"])
    assert "hunter2" not in f"{place.path} {place.prefix} {place} {shown(place.address)}"
    assert place.address.endswith("?X-Amz-Signature=hunter2")


def test_paths_are_no_urls() -> None:
    for path in ("/logs", "logs/a", "C:\\logs", "std::logs", "a:b", "s3:/bucket", Path("s3://bucket")):
        assert not is_url(path)
        assert shown(path) == str(path)


def test_a_remote_path_goes_by_its_url() -> None:
    path = parse("s3://bucket/logs").path / "a" / "vm.xplane.pb"
    assert (str(path), path.name, path.suffixes) == (
        "s3://bucket/logs/a/vm.xplane.pb",
        "vm.xplane.pb",
        [".xplane", ".pb"],
    )
    assert (path.protocol, path.authority) == ("s3", "bucket")
    assert path.parent.parent == RemotePath("s3:", "bucket", "logs")
    assert pickle.loads(pickle.dumps(path)) == path
    assert str(below(path, ("/etc", "b"))) == "s3://bucket/logs/a/vm.xplane.pb/%2Fetc/b"


def test_what_lies_where(tmp_path: Path) -> None:
    logs, run = parse("s3://bucket/logs").path, parse("s3://bucket/logs/a").path
    assert lies_in(run, logs)
    assert lies_in(logs, logs)
    assert not lies_in(logs, run)
    assert not lies_in(run, tmp_path)
    assert not lies_in(tmp_path, logs)
    (tmp_path / "link").symlink_to(tmp_path)
    assert lies_in(tmp_path / "link", tmp_path) and lies_in(tmp_path, tmp_path / "link")


def test_places_of_one_name_on_different_servers_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    named = ["s3://bucket/logs", "gs://bucket/logs", tmp_path / "logs", "http://host:80/x", "s3://bucket/logs/"]
    prefixes = [place.prefix for place in open_places(named)]
    assert prefixes == ["s3/bucket/logs", "gs/bucket/logs", f"{tmp_path.name}/logs", "x"]
