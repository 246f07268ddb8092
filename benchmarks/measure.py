"""Run jobs in fresh processes, and tell what each took."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks.jobs import TFCOMPARE_KEEPING, TFCOMPARE_WARM, TURNS, XPROF, XPROF_WARM

_ROOT = Path(__file__).resolve().parent.parent
_BYTES_PER_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
_STORE, _NO_STORE = "TFCOMPARE_STORE", "off"
_SETTLED_S = 2.5
"""A file that was written just now is not taken for known by its time alone."""


@dataclass(frozen=True)
class Cost:
    """What one process took: `work_s` from the file to the tables, `import_s` before it; `process_s` from its start to
    its end, everything included; `peak_bytes` of resident memory."""

    work_s: float
    import_s: float
    process_s: float
    peak_bytes: int


class Copies:
    """A file's private copies. xprof writes beside its own, and finds what it wrote when asked again."""

    def __init__(self, file: Path, folder: Path) -> None:
        self._folder = folder
        self._ours = _copy(file, folder / "tfcompare")

    def round(self, number: int, jobs: list[str], tell: Callable[[str, Cost], None]) -> dict[str, Cost]:
        """Each of `jobs` once, one after the other, with nothing left of earlier rounds.

        Each round has an order of its own, always the same one: what a job leaves the machine like, such as without
        the memory that it gave back, falls on others by and by.
        """
        costs = {}
        with tempfile.TemporaryDirectory(dir=self._folder) as fresh:
            theirs = Path(fresh) / "xprof"
            turns = Random(number).sample(TURNS, len(TURNS))
            for job in (job for turn in turns for job in turn if job in jobs):
                is_xprof = job in (XPROF, XPROF_WARM)
                if is_xprof and not theirs.exists():
                    _copy(self._ours, theirs)
                store = f"{fresh}/store" if job in (TFCOMPARE_KEEPING, TFCOMPARE_WARM) else _NO_STORE
                costs[job] = cost_of(job, theirs / self._ours.name if is_xprof else self._ours, **{_STORE: store})
                tell(job, costs[job])
        return costs


@contextmanager
def copies(file: Path) -> Iterator[Copies]:
    """Copies that are gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        made = Copies(file, Path(folder))
        time.sleep(_SETTLED_S)
        yield made


def without_compiled_code(job: str, file: Path) -> Cost:
    """What `job` takes where nothing is compiled yet."""
    with tempfile.TemporaryDirectory() as folder:
        ours = _copy(file, Path(folder) / "tfcompare")
        return cost_of(job, ours, **{_STORE: _NO_STORE, "NUMBA_CACHE_DIR": f"{folder}/numba"})


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
