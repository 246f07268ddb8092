"""Run a job in a fresh process, on a private copy of its file, and tell what it took."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_BYTES_PER_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Cost:
    """What one process took: `work_s` from the file to the tables, `import_s` before it; `process_s` from its start to
    its end, everything included; `peak_bytes` of resident memory."""

    work_s: float
    import_s: float
    process_s: float
    peak_bytes: int


def cost_of(job: str, file: Path, numba_cache: Path | None = None) -> Cost:
    """Run `job` once. The copy leaves the file in the page cache; nothing else is cached but what numba finds in
    `numba_cache` (by default its usual place). The caller must be small: a process begins with the peak of the one that
    starts it."""
    with tempfile.TemporaryDirectory() as folder:
        output, log = Path(folder) / "output", Path(folder) / "log"
        command = [sys.executable, "-m", "benchmarks.jobs", job, shutil.copy(file, folder)]
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        if numba_cache is not None:
            environment["NUMBA_CACHE_DIR"] = str(numba_cache)
        with output.open("wb") as out, log.open("wb") as err:
            started = time.perf_counter()
            process = subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            ended = time.perf_counter()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{job} failed on {file.name}: {log.read_text(errors='replace')[-2000:]}")
        inside = json.loads(output.read_text())
    return Cost(**inside, process_s=ended - started, peak_bytes=usage.ru_maxrss * _BYTES_PER_RSS_UNIT)
