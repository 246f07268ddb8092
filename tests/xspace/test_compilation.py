"""Where compiled code is kept, and what happens where it cannot be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tfcompare

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
    assert list(kept.rglob("wire.scan-*.nbi"))


def test_a_full_disk_is_no_reason_to_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba
    from numba.core.caching import FunctionCache

    from tfcompare.xspace import compilation

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    doubled = compilation.compiled(_double)
    assert isinstance(doubled, numba.core.registry.CPUDispatcher)
    assert doubled(21) == 42


def _double(number: int) -> int:
    return 2 * number
