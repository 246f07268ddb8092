"""tfcompare and xprof on the same files, side by side: `python -m benchmarks`, or `make bench`.

Writes each section of `results.md` as soon as it is measured; what is not asked for stays as it is. All sizes of a kind
are one section.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.jobs import TFCOMPARE
from benchmarks.machine import description
from benchmarks.measure import Measured, cost_of, rounds
from benchmarks.page import put
from benchmarks.report import HOW, aims, section

_HERE = Path(__file__).resolve().parent
_SAMPLES = _HERE.parent / "sample_logs"
_TITLES = {
    "tf_cpu": "TensorFlow on a CPU, generated",
    "tf_gpu": "TensorFlow on a GPU, generated",
    "jax_tpu": "JAX on a TPU, generated",
    "jax_gpu": "JAX on a GPU, generated: thousands of instructions",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Measure what is asked for, print the page and write it."""
    args = _arguments(argv)
    machine = "; ".join(description())
    put(args.out, "how", HOW)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cost_of(TFCOMPARE, _generated(folder, "tf_cpu", 0.1), TFCOMPARE_STORE="off")  # leaves compiled code on disk
        for kind in args.kinds:
            measured: list[Measured] = []
            context = _context(f"--kinds {kind} --sizes {' '.join(f'{s:g}' for s in args.sizes)}", args.runs, machine)
            for megabytes in sorted(args.sizes):
                file = _generated(folder, kind, megabytes)
                measured.append(rounds(file, _name(file), args.runs, _say))
                put(args.out, kind, "\n\n".join((section(_TITLES[kind], measured, context), *aims(kind, measured))))
                file.unlink()
        if files := sorted(args.samples.rglob("*.xplane.pb")) if args.samples else []:
            context = _context("--kinds --samples sample_logs", args.runs, machine)
            found = [rounds(file, _name(file), args.runs, _say) for file in files]
            put(args.out, "samples", section("The sample runs", found, context))
    print(args.out.read_text(), end="")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--kinds", nargs="*", choices=sorted(_TITLES), default=list(_TITLES), help="kinds of generated files (all)"
    )
    parser.add_argument("--sizes", type=float, nargs="*", default=[3, 30, 300], help="their MB (default 3 30 300)")
    parser.add_argument("--runs", type=int, default=5, help="rounds on each file (default 5)")
    parser.add_argument("--samples", type=Path, default=_SAMPLES, help="folder of profiles that are measured as well")
    parser.add_argument("--no-samples", dest="samples", action="store_const", const=None, help="leave those out")
    parser.add_argument("--out", type=Path, default=_HERE / "results.md", help="where the report goes")
    return parser.parse_args(argv)


def _context(part: str, runs: int, machine: str) -> list[str]:
    """With what a section was measured, and on what."""
    return [f"{datetime.now(UTC):%Y-%m-%d}, `python -m benchmarks {part} --runs {runs}`", machine]


def _generated(folder: Path, kind: str, megabytes: float) -> Path:
    """A generated file, written by a process of its own to keep this one small."""
    file = folder / f"{kind}_{megabytes:g}_MB.xplane.pb"
    subprocess.run(
        [sys.executable, "-m", "benchmarks.generate", file, "--megabytes", str(megabytes), "--kind", kind],
        cwd=_HERE.parent,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return file


def _name(file: Path) -> str:
    """What tells the file in the report: the sample's logdir, or the generated file's own name."""
    if "plugins" in file.parts:
        return file.parts[file.parts.index("plugins") - 1]
    return file.name.removesuffix(".xplane.pb").replace("_", " ")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
