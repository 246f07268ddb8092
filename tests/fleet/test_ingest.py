"""`tfcompare ingest` on processes of this machine, what it tells, and the metadata of runs in a store."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sources.remote.servers import S3
from tests.store.runs_in_stores import SMALL, STAMP, assert_same, put, small, stored
from tfcompare.errors import TfcompareError
from tfcompare.fleet import tasks
from tfcompare.fleet.ingesting import Ingest, ingest
from tfcompare.fleet.pools import Here, Processes
from tfcompare.frames import profile_reader
from tfcompare.run import load
from tfcompare.sources.logdir.metadata import FILE_NAME
from tfcompare.store import cached_frames, reading
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import runs_in

OURS = "ours"


def of_hosts(folder: Path, **profiles: str) -> Path:
    """A run of hosts that left these small profiles."""
    folder.mkdir(parents=True)
    for host, name in profiles.items():
        (folder / f"{host}.xplane.pb").write_bytes(SMALL[name])
    return folder


@pytest.fixture
def three_hosts(tmp_path: Path) -> Path:
    """A run of three hosts; two of them left the same file."""
    return of_hosts(tmp_path / "plugins" / "profile" / "run", a=OURS, b="theirs", c=OURS)


def test_a_worker_killed_in_the_middle_loses_nothing(tmp_path: Path) -> None:
    def kill_one(done: Ingest) -> None:
        if done.files_done == 1:
            [*pool._children._busy, *pool._children._idle][0].kill()

    pool = Processes(1)
    folder = of_hosts(tmp_path / "logs" / "run", **dict.fromkeys("abcdef", OURS))
    summary = ingest([folder], str(tmp_path / "store"), lambda: pool, kill_one)
    assert (summary.runs_ingested, summary.host_files, summary.failures) == (1, 6, [])
    (run,) = stored(tmp_path / "store").values()
    assert_same(load(run), load(folder))


@pytest.mark.usefixtures("here")
def test_the_summary_tells_what_was_done_and_what_failed(tfcompare, tmp_path: Path) -> None:
    small(OURS, tmp_path / "logs")
    (tmp_path / "logs" / "bad").mkdir()
    (tmp_path / "logs" / "bad" / "vm.xplane.pb").write_bytes(b"no profile at all")
    words = ("ingest", str(tmp_path / "logs"), "--store", str(tmp_path / "store"))
    status, out, err = tfcompare(*words)
    assert status == 1
    assert out.startswith(f"{tmp_path / 'store'}: 1 runs ingested, 0 unchanged, 1 failed\n1 host files read (")
    assert f"{tmp_path / 'logs' / 'bad' / 'vm.xplane.pb'}: not a readable profile" in err
    status, out, err = tfcompare(*words, "--format", "json")
    told = json.loads(out)
    assert (status, told["runs_unchanged"], told["host_files"], told["failures"], err) == (0, 2, 0, [], "")


@pytest.mark.usefixtures("here")
def test_without_a_store_it_goes_where_the_app_looks(tfcompare, tmp_path: Path, own: Path, monkeypatch) -> None:
    folder = small(OURS, tmp_path / "logs")
    assert tfcompare("ingest", str(tmp_path / "logs"))[0] == 0
    monkeypatch.setattr(profile_reader, "read", lambda path: pytest.fail(f"{path} was read"))
    assert load(folder).remarks == ()
    status, out, _ = tfcompare("runs", "--store", str(own))
    assert (status, OURS in out) == (0, True)
    monkeypatch.setenv("TFCOMPARE_STORE", "off")
    assert tfcompare("ingest", str(tmp_path / "logs"))[::2] == (
        2,
        "tfcompare: the cache is turned off (TFCOMPARE_STORE=off); name a store with --store\n",
    )


def test_two_ingests_at_once_leave_one_store_with_all(tmp_path: Path) -> None:
    names = list(SMALL)
    places = {name: small(name, tmp_path / "logs") for name in names}
    errors: list[Exception] = []

    def some(these: list[str]) -> None:
        try:
            put([places[name] for name in these], tmp_path / "store")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=some, args=(these,)) for these in (names[:2], names[1:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    runs = stored(tmp_path / "store")
    assert sorted(runs) == sorted(names)
    assert all(load(run).remarks == () for run in runs.values())


def test_the_largest_file_of_a_run_is_begun_first(three_hosts: Path, tmp_path: Path, read_anew: list[str]) -> None:
    sizes = {file.name: file.stat().st_size for file in three_hosts.iterdir()}
    assert ingest([three_hosts], str(tmp_path / "store"), Here).host_files == 3
    assert [*dict.fromkeys(read_anew)] == sorted(sorted(sizes), key=lambda name: -sizes[name])
    assert [*dict.fromkeys(read_anew)] != sorted(sizes)


def test_a_run_is_put_together_without_opening_the_packs_that_were_just_written(
    three_hosts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "_BRIEF_BYTES", 0)
    put([three_hosts], tmp_path / "opened")
    monkeypatch.undo()
    monkeypatch.setattr(cached_frames, "_SETTLED_NS", -1)
    monkeypatch.setattr(reading, "unpack", lambda *_, **__: pytest.fail("a pack was opened"))
    put([three_hosts], tmp_path / "store")
    records = [Store(str(tmp_path / name)).record("run") for name in ("opened", "store")]
    opened, ours = (replace(record, ingested_ns=0) for record in records if record is not None)
    assert ours == opened
    assert "hosts a, c are identical" in ours.summary.remarks
    monkeypatch.undo()
    (run,) = stored(tmp_path / "store").values()
    assert_same(load(run), load(three_hosts))


def test_a_pack_that_was_there_is_opened_and_made_anew_where_it_is_damaged(three_hosts: Path, tmp_path: Path) -> None:
    put([three_hosts], tmp_path / "store")
    for kept in [*(tmp_path / "store" / "runs").iterdir(), tmp_path / "store" / "index.json.gz"]:
        kept.unlink()
    pack = min((tmp_path / "store" / "packs").rglob("*.pack"))
    whole = pack.read_bytes()
    pack.write_bytes(whole[:-10] + bytes(10))
    summary = put([three_hosts], tmp_path / "store")
    assert (summary.runs_ingested, summary.failures) == (1, [])
    assert pack.read_bytes() == whole


def test_what_was_done_before_it_was_interrupted_is_kept(tmp_path: Path) -> None:
    def interrupt(done: Ingest) -> None:
        if done.files_done == 2:
            raise KeyboardInterrupt

    for name in SMALL:
        small(name, tmp_path / "logs")
    with pytest.raises(KeyboardInterrupt):
        ingest([tmp_path / "logs"], str(tmp_path / "store"), Here, interrupt)
    assert len(runs_in(Store(str(tmp_path / "store")))[0]) == 1
    assert put([tmp_path / "logs"], tmp_path / "store").runs_unchanged == 1


def test_a_store_on_a_real_s3_server(s3: S3, tfcompare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, folder = "s3://bucket/stores/mine", small(OURS, tmp_path)
    s3.put_folder(folder, "logs/ours")
    put(["s3://bucket/logs"], store)
    s3.client.delete_object(Bucket="bucket", Key=f"logs/ours/plugins/profile/{STAMP}/vm.xplane.pb")
    (run,) = stored(store).values()
    assert load(run).table("op_stats").equals(load(folder).table("op_stats"))
    assert run.id == f"logs/ours/plugins/profile/{STAMP}"
    for key in (f"runs/{'ab' * 16}.json", "index.json.gz"):  # an empty object is damage that ingest repairs
        s3.put(f"stores/mine/{key}", b"")
    assert list(stored(store)) == [OURS]
    s3.put_folder(folder, "logs/ours")
    assert put(["s3://bucket/logs"], store).runs_failed == 0
    assert [message for message in runs_in(Store(store))[1] if "index.json.gz" in message] == []
    s3.client.delete_object(Bucket="bucket", Key=f"logs/ours/plugins/profile/{STAMP}/vm.xplane.pb")
    status, out, _ = tfcompare("store", "--store", store, "--clear", "--format", "json")
    assert (status, json.loads(out)["removed_runs"], json.loads(out)["bytes"]) == (0, 1, 0)
    assert "Contents" not in s3.client.list_objects_v2(Bucket="bucket")
    with pytest.raises(TfcompareError, match="there is no bucket nowhere; check its spelling"):
        put([folder], "s3://nowhere/store")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(TfcompareError, match=rf"{store}: the server cannot be reached"):
        put([folder], store)


def test_places_without_runs_are_told(tfcompare, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    status, _, err = tfcompare("ingest", str(tmp_path / "empty"), "--store", str(tmp_path / "store"))
    assert (status, err.startswith("tfcompare: ")) == (2, True)


def texts(store: Path) -> tuple[str, ...]:
    (run,) = runs_in(Store(str(store)))[0]
    record = Store(str(store)).record(run.id)
    assert record is not None and record.all_metadata == run.metadata
    return run.metadata.texts


@pytest.mark.usefixtures("here")
def test_tags_of_a_command_and_of_a_file_are_stored_and_listed(tmp_path: Path, tfcompare, monkeypatch) -> None:
    folder, store = small("ours", tmp_path / "logs"), tmp_path / "store"
    (folder / FILE_NAME).write_text('{"commit": "abc", "tags": ["nightly"]}')
    words = ("ingest", str(tmp_path / "logs"), "--store", str(store))
    assert tfcompare(*words)[0] == 0
    assert texts(store) == ("commit=abc", "nightly")
    monkeypatch.setattr(profile_reader, "read", lambda path: pytest.fail(f"{path} was read again"))
    assert "1 runs ingested" in tfcompare(*words, "--tag", "branch=main", "--tag", "commit=def")[1]
    assert texts(store) == ("branch=main", "commit=def", "nightly")
    assert "1 unchanged" in tfcompare(*words)[1], "what a command gave stays"
    (folder / FILE_NAME).write_text('{"tags": ["weekly"]}')
    assert "1 runs ingested" in tfcompare(*words)[1]
    assert texts(store) == ("branch=main", "commit=def", "weekly")
    status, out, _ = tfcompare("runs", "--store", str(store))
    assert (status, "branch=main, commit=def, weekly" in out) == (0, True)


def test_an_option_that_is_no_tag_is_bad_input(tmp_path: Path, tfcompare) -> None:
    status, _, err = tfcompare("ingest", str(tmp_path), "--tag", "nightly")
    assert (status, err) == (2, "tfcompare: 'nightly': expected key=value, such as commit=abc123, but there is no =\n")


def test_the_index_has_the_step_time_with_its_interval(tmp_path: Path) -> None:
    small("ours", tmp_path / "logs")
    put([tmp_path / "logs"], tmp_path / "store")
    (run,) = runs_in(Store(str(tmp_path / "store")))[0]
    summary = run.summary
    assert summary is not None and summary.step_time_ms_low is not None and summary.step_time_ms_high is not None
    assert summary.step_time_ms_low < summary.step_time_ms_mean < summary.step_time_ms_high
