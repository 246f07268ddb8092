"""What all tests share: a data folder of their own, so that no user's uploads are read or left; and the command."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from functools import cache

import pytest
from hypothesis import settings

from tests.sources.capture.workers import workers
from tfcompare import cli

__all__ = ["workers"]

pytest_plugins = ["tests.budget"]

_DATA = tempfile.mkdtemp(prefix="tfcompare-tests-")


settings.register_profile(
    "steady",
    deadline=None,  # machines that run tests have other things to do as well
    derandomize="LAW_FACTOR" not in os.environ,  # what one run finds, the next one finds: see `tests.laws`
)
settings.load_profile("steady")


def pytest_configure() -> None:
    os.environ["TFCOMPARE_DATA"] = os.environ["XDG_DATA_HOME"] = _DATA
    os.environ["TFCOMPARE_STORE"] = "off"  # what is tested is read; a few tests switch it on
    os.environ["TFCOMPARE_READ_MB"] = "off"  # in this process


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()  # hardly anything that is imported is garbage, or becomes it
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()  # to look at it again takes a third of a second each time
        gc.enable()


def pytest_collection_finish() -> None:
    if "streamlit.testing.v1" in sys.modules:
        from streamlit.components.v2 import manifest_scanner

        # Every AppTest looks through all packages for components: a tenth of a second, and the same each time.
        manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


def pytest_unconfigure() -> None:
    shutil.rmtree(_DATA, ignore_errors=True)


@pytest.fixture(autouse=True)
def main_module() -> Generator[None]:
    """Streamlit leaves the page that it ran last as `__main__`, which processes started by a later test would run."""
    before = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = before


@pytest.fixture
def tfcompare(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Runs a command; returns exit status, stdout and stderr."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("tfcompare.xspace.reader.needs_compilation", lambda: False)

    def run(*words: str) -> tuple[int, str, str]:
        try:
            status = cli.main(words)
        except SystemExit as stop:
            status = int(stop.code or 0)
        return status, *capsys.readouterr()

    return run
