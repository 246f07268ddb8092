"""Memory while profiles are read, and afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tfcompare
from tfcompare.xspace import heap

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3


class Glibc:
    """Notes what it is asked for."""

    def __init__(self) -> None:
        self.bytes_of: dict[int, int] = {}
        self.trimmed = 0

    def mallopt(self, which: int, value: int) -> int:
        self.bytes_of[which] = value
        return 1

    def malloc_trim(self, _: int) -> int:
        self.trimmed += 1
        return 1


@pytest.fixture
def glibc(monkeypatch: pytest.MonkeyPatch) -> Glibc:
    made = Glibc()
    monkeypatch.setattr(heap, "_glibc", lambda: made)
    return made


def test_memory_is_kept_until_the_last_reader_is_done_and_given_back_then(glibc: Glibc) -> None:
    first, second = heap.kept_at_hand(), heap.kept_at_hand()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert min(glibc.bytes_of.values()) >= 1 << 30
    assert not glibc.trimmed
    second.__exit__(None, None, None)
    assert glibc.bytes_of == {MMAP_THRESHOLD: 32 << 20, TRIM_THRESHOLD: 64 << 20}
    assert glibc.trimmed == 1


def test_it_is_given_back_where_reading_fails(glibc: Glibc) -> None:
    with pytest.raises(ValueError, match="damaged"), heap.kept_at_hand():
        raise ValueError("damaged")
    assert glibc.trimmed == 1


def test_without_glibc_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap, "_glibc", lambda: None)
    with heap.kept_at_hand():
        pass


@pytest.mark.skipif(not (sys.platform == "linux" and "CS_GNU_LIBC_VERSION" in os.confstr_names), reason="needs glibc")
def test_what_was_let_go_of_meanwhile_is_with_the_system_again() -> None:
    """400 MB in arrays of 4 MB, of which every hundredth stays."""
    fill = """
        import numpy as np
        from tfcompare.xspace.heap import kept_at_hand

        def held_mb():
            return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6

        before = held_mb()
        with kept_at_hand():
            arrays = [np.ones(1 << 19) for _ in range(100)]
            arrays = arrays[::100]
            within = held_mb()
        print(round(within - before), round(held_mb() - before))
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(tfcompare.__file__).parents[1])}
    call = [sys.executable, "-c", textwrap.dedent(fill)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    within, afterwards = map(int, done.stdout.split())
    assert within > 300
    assert afterwards < 30
