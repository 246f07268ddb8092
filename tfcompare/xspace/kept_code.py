"""Machine code on disk: beside the source, or in the user's cache folder where that is read-only.

Where neither can be written, nothing is kept, and each process compiles anew. `NUMBA_CACHE_DIR` names a folder to use
instead.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import NamedTuple

_ENDING = ".code"
_DIGEST_BYTES = 16


class Kept(NamedTuple):
    """What was kept, and the file that begins with it."""

    code: bytes
    file: Path


def read(name: str) -> Kept | None:
    """What was kept under that name; None where nothing was, or not all of it is there any more."""
    for folder in _folders():
        file = folder / f"{name}{_ENDING}"
        with suppress(OSError):
            content = file.read_bytes()
            code, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
            if digest == _digest(code):
                return Kept(code, file)
    return None


def has_any(name: str) -> bool:
    """Whether anything is kept under a name that begins like this."""
    return any(True for folder in _folders() for _ in _found(folder, name))


def keep(name: str, code: bytes) -> None:
    """Keep it in the first folder that can be written, whole or not at all."""
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile(dir=folder, prefix=name[:40], suffix=".tmp", delete=False) as file:
                aside = Path(file.name)
                try:
                    file.write(code + _digest(code))
                    file.close()
                    aside.replace(folder / f"{name}{_ENDING}")
                except OSError:
                    aside.unlink(missing_ok=True)
                    raise
            return


def _digest(code: bytes) -> bytes:
    return blake2b(code, digest_size=_DIGEST_BYTES).digest()


def _found(folder: Path, name: str) -> Iterator[Path]:
    with suppress(OSError):
        yield from folder.glob(f"{name}*{_ENDING}")


def _folders() -> Iterator[Path]:
    if named := os.environ.get("NUMBA_CACHE_DIR", ""):
        yield Path(named)
        return
    yield Path(__file__).parent / "__pycache__"
    from platformdirs import user_cache_path

    yield user_cache_path("tfcompare", appauthor=False) / "compiled"
