"""What is measured, each job in a process of its own: `python -m benchmarks.jobs JOB FILE` prints its times as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable


def tfcompare_tables(file: str) -> Callable[[], None]:
    """Read the file and make every table there is of it: import now, work when called."""
    import tfcompare.run
    from tfcompare.schema import TABLES

    def work() -> None:
        run = tfcompare.run.load(file)
        for table in TABLES:
            run.table(table)

    return work


def tfcompare_again(file: str) -> Callable[[], None]:
    """The same in a process that has read a profile before, as the app's: numba is awake, nothing is kept."""
    work = tfcompare_tables(file)
    work()
    return work


def xprof_tools(*tools: str) -> Callable[[str], Callable[[], None]]:
    """These tools of xprof on one file, one after the other; what one leaves beside the file serves the next."""

    def prepare(file: str) -> Callable[[], None]:
        from xprof.convert.raw_to_tool_data import xspace_to_tool_data

        def work() -> None:
            for tool in tools:
                data, _ = xspace_to_tool_data([file], tool, {})
                if not data:
                    raise SystemExit(f"xprof gives nothing for {tool}")

        return work

    return prepare


TFCOMPARE = "tfcompare"
TFCOMPARE_AGAIN = "tfcompare, not the first profile"
JOBS: dict[str, Callable[[str], Callable[[], None]]] = {
    TFCOMPARE: tfcompare_tables,
    TFCOMPARE_AGAIN: tfcompare_again,
    "xprof overview + op stats": xprof_tools("overview_page", "framework_op_stats"),
    "xprof overview": xprof_tools("overview_page"),
    "xprof op stats": xprof_tools("framework_op_stats"),
}


def main() -> None:
    job, file = sys.argv[1:]
    started = time.perf_counter()
    work = JOBS[job](file)
    imported = time.perf_counter()
    work()
    done = time.perf_counter()
    json.dump({"import_s": imported - started, "work_s": done - imported}, sys.stdout)


if __name__ == "__main__":
    main()
