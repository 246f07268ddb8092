"""Kills `tfcompare ingest` again and again: `python -m tests.fuzz --of kills --seed 1 --count 20`.

After each kill the store must be readable, and in the end one undisturbed ingest must leave exactly the runs that there
are.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.profiles import SAMPLES

_SECONDS = 6.0
"""An ingest of the samples takes less."""


def main(seed: int, count: int, seconds: float = _SECONDS) -> int:
    """Kill `count` ingests, each within that many seconds of its start; returns an exit status."""
    rng = random.Random(seed)
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        for number in range(count):
            if number % 5 == 0:
                store = Path(folder) / f"store{number}"
            _kill_after(rng.uniform(0, seconds), store)
            status, text = _runs(store)
            if status not in (0, 2) or "Traceback" in text:
                faults.append(f"after kill {number}: status {status}: {text[-300:]}")
        done = _command("ingest", str(SAMPLES), "--store", str(store))
        if done.returncode:
            faults.append(f"the last ingest: {done.stderr[-300:]}")
        _, text = _runs(store)
        expected = {row["run"] for row in json.loads(_command("runs", str(SAMPLES), "--format", "json").stdout)}
        if {row["run"] for row in json.loads(text)} != expected:
            faults.append(f"the store has other runs than {sorted(expected)}: {text[:300]}")
        faults += [f"left over: {path}" for path in store.rglob("*") if path.name.startswith(".")]
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    sys.stdout.write(f"{count} ingests killed within {seconds:g} s of their start: {len(faults)} faults\n")
    return 1 if faults else 0


def _kill_after(seconds: float, store: Path) -> None:
    """Start an ingest, and kill it and its workers."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tfcompare", "ingest", str(SAMPLES), "--store", str(store)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=_environment(),
    )
    time.sleep(seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _runs(store: Path) -> tuple[int, str]:
    done = _command("runs", "--store", str(store), "--format", "json")
    return done.returncode, done.stdout + ("" if done.returncode == 0 else done.stderr)


def _command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tfcompare", *words], capture_output=True, text=True, env=_environment()
    )


def _environment() -> dict[str, str]:
    return os.environ | {"TFCOMPARE_STORE": "off"}
