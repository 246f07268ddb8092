"""A long run: inputs in a child process, a new one after each crash, and an account of it all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tests.profiles import ROOT

FOLDER = ROOT / "build" / "fuzz"

Outcome = dict[str, Any]


def run(seed: int, count: int, with_corpus: bool, *, resume: bool, of: str) -> list[Outcome]:
    """The outcomes of the inputs 0 to `count`; those that `resume` finds in the log are not looked at again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    log = FOLDER / f"{of}-seed-{seed}{'-corpus' if with_corpus else ''}.log"
    if not resume:
        log.unlink(missing_ok=True)
    while (at := next_number(log)) < count:
        words = {"child": log, "first": at, "count": count, "seed": seed, "of": of}
        call = [sys.executable, "-m", "tests.fuzz", *(f"--{name}={value}" for name, value in words.items())]
        call += ["--corpus"] if with_corpus else []
        done = subprocess.run(call, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        if done.returncode and next_number(log) == at and not begun(log, at):
            raise SystemExit(done.stderr)
        if done.returncode:
            result = f"the process ended with {done.returncode}"
            crash = {"number": next_number(log), "kind": "?", "size": 0, "result": result, "is_fine": False}
            crash |= {"detail": done.stderr[-3000:], "seconds": 0.0, "waited": 0.0, "peak_bytes": 0}
            with log.open("a") as out:
                out.write(json.dumps(crash) + "\n")
    lines = log.read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")][:count]


def next_number(log: Path) -> int:
    """The first input that has no outcome yet."""
    lines = log.read_text().splitlines() if log.exists() else []
    return 1 + max((json.loads(line)["number"] for line in lines if line.startswith("{")), default=-1)


def begun(log: Path, number: int) -> bool:
    """Whether the log says that the input was begun."""
    return log.exists() and str(number) in log.read_text().splitlines()


def told(outcomes: list[Outcome]) -> str:
    """What came of them, and each kind of failure once."""
    bad = [o for o in outcomes if not o["is_fine"]]
    out = [f"{len(outcomes):,} inputs: {dict(Counter(o['result'] for o in outcomes))}"]
    for key in ("seconds", "peak_bytes"):
        out.append(f"most {key}: " + "; ".join(_named(o) for o in sorted(outcomes, key=lambda o: -o[key])[:3]))
    by_last_line = Counter(_last_line(o) for o in bad)
    for line, times in by_last_line.most_common(30):
        example = next(o for o in bad if _last_line(o) == line)
        out += [f"--- {times} × {example['result']}, such as {_named(example)}", example["detail"][-1800:]]
    return "\n".join(out)


def _named(o: Outcome) -> str:
    cost = f"{o['size']:,} bytes, {o['seconds']:.2f} s, {o['peak_bytes'] / 1e6:,.0f} MB"
    return f"number {o['number']:,} ({o['kind']}, {cost})"


def _last_line(outcome: Outcome) -> str:
    return str(outcome["detail"]).strip().rpartition("\n")[2][:150]
