"""Links to the timeline: to an op, or to a moment of one run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfcompare.charts.style import letter
from tfcompare.compare.matching.matching import pair_hosts
from tfcompare.run import Run
from tfcompare.ui.frame import sidebar, state
from tfcompare.ui.frame.pair import Pair
from tfcompare.ui.frame.selection import Selection

TIMELINE_PAGE = "pages/7_Timeline.py"
HOST, BESIDE = "timeline_host", "timeline_beside"
"""Parameters of the page's address: the host that is shown, and another one beside it, as `host_text` names them."""


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


def open_timeline(pair: Pair) -> None:
    """A link to the typical step of both runs."""
    _link(pair, "Open timeline", {})


def link_to_op(pair: Pair, op_name: str, label: str = "Show in timeline") -> None:
    """A link to where an op changed most in the typical step."""
    _link(pair, label, {"op": op_name})


def link_to_kernel(pair: Pair, kernel_name: str, label: str = "Show in timeline") -> None:
    """A link to where a kernel changed most in the typical step."""
    _link(pair, label, {"kernel": kernel_name})


def link_to_text(pair: Pair, text: str, label: str = "Show in timeline") -> None:
    """A link that marks the spans which have all words of a text."""
    _link(pair, label, {"find": text})


def link_to_moment(pair: Pair, moment: Moment, host: str, label: str = "Show in timeline") -> None:
    """A link to a moment; `host` is the host of that side."""
    if moment.side:
        host = pair_hosts(pair.baseline.host_names, pair.candidate.host_names).get(host, host)
    several = any(len(run.host_names) > 1 for run in pair.runs)
    _link(pair, label, {"at": moment.to_text()} | ({HOST: host_text(pair, pair.baseline, host)} if several else {}))


def link_to_hosts(pair: Pair, run: Run, hosts: tuple[str, str], step: int, label: str) -> None:
    """A link to a step of two hosts of a run, the second compared with the first. `step` is its number on the first."""
    ours, theirs = (host_text(pair, run, host) for host in hosts)
    _link(pair, label, {HOST: ours, BESIDE: theirs, "step_a": str(step)}, replace(state.chosen(), host=None))


def host_text(pair: Pair, run: Run, host: str) -> str:
    """What a host is called: by its name, with the letter of its run where two runs are shown."""
    return host if pair.is_single else f"{host} ({letter(0 if run is pair.baseline else pair.position)})"


def _link(pair: Pair, label: str, more: dict[str, str], selection: Selection | None = None) -> None:
    detail = {"detail": pair.candidate.id} if len(pair.comparison.candidates) > 1 else {}
    chosen = selection or state.chosen()
    sidebar.link(TIMELINE_PAGE, label, chosen, icon=":material/view_timeline:", more=detail | more)
