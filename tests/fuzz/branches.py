"""Which branches of the reader inputs take, with its loops as plain Python: what is compiled cannot be measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READER = (
    *(f"xspace/{name}" for name in ("reader", "wire", "space", "tables", "texts", "lookup", "gzipped")),
    *(
        f"hlo/{name}"
        for name in (
            "wire",
            "program",
            "shapes",
            "cost",
            "convolution",
            "custom_calls",
            "category",
            "buffers",
            "expression",
        )
    ),
)


@dataclass(frozen=True)
class Branches:
    """`inputs` took `taken` of the reader's `known` branches; `missed`: those not taken, as `file: line -> line`."""

    inputs: int
    taken: int
    known: int
    missed: tuple[str, ...]


def subset(count: int, wanted: int) -> list[int]:
    """Some of the numbers below `count`: spread over all of them, in pairs."""
    apart = max(2, 2 * count // max(wanted, 1))
    return [n for first in range(0, count, apart) for n in (first, first + 1) if n < count]


def measured(seed: int, count: int, wanted: int, with_corpus: bool) -> Branches:
    """Run about `wanted` of the inputs through the reader and the tables in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, "-m", "tests.fuzz", "--seed", str(seed), "--count", str(count), "--branches-to", folder]
        call += ["--branch-inputs", str(wanted), *(["--corpus"] if with_corpus else [])]
        subprocess.run(call, check=True, cwd=ROOT, env=os.environ | {"NUMBA_DISABLE_JIT": "1"})
        report = json.loads((Path(folder) / "coverage.json").read_text())
        lines = (Path(folder) / "log").read_text().splitlines()
    files = report["files"]
    totals = [file["summary"] for file in files.values()]
    return Branches(
        inputs=sum(line.startswith("{") for line in lines),
        taken=sum(total["covered_branches"] for total in totals),
        known=sum(total["num_branches"] for total in totals),
        missed=tuple(
            f"{Path(name).parent.name}/{Path(name).name}: {a} -> {b}"
            for name, file in files.items()
            for a, b in file["missing_branches"]
        ),
    )


def measure(seed: int, count: int, wanted: int, with_corpus: bool, folder: Path) -> None:
    """In that process, before anything of tfcompare is imported: leaves `coverage.json` and the log in `folder`."""
    from coverage import Coverage

    package = ROOT / "tfcompare"
    coverage = Coverage(branch=True, data_file=None, include=[str(package / f"{name}.py") for name in READER])
    coverage.start()
    from tests.fuzz.worker import work

    work(seed, subset(count, wanted), with_corpus, folder / "log", comparing=False)
    coverage.stop()
    coverage.json_report(outfile=str(folder / "coverage.json"))
