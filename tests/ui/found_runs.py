"""Runs as they are found, of no content."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tfcompare.sources.logdir import FoundRun, HostFile


def found(run_id: str, *, folder: str = "/logs", readable: bool = True) -> FoundRun:
    path = Path(folder) / run_id
    files = (HostFile("vm", path / "vm.xplane.pb", 10, 1),) if readable else ()
    problems = () if readable else (f"{path}: is empty",)
    return FoundRun(run_id, run_id, path, files, problems, datetime(2026, 1, 1, tzinfo=UTC), "profile")
