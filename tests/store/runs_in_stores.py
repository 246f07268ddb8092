"""Runs to put into stores, and what they hold."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

from fsspec.implementations.local import LocalFileSystem

from tests.profiles import run_path
from tests.xspace.fuzz_inputs import hlo_proto
from tests.xspace_builder import event, line, meta, plane, space
from tfcompare import schema
from tfcompare.fleet.ingesting import Summary, ingest
from tfcompare.fleet.pools import Here
from tfcompare.run import Run
from tfcompare.store.arrays import encode
from tfcompare.store.run_store import Store
from tfcompare.store.stored_run import StoredRun, named, runs_in


def put(places: list[Path | str], store: Path | str) -> Summary:
    """Ingest in this process."""
    return ingest(places, str(store), Here)


def stored(store: Path | str) -> dict[str, StoredRun]:
    """The runs in a store by their names."""
    return {run.name: run for run in named(runs_in(Store(str(store)))[0])}


def copied(name: str, to: Path) -> Path:
    """A run's folder of the test's own."""
    source = run_path(name)
    folder = to / name
    shutil.copytree(source, folder)
    return folder


HLO_OPS = ("fusion.1", "copy.2")
ALLOCATION = (
    {"allocator_name": "GPU_0_bfc", "allocation_bytes": 64, "requested_bytes": 60, "bytes_available": 1 << 30}
    | {"bytes_allocated": 64, "peak_bytes_in_use": 64, "bytes_reserved": 0, "addr": 1, "tf_op": "mul:Mul"}
    | {"fragmentation": 0.0, "data_type": 1, "shape": "[2,3]"}
)


def profile(steps: int, length_us: float) -> bytes:
    """A small profile, read in no time: steps of about that length, each with an op and a kernel."""
    host, kernels = [], []
    for i in range(steps):
        at = 1000 * i
        host += [event("train", at, length_us + i % 3, _r=1, step_num=i), event("mul:Mul", at + 2, 10)]
        host += [
            event("cudaLaunchKernel", at + 20, 5, correlation_id=i),
            event("MemoryAllocation", at + 3, 0, ALLOCATION),
        ]
        of_program = {"hlo_op": HLO_OPS[i % 2], "program_id": 77, "kernel_details": "regs:16 grid:1,1,1 block:64,1,1"}
        kernels.append(event("kernel", at + 30, 20 + i, of_program, correlation_id=i))
    program = hlo_proto(*((name, "MatMul", "dense/MatMul") for name in HLO_OPS))
    return space(
        plane("/host:CPU", line("python", *host)),
        plane("/device:GPU:0", line("Stream #13(Compute)", *kernels, id=13)),
        plane("/host:metadata", line("m", event(meta("jit_f", "", {"Hlo Proto": program}), 0, 0)), ids={"jit_f": 77}),
    )


SMALL = {"ours": profile(12, 60), "theirs": profile(14, 600), "ours_again": profile(13, 60)}
STAMP = "2026_01_01_00_00_00"


def small(name: str, to: Path) -> Path:
    """A folder with the small run of that name."""
    folder = to / name / "plugins" / "profile" / STAMP
    folder.mkdir(parents=True)
    (folder / "vm.xplane.pb").write_bytes(SMALL[name])
    return to / name


def assert_same(ours: Run, theirs: Run) -> None:
    """All that both know is the same, whatever they were loaded from: what is derived follows from it."""
    assert (ours.content_id, ours.host_names, ours.remarks) == (theirs.content_id, theirs.host_names, theirs.remarks)
    for one, other in zip(ours.hosts, theirs.hosts, strict=True):
        for table in schema.HOST_TABLES:
            assert encode(one.table(table)) == encode(other.table(table)), table


def pipe_to_full_disk(_: LocalFileSystem, path: str, data: bytes) -> None:
    """What `pipe_file` does on a disk that takes ten bytes more."""
    Path(path).write_bytes(data[:10])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
