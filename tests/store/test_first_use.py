"""Types that several threads read for the first time at once: in processes of their own, which must not die of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.profiles import WORKER_RUNS

READ_AT_ONCE = """
import sys
from dataclasses import make_dataclass
from threading import Barrier, Thread

from tfcompare.store.contents import from_json

THREADS, TYPES, FIELDS = 8, 50, 12
sys.setswitchinterval(1e-6)
values = ",".join(f'"field_{i}": {{"a": [1, 2]}}' for i in range(FIELDS))
content = f'{{"inner": {{{values}}}, {values}}}'.encode()
start = Barrier(THREADS)

def read(kind):
    start.wait()
    from_json(content, kind)

for _ in range(TYPES):
    fields = [(f"field_{i}", "dict[str, tuple[int, ...]]") for i in range(FIELDS)]
    kind = make_dataclass("Content", [("inner", make_dataclass("Inner", fields)), *fields])
    threads = [Thread(target=read, args=[kind]) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""

SHOW = """
import sys

from tfcompare import cli

sys.setswitchinterval(1e-6)
cli.main(["show", sys.argv[1], "steps"])
"""


def run(code: str, *words: str, **variables: str) -> None:
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stderr


def test_types_that_threads_read_at_once() -> None:
    run(READ_AT_ONCE)


@pytest.mark.thorough
def test_hosts_that_are_read_from_the_cache_at_once(tmp_path: Path) -> None:
    for _ in range(41):  # the first one fills the cache
        run(SHOW, str(WORKER_RUNS["workers_balanced"]), TFCOMPARE_STORE=str(tmp_path))
