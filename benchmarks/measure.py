"""Run jobs in fresh processes, and tell what each took."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from benchmarks.jobs import JOBS, TFCOMPARE, TFCOMPARE_AGAIN, TURNS, XPROF, XPROF_WARM

_ROOT = Path(__file__).resolve().parent.parent
_BYTES_PER_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
_STORE = "TFCOMPARE_STORE"
_SETTLED_S = 2.5
"""A file that was written just now is not taken for known by its time alone."""
LARGE_MEGABYTES, SLOW_ROUNDS = 100, 2
"""On larger files xprof takes minutes, and runs in so many rounds only."""


@dataclass(frozen=True)
class Cost:
    """What one process took: `work_s` from the file to the tables, `import_s` before it; `process_s` from its start to
    its end, everything included; `peak_bytes` of resident memory."""

    work_s: float
    import_s: float
    process_s: float
    peak_bytes: int


@dataclass(frozen=True)
class Measured:
    """Rounds on one file. The first costs of all jobs were taken in the same round, the second ones, and so on; a slow
    job may have gone through fewer rounds than others."""

    name: str
    megabytes: float
    costs: dict[str, list[Cost]]

    def values(self, job: str, metric: Callable[[Cost], float]) -> list[float]:
        """The metric in each round."""
        return [metric(cost) for cost in self.costs[job]]

    def ratio(self, metric: Callable[[Cost], float], job: str, to: str = TFCOMPARE) -> float:
        """How many times as much as `to` the job took, round by round: the median."""
        pairs = zip(self.values(job, metric), self.values(to, metric), strict=False)
        return median(value / other for value, other in pairs)


def rounds(file: Path, name: str, count: int, tell: Callable[[str], None]) -> Measured:
    """Every job on copies of `file`, one after the other, as many times, with nothing left of earlier rounds.

    Each round has an order of its own, always the same one: what a job leaves the machine like, such as without the
    memory that it gave back, falls on others by and by. xprof writes beside its own copy, and finds what it wrote.
    """
    megabytes = file.stat().st_size / 1e6
    costs: dict[str, list[Cost]] = {job: [] for job in JOBS}
    with tempfile.TemporaryDirectory() as folder:
        ours = _copy(file, Path(folder) / "tfcompare")
        time.sleep(_SETTLED_S)
        for number in range(count):
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                theirs = _copy(ours, Path(fresh) / "xprof")
                for job in (job for turn in Random(number).sample(TURNS, len(TURNS)) for job in turn):
                    is_xprof = job in (XPROF, XPROF_WARM)
                    if is_xprof and megabytes > LARGE_MEGABYTES and number >= SLOW_ROUNDS:
                        continue
                    store = "off" if is_xprof or job == TFCOMPARE_AGAIN else f"{fresh}/store"
                    cost = cost_of(job, theirs if is_xprof else ours, **{_STORE: store})
                    costs[job].append(cost)
                    tell(f"{name}, round {number + 1} of {count}, {job}: {cost.work_s:.2f} s of {cost.process_s:.2f} s")
    return Measured(name, megabytes, costs)


def cost_of(job: str, file: Path, **environment: str) -> Cost:
    """Run `job` once. The caller must be small: a process begins with the peak of the one that starts it."""
    with tempfile.TemporaryDirectory() as folder:
        output, log = Path(folder) / "output", Path(folder) / "log"
        command = [sys.executable, "-m", "benchmarks.jobs", job, str(file)]
        variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **environment}
        with output.open("wb") as out, log.open("wb") as err:
            started = time.perf_counter()
            process = subprocess.Popen(command, cwd=_ROOT, env=variables, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            ended = time.perf_counter()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{job} failed on {file.name}: {log.read_text(errors='replace')[-2000:]}")
        inside = json.loads(output.read_text())
    return Cost(**inside, process_s=ended - started, peak_bytes=usage.ru_maxrss * _BYTES_PER_RSS_UNIT)


def _copy(file: Path, folder: Path) -> Path:
    folder.mkdir()
    return Path(shutil.copy(file, folder))
