"""The stored profiles that a test is compared with: one folder per test, which holds run-1, run-2, …"""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tfcompare.sources.machine_load import FILE_NAME as LOAD_FILE

_PROFILE = ".xplane.pb"
_CAPTURE = re.compile(r"run-(\d+)")
_NOT_IN_NAMES = re.compile(r"[^\w.-]+")
_LONGEST_NAME = 80
_HASH_CHARACTERS = 10


@dataclass(frozen=True)
class Baseline:
    """The captures of one test, in `folder/run-1`, `folder/run-2`, …

    They are profiles, compressed with gzip, and not tables, so that any version of tfcompare can read them.
    """

    folder: Path

    @classmethod
    def of_test(cls, baselines: Path, test_id: str) -> Baseline:
        """The baseline of a test, in a folder that no other test has, even where file names ignore case."""
        readable = _NOT_IN_NAMES.sub("_", test_id)[-_LONGEST_NAME:].strip("_.-")
        digest = hashlib.sha256(test_id.encode("utf-8", "surrogatepass")).hexdigest()
        return cls(baselines / f"{readable}-{digest[:_HASH_CHARACTERS]}")

    @property
    def exists(self) -> bool:
        """Whether there is a capture, readable or not."""
        return bool(self._numbers)

    @property
    def _numbers(self) -> list[int]:
        if not self.folder.is_dir():
            return []
        return [int(match[1]) for path in self.folder.iterdir() if (match := _CAPTURE.fullmatch(path.name))]

    def replace(self, captured: Path) -> None:
        """Store the profile below `captured` as the only capture. Raises OSError if the folder cannot be written."""
        self._store(captured, 1, replaces=True)

    def add(self, captured: Path) -> None:
        """Store the profile below `captured` as one more capture. Raises OSError if the folder cannot be written."""
        self._store(captured, max(self._numbers, default=0) + 1, replaces=False)

    def _store(self, captured: Path, number: int, *, replaces: bool) -> None:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".arriving-", dir=self.folder.parent) as arriving:
            new = Path(arriving) / f"run-{number}"
            new.mkdir()
            for path in captured.rglob(f"*{_PROFILE}"):
                (new / f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
            for path in captured.rglob(LOAD_FILE):
                shutil.copy(path, new / LOAD_FILE)
            if replaces and self.folder.exists():
                self.folder.rename(Path(arriving) / "replaced")
            self.folder.mkdir(exist_ok=True)
            new.rename(self.folder / new.name)
