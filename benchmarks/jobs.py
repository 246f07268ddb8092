"""What is measured, each job in a process of its own: `python -m benchmarks.jobs JOB FILE` prints its times as JSON.

Each makes what the overview, op stats, kernel stats, HLO stats, the op profile, the memory profile and the input
pipeline show of a run; ours tf.data as well.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

OUR_TABLES = (
    *("run_info", "steps", "op_stats", "kernel_stats", "copies", "hlo_ops", "op_profile", "memory_summary"),
    *("memory_timeline", "memory_peak", "input_pipeline", "tf_data_pipelines", "tf_data"),
)
XPROF_TOOLS = (
    *("overview_page", "framework_op_stats", "kernel_stats", "hlo_stats", "op_profile", "memory_profile"),
    "input_pipeline_analyzer",
)

TFCOMPARE, TFCOMPARE_WARM, TFCOMPARE_AGAIN = "tfcompare cold", "tfcompare warm", "tfcompare, not the first"
XPROF, XPROF_WARM = "xprof cold", "xprof warm"


def tfcompare_tables(file: str) -> Callable[[], None]:
    """Open the file and make these tables of it: import now, work when called."""
    import tfcompare.run

    def work() -> None:
        run = tfcompare.run.load(file)
        for table in OUR_TABLES:
            run.table(table)

    return work


def tfcompare_again(file: str) -> Callable[[], None]:
    """The same in a process that has read a profile before, as the app's: numba is awake, nothing is kept."""
    work = tfcompare_tables(file)
    work()
    return work


def xprof_tools(file: str) -> Callable[[], None]:
    """The tools one after the other; what one leaves beside the file serves the next."""
    from xprof.convert.raw_to_tool_data import xspace_to_tool_data

    def work() -> None:
        for tool in XPROF_TOOLS:
            data, _ = xspace_to_tool_data([file], tool, {})
            if not data:
                raise SystemExit(f"xprof gives nothing for {tool}")

    return work


JOBS: dict[str, Callable[[str], Callable[[], None]]] = {
    TFCOMPARE: tfcompare_tables,
    TFCOMPARE_WARM: tfcompare_tables,
    TFCOMPARE_AGAIN: tfcompare_again,
    XPROF: xprof_tools,
    XPROF_WARM: xprof_tools,
}
TURNS = ((TFCOMPARE, TFCOMPARE_WARM), (TFCOMPARE_AGAIN,), (XPROF, XPROF_WARM))
"""What belongs together in a round: a warm job finds what the one before it left."""


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
