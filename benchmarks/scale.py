"""How a store of runs grows with runs, hosts and events: `python -m benchmarks.scale` writes it into docs/scale.md.

Times are wall-clock times in this process, its imports ready, medians over rounds. Workers are processes of a Dask
cluster on this machine that have read files before, one thread each.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from distributed import LocalCluster

from benchmarks.generate import generate
from benchmarks.machine import description
from benchmarks.page import put
from tfcompare.comparison import compare
from tfcompare.fleet.cluster import Cluster
from tfcompare.fleet.ingesting import ingest
from tfcompare.fleet.pools import Here
from tfcompare.run import load
from tfcompare.settings import sample_runs
from tfcompare.store.file_names import INDEX
from tfcompare.store.run_store import Store, _entries_of
from tfcompare.store.stored_run import StoredRun, named, runs_in
from tfcompare.units import format_bytes
from tfcompare.views.run_listing import listing

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "scale.md"
_SEEDS = 8


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="in the store that is listed")
    parser.add_argument("--files", type=int, default=64, help="host files that are ingested")
    parser.add_argument("--megabytes", type=float, default=3, help="of a host file")
    parser.add_argument("--hosts", type=int, default=256, help="of the run that is opened")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--no-page", action="store_true", help="only print")
    chosen = parser.parse_args(arguments)
    os.environ["TFCOMPARE_STORE"] = "off"
    with tempfile.TemporaryDirectory(prefix="tfcompare-scale-") as name:
        folder = Path(name)
        lines = [f"- {line}" for line in description()]
        lines += ["", *_table(_listing(folder, chosen.runs, chosen.rounds))]
        files = _host_files(folder / "generated", chosen.megabytes)
        lines += ["", *_table(_ingest(folder, files, chosen.files, chosen.rounds))]
        lines += ["", *_table(_hosts(folder, files, chosen.hosts, chosen.rounds))]
        lines += ["", *_table(_small_hosts(folder / "small", chosen.hosts, min(chosen.rounds, 5)))]
    text = "\n".join(lines)
    print(text)
    if not chosen.no_page:
        put(PAGE, "scale", text)


def _listing(folder: Path, runs: int, rounds: int) -> list[tuple[str, str]]:
    """Runs made from the samples, by what writes them when they are ingested."""
    store = Store(str(folder / "many"))
    ingest([sample_runs()], store.address, Here)
    made = [(run, store.record(run.id)) for run in runs_in(store)[0]]
    for i in range(runs - len(made)):
        _, record = made[i % len(made)]
        assert record is not None
        at = f"logs/day_{i // 50:03}/run_{i:05}"
        store.put(replace(record, run=at, parts=tuple(at.split("/")), own=3, place=f"/{at}"))
    store.write_index()
    index = store.files.info(INDEX)
    assert index is not None

    def listed() -> None:
        fresh = Store(store.address)
        _entries_of.cache_clear()
        listing(named(runs_in(fresh)[0]), {})

    some = named(runs_in(store)[0])

    def compared() -> None:
        ours, theirs = (load(StoredRun.of(run.row, store, run.name)) for run in (some[2], some[-2]))
        comparison = compare(ours, theirs)
        comparison.table("op_stats")
        comparison.headline(theirs.id)

    return [
        (f"list {runs:,} runs from the index", _seconds(rounds, listed)),
        ("size of the index", f"{format_bytes(index.size_bytes)}, {index.size_bytes / runs:.0f} bytes a run"),
        ("open and compare two of them: verdicts, op stats", _seconds(rounds, compared)),
        ("list them with `tfcompare runs`, a process of its own", _seconds(rounds, lambda: _command(store.address))),
    ]


def _command(store: str) -> None:
    words = [sys.executable, "-m", "tfcompare", "runs", "--store", store, "--format", "csv"]
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd=ROOT)


def _host_files(folder: Path, megabytes: float) -> list[Path]:
    folder.mkdir()
    files = [folder / f"{seed}.xplane.pb" for seed in range(_SEEDS)]
    for seed, file in enumerate(files):
        generate(file, megabytes, "tf_cpu", seed)
    return files


def _run_of(files: Sequence[Path], hosts: int, folder: Path) -> Path:
    """A run of so many hosts, whose files have the contents of these in turn."""
    folder.mkdir(parents=True)
    for host in range(hosts):
        shutil.copy(files[host % len(files)], folder / f"host_{host:04}.xplane.pb")
    return folder


def _ingest(folder: Path, files: Sequence[Path], count: int, rounds: int) -> list[tuple[str, str]]:
    run = _run_of(files, count, folder / "logs" / "run")
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for workers, took in seconds.items():
        with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
            for number in range(rounds + 1):
                store = folder / f"ingested_{workers}_{number}"
                last = ingest([run], str(store), lambda address=cluster.scheduler_address: Cluster(address))
                assert last.host_files == count, last.failures
                if number:  # the first warms the workers
                    took.append(last.seconds)
                shutil.rmtree(store)
    size = format_bytes(last.bytes_read)
    return [
        (f"ingest {count} host files, {size}, on one worker", _spread(seconds[1])),
        ("the same on two workers", _spread(seconds[2])),
        ("two workers are faster", f"{median(seconds[1]) / median(seconds[2]):.2f} times"),
        ("one worker reads", f"{last.bytes_read / median(seconds[1]) / 1e6:.1f} MB/s"),
        ("a pack takes", f"{format_bytes(1e6 * last.pack_bytes / last.bytes_read)} for each MB of a host file"),
    ]


def _hosts(folder: Path, files: Sequence[Path], hosts: int, rounds: int) -> list[tuple[str, str]]:
    store = Store(str(folder / "hosts"))
    summaries = []
    for name in ("before", "after"):
        run = _run_of(files, hosts, folder / name)
        summaries.append(ingest([run], store.address, Here))
        shutil.rmtree(run)
    runs = runs_in(store)[0]

    def opened() -> None:
        run = load(StoredRun.of(runs[0].row, store))
        for table in ("steps", "op_stats", "kernel_stats", "memory_summary"):
            run.table(table)

    def op_steps() -> None:
        load(StoredRun.of(runs[0].row, store)).tables.step_cells("op_stats")

    def compared() -> None:
        comparison = compare(*(load(StoredRun.of(run.row, store)) for run in runs))
        comparison.table("op_stats")
        comparison.headline(runs[1].id)

    return [
        (
            f"open a run of {hosts} hosts ({format_bytes(summaries[0].bytes_read)}), four tables",
            _seconds(rounds, opened),
        ),
        ("open it: what each op took in each step, over all hosts", _seconds(rounds, op_steps)),
        ("open and compare two such runs: verdicts, op stats", _seconds(rounds, compared)),
        ("what one of them takes in memory at most", format_bytes(load(runs[0]).memory_bytes)),
        ("its record", format_bytes(max(file.size_bytes for file in store.files.listed("runs")))),
    ]


def _small_hosts(folder: Path, hosts: int, rounds: int) -> list[tuple[str, str]]:
    """`diff` of two runs, in processes of its own."""
    folder.mkdir()
    files = _host_files(folder / "generated", 0)
    runs = [_run_of(files[name::2], hosts, folder / "logs" / str(name)) for name in (0, 1)]
    words = [sys.executable, "-m", "tfcompare", "diff", *map(str, runs)]

    def diffed(store: Path) -> None:
        environment = os.environ | {"TFCOMPARE_STORE": str(store)}
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, cwd=ROOT, env=environment)

    numbers = iter(range(rounds))
    what = f"`diff` of two runs of {hosts} hosts of {format_bytes(files[0].stat().st_size)}"
    return [
        (f"{what}, the first time", _seconds(rounds, lambda: diffed(folder / f"cache{next(numbers)}"))),
        ("the same again", _seconds(rounds, lambda: diffed(folder / "cache0"))),
    ]


def _seconds(rounds: int, work: Callable[[], object]) -> str:
    took = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        took.append(time.perf_counter() - started)
    return _spread(took)


def _spread(seconds: Sequence[float]) -> str:
    return f"{median(seconds):.3g} s ({min(seconds):.3g}–{max(seconds):.3g})"


def _table(rows: Sequence[tuple[str, str]]) -> list[str]:
    return ["| what | median (least–most) |", "| --- | --- |", *(f"| {what} | {value} |" for what, value in rows)]


if __name__ == "__main__":
    main()
