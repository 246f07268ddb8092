"""The program of a run: what the runs of one series have in common, known without opening a profile.

It is the text `program` of the run's metadata. Without one it is the folders' names, less what differs from one run of
a program to the next: times and dates, commits, build and other counters, `again`. Runs on different devices are never
of one program. A change of the model does not make another program, since a series is to show it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tfcompare.errors import Unknown
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.naming import CONTAINERS
from tfcompare.sources.replicates import COUNTER, Parts, folders, program_names, without_repetition

PROGRAM = "program"
"""The metadata that names the program of a run."""
_NEWEST = 100
"""Of this many newest runs, most are of the program that is shown first."""

_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d([_.-]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?:[_T -]?\d\d[_:.-]?\d\d)?(?!\d)"
)
_COMMIT = re.compile(r"(?<![0-9A-Za-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}(?![0-9A-Za-z])")
_COUNTED = re.compile(
    r"(?:(?<=[ _.-])|^)(?P<word>night(?:ly)?|day|daily|week|weekly|build|job|ci|pipeline|commit|rev|revision|pr)"
    r"[ _.#-]*\d+$",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"#?\d{5,}")
_SEPARATORS = " _.-"


@dataclass(frozen=True, order=True)
class Program:
    """A program on some devices: its `name`, and a description of the `device`, empty if it is not known."""

    name: str
    device: str = ""

    @property
    def text(self) -> str:
        """`resnet · 8 × GPU NVIDIA H200`."""
        return " · ".join(filter(None, (self.name or "unnamed", self.device)))


def programs_of(found: Sequence[FoundRun]) -> dict[str, Program]:
    """The program of each run, by run id."""
    names = program_names({run.id: _parts(run) for run in found})
    return {run.id: Program(run.metadata.get(PROGRAM) or "/".join(names[run.id]), device_of(run)) for run in found}


def device_of(run: FoundRun) -> str:
    """`8 × GPU NVIDIA H200`; empty for a run that was not read yet."""
    return "" if run.summary is None else device_words(run.summary.device, run.summary.device_name)


def device_words(device: str, device_name: str) -> str:
    """A device as `Program` describes it."""
    return f"{device} {device_name}".strip()


def most_frequent(programs: Sequence[Program]) -> Program:
    """Of the programs of runs in order of recording, the one with the most of the newest runs; of equals the newest."""
    newest = programs[: -_NEWEST - 1 : -1]
    return Counter(newest).most_common(1)[0][0]


def wanted(text: str, programs: Collection[Program]) -> Program:
    """The program with that text, name or folder, if there is one only. Raises `Unknown`."""
    distinct = sorted(set(programs))
    for texts_of in (lambda p: [p.text], lambda p: [p.name], lambda p: p.name.split("/")):
        found = [program for program in distinct if text in texts_of(program)]
        if len(found) == 1:
            return found[0]
    raise Unknown("program", text, [program.text for program in distinct])


def same_program(run: FoundRun, device: str, programs: Collection[Program]) -> Program | None:
    """The program of `run`, on that device (as `device_words` gives it), which may be in another place than its runs.

    Without `program` in its metadata, it is that with the most folders that are the innermost ones of the run's path.
    """
    here = {program for program in programs if program.device == device}
    if name := run.metadata.get(PROGRAM):
        return next((program for program in here if program.name == name), None)
    ours = _distinctive(folders(run))
    counted = COUNTER.fullmatch(ours[-1]) if ours else None
    names = {ours, (*ours[:-1], f"{counted['stem']}#")} if counted else {ours}
    ends = {"/".join(name[-size:]): size for name in names for size in range(1, len(name) + 1)}
    matching = [program for program in here if program.name in ends]
    return max(matching, key=lambda program: ends[program.name], default=None)


def _parts(run: FoundRun) -> Parts:
    """The folders of the run's id that name its program; if none does, the nearest one above."""
    every = folders(run)
    below = [part for part in run.id.split("/") if part in every]
    return _distinctive(tuple(below)) or _distinctive(every)[-1:]


def _distinctive(parts: Parts) -> Parts:
    return tuple(name for part in parts if (name := _without_run(part)) and name not in CONTAINERS)


@lru_cache(maxsize=1 << 16)
def _without_run(part: str) -> str:
    """A folder's name without what is only of one run."""
    name = without_repetition(part)
    for pattern in (_DATE, _COMMIT):
        name = pattern.sub("", name).strip(_SEPARATORS)
    name = _COUNTED.sub(r"\g<word>", without_repetition(name))
    return "" if _NUMBER.fullmatch(name) else name
