"""Links to the timeline: to an op, a kernel, or a moment of one run; to the view of an op, and to instructions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from tfcompare.compare.executions import programs
from tfcompare.compare.matching.matching import pair_hosts
from tfcompare.compare.pair import Pair
from tfcompare.compare.side import letter
from tfcompare.run import Run
from tfcompare.views.blocks import MORE, Link, Section
from tfcompare.views.steps.figures import Gap

HOST, BESIDE = "timeline_host", "timeline_beside"
"""Parameters of the page's address: the host that is shown, and another one beside it, as `host_text` names them."""
ANOTHER_STEP = "another of its steps"
"""What can be beside a host in place of another one."""
SHOW = "Show in timeline"
OPENS_MORE = {Section(MORE, ()).address: "true"}
"""Parameters of the address of a page whose last section is open."""


@dataclass(frozen=True)
class Moment:
    """A stretch of time of one side (0 for the baseline, 1 for the candidate), in µs since the start of its profile."""

    side: int
    start_us: float
    length_us: float

    @classmethod
    def from_text(cls, text: str) -> Moment | None:
        """The moment in a page's address; None for any other text."""
        if (numbers := numbers_in(text, 3)) is None:
            return None
        side, start_us, length_us = numbers
        return cls(int(side), start_us, length_us) if side in (0, 1) and length_us >= 0 else None

    def to_text(self) -> str:
        """The text that `from_text` parses."""
        return f"{self.side}:{self.start_us:.12g}:{self.length_us:.12g}"


def numbers_in(text: str, count: int) -> list[float] | None:
    """Numbers separated by colons; None if there are not `count` finite ones, or one is out of all proportion."""
    try:
        numbers = [float(part) for part in text.split(":")]
    except ValueError:
        return None
    return numbers if len(numbers) == count and all(abs(number) < 1e15 for number in numbers) else None


def to_timeline() -> Link:
    """The typical step of both runs."""
    return Link("Open timeline", "timeline")


def to_op(op_name: str, label: str = SHOW) -> Link:
    """Where an op changed most in the typical step."""
    return Link(label, "timeline", {"op": op_name})


def to_kernel(kernel_name: str) -> Link:
    """Where a kernel changed most in the typical step."""
    return Link(SHOW, "timeline", {"kernel": kernel_name})


def to_text(text: str, label: str = SHOW) -> Link:
    """The spans which have all words of a text, marked."""
    return Link(label, "timeline", {"find": text})


def to_moment(pair: Pair, moment: Moment, host: str, label: str = SHOW) -> Link:
    """A moment; `host` is the host of that side."""
    if moment.side:
        host = pair_hosts(pair.baseline.host_names, pair.candidate.host_names).get(host, host)
    several = any(len(run.host_names) > 1 for run in pair.runs)
    of_host = {HOST: host_text(pair, pair.baseline, host)} if several else {}
    return Link(label, "timeline", {"at": moment.to_text(), **of_host})


def to_gap(pair: Pair, side: int, gap: Gap, label: str = SHOW) -> Iterator[Link]:
    """The occurrence of a recurring gap of a side that is nearest to its mean length; none where it never occurs."""
    run = pair.runs[side]
    every = run.table("idle_gaps", host=pair.host_of(run))
    same = every[(every["op_before"] == gap.op_before) & (every["op_after"] == gap.op_after)]
    if len(same):
        nearest = same.iloc[int((same["duration_us"] - gap.length_us).abs().argmin())]
        moment = Moment(side, float(nearest["start_us"]), float(nearest["duration_us"]))
        yield to_moment(pair, moment, str(nearest["host"]), label)


def to_hosts(pair: Pair, run: Run, hosts: tuple[str, str], step: int, label: str) -> Link:
    """A step of two hosts of a run, the second compared with the first. `step` is its number on the first."""
    ours, theirs = (host_text(pair, run, host) for host in hosts)
    return Link(label, "timeline", {HOST: ours, BESIDE: theirs, "step_a": str(step)}, every_host=True)


def to_two_steps(pair: Pair, run: Run, host: str, steps: tuple[int, int], label: str) -> Link:
    """Two steps of one host of a run beside each other, by their numbers."""
    first, second = map(str, steps)
    of_host = {HOST: host_text(pair, run, host), BESIDE: ANOTHER_STEP}
    return Link(label, "timeline", {**of_host, "step_a": first, "step_b": second}, every_host=True)


def to_op_view(row_key: str) -> Link:
    """The op with this key of the table of ops: in every step, its kernels and its memory."""
    return Link("Steps, kernels and memory of this op", "op_stats", {"row": row_key})


def to_instructions(pair: Pair, rows: pd.DataFrame, text: str) -> Iterator[Link]:
    """Those of a program's instructions that have all words of a text, of the program with most of the time of `rows`,
    some of `pair.every_instruction()`; none where the XLA page, which leaves out programs of SparseCores, has none."""
    every = programs(pair.instructions()).set_index("program_key")["label"]
    labels = [every[key] for key in programs(rows)["program_key"] if key in every.index]
    for label in labels[:1]:
        yield Link("Instructions on the XLA page", "xla", {"program": label, "filter": text})


def host_text(pair: Pair, run: Run, host: str) -> str:
    """What a host is called: by its name, with the letter of its run where two runs are shown."""
    return host if pair.is_single else f"{host} ({letter(0 if run is pair.baseline else pair.position)})"
