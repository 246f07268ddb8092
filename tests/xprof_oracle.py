"""What xprof says of the same files: the yardstick of DESIGN, decision 2.

xprof writes beside its input and can abort the process, so it gets copies in a folder of its own and a child process.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

_CHILD = """
import sys
from xprof.convert.raw_to_tool_data import xspace_to_tool_data
data, _ = xspace_to_tool_data(sys.argv[2:], sys.argv[1], {})
sys.stdout.buffer.write(data if isinstance(data, bytes) else (data or "").encode())
"""

_OP_COLUMNS = {
    "host_or_device": "host_or_device",
    "type": "op_type",
    "operation": "op_name",
    "occurrences": "occurrences",
    "total_time": "total_time_us",
    "total_self_time": "self_time_us",
    "eager": "eager",
}


@functools.cache
def tool_data(tool: str, *files: Path) -> object:
    """xprof's JSON of that tool for the host files of one run."""
    with tempfile.TemporaryDirectory() as folder:
        copies = [shutil.copy(file, folder) for file in files]
        done = subprocess.run(
            [sys.executable, "-c", _CHILD, tool, *copies],
            capture_output=True,
            timeout=300,
            check=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        )
    return json.loads(done.stdout)


def framework_op_stats(*files: Path) -> pd.DataFrame:
    """TensorBoard's op table with IDLE: columns as `schema.OP_STATS` (less host), `eager` as text."""
    table = tool_data("framework_op_stats", *files)[0]  # type: ignore[index]
    ids = [column["id"] for column in table["cols"]]
    frame = pd.DataFrame([[cell["v"] for cell in row["c"]] for row in table["rows"]], columns=ids)
    return frame[list(_OP_COLUMNS)].rename(columns=_OP_COLUMNS)


def step_table(*files: Path) -> pd.DataFrame:
    """TensorBoard's step table of the overview page: `step` (text), `duration_us`."""
    table = tool_data("overview_page", *files)[1]  # type: ignore[index]
    ids = [column["id"] for column in table["cols"]]
    rows = [[cell["v"] for cell in row["c"]] for row in table["rows"]]
    frame = pd.DataFrame(rows, columns=ids)
    return pd.DataFrame({"step": frame["stepnum"], "duration_us": frame["stepTimeMs"].astype(float) * 1000})
