"""Where compiled code is kept, and what happens where it cannot be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from numba.core.errors import TypingError

import tfcompare
from tests.profiles import CORPUS, CORPUS_RUNS, run_path
from tfcompare.xspace import compilation, machine_code

TELL = """
    import json
    from tfcompare.xspace import parse, compilation
    before = compilation.needs_compilation()
    planes = len(parse(bytes.fromhex("0a00")).planes)
    print(json.dumps([before, planes, compilation.needs_compilation()]))
"""


def tell(**environment: str) -> tuple[bool, int, bool]:
    """In a process of its own: (compilation needed before, planes read, needed after)."""
    package = environment.pop("PYTHONPATH", str(Path(tfcompare.__file__).parents[1]))
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(TELL)],
        env={**os.environ, "PYTHONPATH": package, **environment},
        cwd=os.sep,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    before, planes, after = json.loads(done.stdout)
    return before, planes, after


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that nothing can be written beside: files stand where its cache folders would be."""
    source = Path(tfcompare.__file__).parent
    shutil.copytree(source, tmp_path / "tfcompare", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("xspace", "frames"):
        (tmp_path / "tfcompare" / folder / "__pycache__").write_text("not a folder")
    return tmp_path


def test_read_where_nothing_can_be_kept(tmp_path: Path, package: Path) -> None:
    """The package's folder and the user's cache folder cannot be written, nor can what the environment names."""
    blocked = tmp_path / "blocked"
    blocked.write_text("not a folder")
    told = tell(
        PYTHONPATH=str(package),
        NUMBA_CACHE_DIR=str(blocked / "cache"),
        XDG_CACHE_HOME=str(blocked),
        HOME=str(blocked),
    )
    assert told == (True, 1, False)


def test_compiled_once_and_kept_in_the_users_cache_where_the_package_cannot_be_written(
    tmp_path: Path, package: Path
) -> None:
    kept = tmp_path / "kept"
    for expected in ((True, 1, False), (False, 1, False)):
        told = tell(PYTHONPATH=str(package), NUMBA_CACHE_DIR="", XDG_CACHE_HOME=str(kept), HOME=str(tmp_path))
        assert told == expected
    assert list(kept.rglob("wire.scan-*.code"))


def test_code_that_is_kept_is_loaded_without_numba(tmp_path: Path) -> None:
    look = """
        import sys
        from tfcompare.xspace import parse
        parse(bytes.fromhex("0a00"))
        print(int("numba" in sys.modules))
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(tfcompare.__file__).parents[1]),
        "NUMBA_CACHE_DIR": str(tmp_path),
    }
    call = [sys.executable, "-c", textwrap.dedent(look)]
    answers = [subprocess.run(call, env=environment, capture_output=True, text=True, timeout=300) for _ in range(2)]
    assert [(a.returncode, a.stdout, a.stderr) for a in answers] == [(0, "1\n", ""), (0, "0\n", "")]


def test_a_full_disk_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(Path, "replace", full)
    doubled = compilation.compiled(_doubled)
    assert isinstance(doubled, compilation.Compiled)
    assert doubled(21) == 42
    assert list(tmp_path.iterdir()) == []


def test_damaged_code_is_not_run_but_made_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for damage in (lambda code: code[:-9], lambda code: code[:99] + b"\xff" + code[100:], lambda _: b""):
        assert compilation.compiled(_doubled)(21) == 42
        (kept,) = tmp_path.iterdir()
        whole = kept.read_bytes()
        kept.write_bytes(damage(whole))
        assert compilation.compiled(_doubled)(21) == 42
        assert len(kept.read_bytes()) == len(whole)
        with monkeypatch.context() as patched:
            patched.setattr(machine_code, "translate", None)
            assert compilation.compiled(_doubled)(21) == 42


def test_code_is_kept_for_each_program_and_each_combination_of_types(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    added = compilation.compiled(_add)
    for kind, expected in ((np.int64, 1), (np.int32, 2), (np.int64, 2)):
        numbers = np.arange(5).astype(kind)
        added(numbers, 3)
        assert numbers.tolist() == [3, 4, 5, 6, 7]
        assert len(list(tmp_path.iterdir())) == expected
    every_second = np.arange(6)[::2]
    added(every_second, 1)
    assert every_second.tolist() == [1, 3, 5]
    monkeypatch.setitem(_add.__globals__, "_EXTRA", 1)
    numbers = np.zeros(2, np.int64)
    compilation.compiled(_add)(numbers, 1)
    assert numbers.tolist() == [2, 2]


def test_what_is_returned_is_integers_or_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert compilation.compiled(_both)(-1, 1 << 40) == (-1, 1 << 40)
    with pytest.raises(TypeError, match="returns float64"):
        compilation.compiled(_half)(3)


def test_a_loop_that_allocates_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    with pytest.raises(TypingError):
        compilation.compiled(_allocating)(3)


_EXTRA = 0


def _doubled(number: int) -> int:
    return 2 * number


def _add(numbers: npt.NDArray[np.int64], what: int) -> None:
    for i in range(numbers.size):
        numbers[i] += what + _EXTRA


def _both(first: int, second: int) -> tuple[int, int]:
    return first, second


def _half(number: int) -> float:
    return number / 2


def _allocating(size: int) -> int:
    return len(np.zeros(size, np.int64))


@pytest.mark.parametrize("trouble", [AttributeError, RuntimeError])
def test_where_machine_code_cannot_be_had_numba_calls_it_itself(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, trouble: type[Exception]
) -> None:
    def nothing(*_: object) -> None:
        raise trouble("another numba")

    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(machine_code, "translate", nothing)
    added = compilation.compiled(_add)
    numbers = np.arange(3)
    added(numbers, 3)
    added(numbers, 4)
    assert numbers.tolist() == [7, 8, 9]
    assert list(tmp_path.iterdir()) == []


def test_every_loop_over_every_kind_of_profile_is_kept() -> None:
    """None is left to numba's own way of calling."""
    read_all = """
        import sys
        from tfcompare.run import load
        from tfcompare.schema import TABLES
        for place in sys.argv[1:]:
            run = load(place)
            for table in TABLES:
                run.table(table)
        print("numba" in sys.modules)
    """
    places = [str(run_path(name)) for name in ("filters_16_8", "filters_16_8_simulated")]
    if CORPUS.is_dir():
        places += [str(run_path(name)) for name in CORPUS_RUNS]
    command = [sys.executable, "-c", textwrap.dedent(read_all), *places]
    environment = {**os.environ, "TFCOMPARE_STORE": "off"}
    said = [subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300) for _ in range(2)]
    assert [(done.returncode, done.stderr) for done in said] == [(0, "")] * 2
    assert said[1].stdout == "False\n"
