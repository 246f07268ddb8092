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
from typing import Any

import pandas as pd

from tests.protobufs import hlo_protos
from tfcompare.xspace import parse

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
        return _said(_CHILD, tool, *copies)


def _said(script: str, *arguments: str) -> Any:
    """The JSON that a script with xprof prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
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


def hlo_stats(*files: Path) -> pd.DataFrame:
    """xprof's table of HLO ops: `program_id` (text), `hlo_op`, `category`, `tf_op_name`, `occurrences`,
    `total_time_us`, `self_time_us`, `operational_intensity`, and FLOPs and bytes of one occurrence."""
    table = tool_data("hlo_stats", *files)
    table = table[0] if isinstance(table, list) else table
    rows = [[cell["v"] for cell in row["c"]] for row in table["rows"]]  # type: ignore[index]
    frame = pd.DataFrame(rows, columns=[column["id"] for column in table["cols"]])  # type: ignore[index]
    frame = frame.rename(
        columns={"hlo_op_name": "hlo_op", "total_time": "total_time_us", "total_self_time": "self_time_us"}
    )
    return frame.assign(
        program_id=frame["program_id"].astype("str"),
        occurrences=frame["occurrences"].astype("int64"),
        flops_each=frame["model_flop_rate"] * frame["avg_time"] * 1e3,
        bytes_each=frame["measured_memory_bw"] * frame["avg_time"] * (2**30 / 1e6),
    )


_PROGRAMS_CHILD = """
import json, sys
from xprof.convert.raw_to_tool_data import xspace_to_tool_data
out = {}
for name in sys.argv[2:]:
    data, _ = xspace_to_tool_data([sys.argv[1]], "memory_viewer", {"module_name": name})
    out[name] = json.loads(data)
print(json.dumps(out))
"""


@functools.cache
def memory_viewer(file: Path) -> dict[str, dict[str, Any]]:
    """The JSON of `memory_viewer` for each program in the file; it reads the programs from files of their own."""
    space = parse(file.read_bytes())
    protos = {str(space.metadata_names[row]): proto for row, proto in hlo_protos(space).items()}
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(file, folder)
        for name, proto in protos.items():
            (Path(folder) / f"{name}.hlo_proto.pb").write_bytes(proto)
        found: dict[str, dict[str, Any]] = _said(_PROGRAMS_CHILD, str(copy), *protos)
    return found
