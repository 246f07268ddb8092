"""Finds the runs at a path or URL, and each run's host files. Reads no more of a file than its outermost structure."""

from tfcompare.sources.logdir.check import check_file
from tfcompare.sources.logdir.found_run import FoundRun, HostFile, RunSummary, StoredPack
from tfcompare.sources.logdir.runs import find_run, find_runs

__all__ = ["FoundRun", "HostFile", "RunSummary", "StoredPack", "check_file", "find_run", "find_runs"]
