"""A long run: inputs in a child process, a new one after each crash, and a log of it all in Markdown."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.fuzz.branches import Branches
from tests.fuzz.chain import BYTES_ALLOWED_PER_BYTE, SECONDS_ALLOWED

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "fuzz"
BEGIN, END = "<!-- last long run: written by `python -m tests.fuzz` -->", "<!-- end of the last long run -->"

Outcome = dict[str, Any]


def run(seed: int, count: int, with_corpus: bool, *, resume: bool, of: str) -> list[Outcome]:
    """The outcomes of the inputs 0 to `count`; those that `resume` finds in the log are not looked at again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    log = FOLDER / f"{of}-seed-{seed}{'-corpus' if with_corpus else ''}.log"
    if not resume:
        log.unlink(missing_ok=True)
    while (at := next_number(log)) < count:
        call = [
            sys.executable,
            "-m",
            "tests.fuzz",
            "--child",
            str(log),
            "--first",
            str(at),
            "--seed",
            str(seed),
            "--of",
            of,
        ]
        call += ["--count", str(count), *(["--corpus"] if with_corpus else [])]
        done = subprocess.run(call, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        if done.returncode and next_number(log) == at and not begun(log, at):
            raise SystemExit(done.stderr)
        if done.returncode:
            _note_crash(log, done)
    lines = log.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")][:count]


def next_number(log: Path) -> int:
    """The first input that has no outcome yet."""
    lines = log.read_text().splitlines() if log.exists() else []
    return 1 + max((json.loads(line)["number"] for line in lines if line.startswith("{")), default=-1)


def begun(log: Path, number: int) -> bool:
    """Whether the log says that the input was begun."""
    return log.exists() and str(number) in log.read_text().splitlines()


def _note_crash(log: Path, done: subprocess.CompletedProcess[str]) -> None:
    result = f"the process ended with {done.returncode}"
    crash = {"number": next_number(log), "kind": "?", "size": 0, "result": result, "is_fine": False}
    crash |= {"detail": done.stderr[-3000:], "seconds": 0.0, "waited": 0.0, "peak_bytes": 0}
    with log.open("a") as out:
        out.write(json.dumps(crash) + "\n")


def told(outcomes: list[Outcome]) -> str:
    """What came of them, and each kind of failure once."""
    bad = [o for o in outcomes if not o["is_fine"]]
    out = [f"{len(outcomes):,} inputs: {dict(Counter(o['result'] for o in outcomes))}"]
    out += [f"most {key}: " + "; ".join(map(_named, top(outcomes, key, 3))) for key in ("seconds", "peak_bytes")]
    by_last_line = Counter(_last_line(o) for o in bad)
    for line, times in by_last_line.most_common(30):
        example = next(o for o in bad if _last_line(o) == line)
        out += [f"--- {times} × {example['result']}, such as {_named(example)}", example["detail"][-1800:]]
    return "\n".join(out)


def top(outcomes: list[Outcome], key: str, count: int) -> list[Outcome]:
    """Those with the most of it."""
    return sorted(outcomes, key=lambda o: -o[key])[:count]


def _named(o: Outcome) -> str:
    cost = f"{o['size']:,} bytes, {o['seconds']:.2f} s, {o['peak_bytes'] / 1e6:,.0f} MB"
    return f"number {o['number']:,} ({o['kind']}, {cost})"


def _last_line(outcome: Outcome) -> str:
    return str(outcome["detail"]).strip().rpartition("\n")[2][:150]


def write_log(path: Path, seed: int, outcomes: list[Outcome], branches: Branches | None, corpus: bool) -> None:
    """Put the account of a long run in its place in `path`."""
    before, _, rest = path.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    path.write_text(before + BEGIN + "\n" + _account(seed, outcomes, branches, corpus) + END + after)


def _account(seed: int, outcomes: list[Outcome], branches: Branches | None, corpus: bool) -> str:
    bad = [o for o in outcomes if not o["is_fine"]]
    (slowest,), (largest,) = top(outcomes, "seconds", 1), top(outcomes, "peak_bytes", 1)
    grown = [o for o in outcomes if o["size"] >= 1 << 17]
    relative = max(grown, key=lambda o: o["peak_bytes"] / o["size"], default=None)
    results = ", ".join(f"{times:,} {result}" for result, times in Counter(o["result"] for o in outcomes).most_common())
    kinds = Counter(o["kind"] if o["kind"] in ("edited", "generated", "gzipped", "cut") else "crowds" for o in outcomes)
    seconds = sorted(o["seconds"] for o in outcomes)
    rows = {
        "command": f"`python -m tests.fuzz --seed {seed} --count {len(outcomes)}{' --corpus' if corpus else ''}`",
        "ended": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {platform.python_version()}",
        "inputs": f"{len(outcomes):,}: " + ", ".join(f"{times:,} {kind}" for kind, times in kinds.most_common()),
        "outcomes": results,
        "crashes, hangs, wrong answers, beyond the bounds": f"{len(bad):,}",
        "processor time": f"{sum(seconds):,.0f} s in all, median {seconds[len(seconds) // 2] * 1000:,.0f} ms",
        f"slowest input (at most {SECONDS_ALLOWED} s)": _named(slowest),
        "highest memory": _named(largest),
        f"highest memory for its size, from 128 KiB on (at most {BYTES_ALLOWED_PER_BYTE} times)": (
            f"{relative['peak_bytes'] / relative['size']:.0f} times: {_named(relative)}" if relative else "none"
        ),
        "branches of the reader": _of_branches(branches) if branches else "not measured",
    }
    return "\n| | |\n|---|---|\n" + "".join(f"| {what} | {figure} |\n" for what, figure in rows.items()) + "\n"


def _of_branches(branches: Branches) -> str:
    return (
        f"{branches.taken} of {branches.known} ({branches.taken / branches.known:.1%}), by {branches.inputs:,} of the "
        f"inputs with the loops as plain Python; not taken: {', '.join(branches.missed) or 'none'}"
    )
