"""Where compiled code is cached, and what happens where it cannot be."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tfcompare
from tests.profiles import CORPUS, CORPUS_RUNS, run_path
from tfcompare.xspace import compilation

PACKAGE = Path(tfcompare.__file__).parents[1]


def printed(script: str, *words: str, **environment: str) -> str:
    """What a script prints in a process of its own."""
    command = [sys.executable, "-B", "-c", textwrap.dedent(script), *words]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), **environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


ONE_LOOP = """
from tfcompare.xspace.compilation import compiled, survives_full_disk

@compiled
def inner(x):
    return x + 1

@compiled
def outer(x):
    return inner(x) + inner(1.5 * x)

@survives_full_disk
def call(x):
    return outer(x)
"""


@pytest.fixture
def loops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a module `loops` with a folder for its cache."""
    (tmp_path / "loops.py").write_text(ONE_LOOP)
    (tmp_path / "__pycache__").mkdir(mode=0o700)
    monkeypatch.setattr(compilation, "_refused", {})
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "loops", raising=False)
    return tmp_path


def test_a_loop_is_cached_for_the_user_where_its_folder_cannot_be_written_or_else_compiled_each_time(
    loops: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (loops / "__pycache__").rmdir()
    for name in ("__pycache__", "blocked"):
        (loops / name).write_text("not a folder")
    found = []
    for cache in ("cache", "cache", "blocked"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(loops / cache))
        monkeypatch.delitem(sys.modules, "loops", raising=False)
        outer = importlib.import_module("loops").outer
        folder = outer.stats.cache_path
        assert outer(1) == 4.5
        found.append((folder and Path(folder).relative_to(loops).parts[0], sum(outer.stats.cache_hits.values())))
    assert found == [("cache", 0), ("cache", 1), (None, 0)]


@pytest.mark.parametrize(("mode", "is_used"), [(0o700, True), (0o777, False)])
def test_compiled_code_is_kept_only_where_nobody_else_can_write(loops: Path, mode: int, is_used: bool) -> None:
    folder = loops / "__pycache__"
    folder.chmod(mode)
    from loops import outer

    assert outer.stats.cache_path == (str(folder) if is_used else None)
    assert (f"{folder}: compiled code is not cached there" in compilation.why_uncached()) != is_used


def test_a_disk_that_is_full_costs_only_the_cache(loops: Path) -> None:
    script = """
        import resource
        import loops
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))  # every write to a file fails
        try:
            loops.outer(1)
        except OSError:
            print(loops.call(1), loops.call(2.0), end="")
    """
    assert printed(script, PYTHONPATH=f"{PACKAGE}{os.pathsep}{loops}") == "4.5 7.0"
    assert not list(loops.rglob("*.nbi"))


def test_read_without_compiling() -> None:
    script = """
        from tfcompare.xspace import parse, reader
        needed = reader.needs_compilation()
        print(needed, len(parse(bytes.fromhex("0a00")).planes), reader.needs_compilation(), end="")
    """
    assert printed(script, NUMBA_DISABLE_JIT="1") == "False 1 False"


@pytest.mark.thorough
def test_every_loop_is_compiled_for_one_combination_of_types_and_loaded_by_the_next_process() -> None:
    """Several for one loop take as much longer, and two processes that cache different ones at once mix them up."""
    read_all = """
        import json, sys
        from numba.core.dispatcher import Dispatcher
        from tfcompare.run import load
        from tfcompare.schema import TABLES
        for place in sys.argv[1:]:
            run = load(place)
            for table in TABLES:
                run.table(table)
        modules = [module for name, module in sys.modules.items() if name.startswith("tfcompare.")]
        loops = {loop.py_func.__qualname__: loop for module in modules for loop in vars(module).values()
                 if isinstance(loop, Dispatcher)}
        used = {name: (len(loop.signatures), sum(loop.stats.cache_misses.values())) for name, loop in loops.items()}
        print(json.dumps(used))
    """
    places = [str(run_path(name)) for name in ("filters_16_8", "gpu_filters_16_8")]
    if CORPUS.is_dir():
        places += [str(run_path(name)) for name in CORPUS_RUNS]
    used = json.loads([printed(read_all, *places, TFCOMPARE_STORE="off") for _ in range(2)][1])
    assert used["scan"] == [1, 0]
    assert {name: count for name, count in used.items() if count not in ([1, 0], [0, 0])} == {}
