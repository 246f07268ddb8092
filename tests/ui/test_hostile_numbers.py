"""Numbers that no profiler writes, and profiles without ops, take down no page and no command."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT
from tests.xspace_builder import event, line, plane, space
from tfcompare import settings
from tfcompare.settings import Settings

STEPS = [event("train", 2000 * i, 900, _r=1, step_num=i) for i in range(12)]


def with_number(number: float) -> bytes:
    """Steps with an op and allocations, of which a stat is `number`."""
    memory = {"allocator_name": "gpu", "addr": 1, "bytes_allocated": 100, "bytes_available": 0}
    memory |= {"fragmentation": number, "peak_bytes_in_use": number, "allocation_bytes": number}
    allocations = [event("MemoryAllocation", 2000 * i + 600, 0, **memory) for i in range(12)]
    ops = [event("a/b:mul", 2000 * i + 10, 100, flops=number, bytes_accessed=number) for i in range(12)]
    return space(plane("/host:CPU", line("t", *STEPS, *ops, *allocations, id=1)), hostnames=["h"])


def shown(page: str, folder: Path, data: bytes) -> AppTest:
    for name in ("a", "b"):
        (folder / "plugins" / "profile" / name).mkdir(parents=True)
        (folder / "plugins" / "profile" / name / "h.xplane.pb").write_bytes(data)
    with settings.override(Settings(places=(folder,))):
        return AppTest.from_file(str(ROOT / "pages" / page), default_timeout=90).run()


@pytest.mark.parametrize(
    ("page", "number"),
    [
        ("1_Overview.py", math.nan),
        ("4_Memory.py", 1e308),
        ("4_Memory.py", math.inf),
        *(pytest.param("1_Overview.py", number, marks=pytest.mark.thorough) for number in (1e308, -1e308, math.inf)),
        *(pytest.param("4_Memory.py", number, marks=pytest.mark.thorough) for number in (-1e308, math.nan)),
    ],
)
def test_a_page_shows_any_number(tmp_path: Path, page: str, number: float) -> None:
    assert not shown(page, tmp_path, with_number(number)).exception


def test_steps_without_any_op_have_a_page_of_ops(tmp_path: Path) -> None:
    page = shown("2_Op_stats.py", tmp_path, space(plane("/host:CPU", line("t", *STEPS)), hostnames=["h"]))
    assert not page.exception
    assert "No op took any time on host." in [info.value for info in page.info]


@pytest.mark.parametrize("number", [1e308, math.inf, math.nan])
def test_a_command_prints_any_number(tfcompare, tmp_path: Path, number: float) -> None:
    (tmp_path / "h.xplane.pb").write_bytes(with_number(number))
    for table in ("memory_summary", "memory_timeline"):
        for format in ("table", "csv", "json"):
            status, out, _ = tfcompare("show", str(tmp_path), table, "--format", format)
            assert status == 0 and out
            assert format != "json" or json.loads(out)
