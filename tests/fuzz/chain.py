"""One input through everything behind the page: read, all tables as CSV, a comparison with a good run, charts."""

from __future__ import annotations

import pickle
import random
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from pathlib import Path

import pandas as pd

from tests.xspace import fuzz_inputs
from tfcompare import schema
from tfcompare.compare.groups.aggregate import largest_changes
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import Comparison, compare
from tfcompare.errors import TfcompareError
from tfcompare.run import Run, load
from tfcompare.sources.logdir import FoundRun, HostFile, check_file
from tfcompare.views.advice import advise_on, facts_of
from tfcompare.views.bars import movers
from tfcompare.views.csv_files import spreadsheet_csv
from tfcompare.views.key_figures import op_times

SECONDS_ALLOWED = 10
BYTES_ALLOWED, BYTES_ALLOWED_PER_BYTE = 64 << 20, 400
"""What reading a file may take beyond what the process has: a constant, and a multiple of the file's size."""

_SPANS = ["host_start_us", "host_span_us", "device_span_us"]
_COSTS = ["flops", "bytes_accessed", "flops_per_s", "bandwidth_bytes_per_s", "operational_intensity"]
_MAY_BE_ABSENT = [*schema.STEP_PRECISIONS, *_SPANS, "wall_time_us", *_COSTS]
_NEVER_NEGATIVE = (
    "duration_us",
    "total_time_us",
    "self_time_us",
    "total_duration_us",
    "wall_time_us",
    *_SPANS[1:],
    *_COSTS,
    *schema.STEP_PARTS,
)
_OP_TABLES = {"op_stats": "op_steps", "kernel_stats": "kernel_steps"}
_DRAWN_EVERY = 5
_seen: set[bytes] = set()


@dataclass(frozen=True)
class Outcome:
    """What one input came to: `result` is `read`, the kind of the `TfcompareError`, or what went wrong. `seconds` are
    those of the processor, `waited` those of the clock; `peak_bytes` is what memory grew by while it was looked at."""

    number: int
    kind: str
    size: int
    result: str
    is_fine: bool
    detail: str
    seconds: float
    waited: float
    peak_bytes: int


def attempt(
    data: bytes, path: Path, number: int = 0, kind: str = "", *, watch_memory: bool = True, comparing: bool = True
) -> Outcome:
    """Write that input to `path` and look at it in every way."""
    path.write_bytes(data)

    def look() -> None:
        check_file(path)
        run = load(found(path, len(data)))
        if comparing:
            look_at(run, number)
        else:
            _check_all(_tables(run))
        length = run.table("steps").groupby("step")["duration_us"].sum()
        together = run.table("op_steps").groupby("step")["wall_time_us"].sum().reindex(length.index, fill_value=0.0)
        rounding = 1e-6 + 4e-15 * length.sum()  # times are added up along all steps, one of which may take hours
        assert (together <= length * (1 + 1e-9) + rounding).all(), "ops with more wall time than their step"

    return observed(look, number, kind, len(data), watch_memory=watch_memory)


def observed(look: Callable[[], None], number: int, kind: str, size: int, *, watch_memory: bool) -> Outcome:
    """What comes of looking at an input of that size."""
    before = _start_watch() if watch_memory else 0
    began, cpu_began = time.monotonic(), time.process_time()
    fine, detail, result = True, "", "read"
    try:
        look()
    except TfcompareError as error:
        result, detail = type(error).__name__, str(error)
        fine = bool(detail) and "\n" not in detail
    except Exception:
        result, fine, detail = "exception", False, traceback.format_exc()
    seconds, waited = time.process_time() - cpu_began, time.monotonic() - began
    peak = _peak_bytes() - before if watch_memory else 0
    if fine and seconds > SECONDS_ALLOWED:
        result, fine = "slow", False
    if fine and peak > BYTES_ALLOWED + BYTES_ALLOWED_PER_BYTE * size:
        result, fine = "memory", False
    return Outcome(number, kind, size, result, fine, detail, round(seconds, 4), round(waited, 4), peak)


def found(path: Path, size: int) -> FoundRun:
    """The file as a run, whatever a first look at it would say."""
    file = HostFile("vm", path, size, 0)
    return FoundRun("run", "run", path, (file,), (), datetime.fromtimestamp(0, UTC), "file time")


def _tables(run: Run) -> dict[str, pd.DataFrame]:
    """All tables but those that are made for queries and repeat texts, which are checked here and not held."""
    for name in ("spans", "hlo_edges"):
        _check(name, run.table(name))
    return {name: run.table(name) for name in schema.TABLES if name not in ("spans", "hlo_edges")}


def look_at(run: Run, number: int) -> None:
    """Make all tables of a run, check them, and compare it with a good one."""
    frames = _tables(run)
    _check_all(frames)
    digests = {name: _digest(frame) for name, frame in frames.items()}
    fresh = [name for name, digest in digests.items() if _is_new(name.encode() + digest)]
    if fresh:
        spreadsheet_csv(frames[fresh[number % len(fresh)]])
    with_steps, without = good_runs()
    baseline = with_steps if run.info.has_steps else without
    _compare(compare(baseline, run), frames, digests, number)


def _compare(comparison: Comparison, frames: dict[str, pd.DataFrame], digests: dict[str, bytes], number: int) -> None:
    """The sentence on the two runs, and the diff of a table such as was not compared before."""
    (run,) = comparison.candidates
    if _is_new(_digest(frames["run_info"].drop(columns=["size_bytes"])) + digests["steps"]):
        comparison.headline(), pair_with(comparison).mismatches
    diffed = [name for name, table in schema.TABLES.items() if table.has_diff]
    of_steps = f"{run.info.step_count} {comparison.per}".encode()
    keys = {name: name.encode() + digests[name] + digests.get(_OP_TABLES.get(name, ""), b"") for name in diffed}
    fresh = [name for name in diffed if keys[name] + of_steps not in _seen]
    if fresh:
        name = random.Random(number).choice(fresh)
        _is_new(keys[name] + of_steps)
        diff = comparison.diffs(name)
        if name == "op_stats":
            _look_at_ops(comparison, diff, number)


def _look_at_ops(comparison: Comparison, diff: pd.DataFrame, number: int) -> None:
    """What the overview makes of the diff of ops; advice and charts, which take longest, of every fifth."""
    (run,) = comparison.candidates
    comparison.coverage()
    op_times(diff, lambda _: comparison.per)
    changes = largest_changes(diff)
    if number % _DRAWN_EVERY:
        return
    advise_on(facts_of(comparison.baseline), facts_of(run))
    if len(changes):
        movers(changes, "self_time_us", per=comparison.per).to_json()


def _is_new(what: bytes) -> bool:
    """Whether this has not been asked before. What is made of equal tables is equal."""
    is_new = what not in _seen
    _seen.add(what)
    return is_new


def _digest(frame: pd.DataFrame) -> bytes:
    return blake2b(pickle.dumps(frame, 5), digest_size=16).digest()


@cache
def good_runs() -> tuple[Run, Run]:
    """What inputs are compared with: a run with steps on a CPU, and one without any on a GPU."""
    import tempfile

    steps, _, _, _, no_steps, *_ = fuzz_inputs.built()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vm.xplane.pb"
        runs = []
        for data in (steps, no_steps):
            path.write_bytes(data)
            runs.append(load(found(path, len(data))))
    return runs[0], runs[1]


def _check_all(frames: dict[str, pd.DataFrame]) -> None:
    """What holds of the tables of any run of one host, however odd the profile."""
    for name, frame in frames.items():
        _check(name, frame)
    steps, ops, op_steps = (frames[name] for name in ("steps", "op_stats", "op_steps"))
    is_idle = (ops["op_type"] == schema.IDLE) & (ops["op_name"] == schema.IDLE)
    is_untimed = steps["duration_us"].isna().all()
    assert (ops["wall_time_us"].isna() == (is_idle | is_untimed)).all(), "wall time where there is none, or none"
    assert (op_steps["wall_time_us"].isna() == is_untimed).all(), "wall time where there is none, or none"
    assert (steps["host_start_us"].isna() == steps["host_span_us"].isna()).all(), "half a host span"
    has_span = steps[["host_span_us", "device_span_us"]].notna().any(axis=1)
    assert (has_span | steps["duration_us"].isna()).all(), "a step of no span"


def _check(name: str, frame: object) -> None:
    """What holds of any table by itself."""
    assert isinstance(frame, pd.DataFrame)
    numbers = frame.select_dtypes("number")
    if name in ("steps", "op_stats", "op_steps"):
        told = frame.drop(columns=_MAY_BE_ABSENT, errors="ignore")
        if name == "steps":  # one that was not recorded as a whole has no time
            is_lost, times = told["duration_us"].isna(), ["duration_us", *schema.STEP_PARTS]
            assert told.loc[is_lost, times].isna().all(axis=None), "half a time"
            told = told[~is_lost]
        assert not told.isna().any(axis=None), "an absent value"
    if "occurrences" in numbers:
        assert (numbers["occurrences"] >= 0).all(), "negative occurrences"
    for column in _NEVER_NEGATIVE:
        if column in numbers:
            assert not (numbers[column] < 0).any(), f"negative {column}"


def _start_watch() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return _peak_bytes()


def _peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
