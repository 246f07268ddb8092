"""What holds for all tests: nothing is read from, or left in, the folder where a user's uploads are kept."""

from __future__ import annotations

import os
import shutil
import tempfile

from tests.capture.workers import workers
from tfcompare.settings import DATA_VARIABLE

__all__ = ["workers"]

_DATA = tempfile.mkdtemp(prefix="tfcompare-tests-")


def pytest_configure() -> None:
    os.environ[DATA_VARIABLE] = _DATA


def pytest_unconfigure() -> None:
    shutil.rmtree(_DATA, ignore_errors=True)
