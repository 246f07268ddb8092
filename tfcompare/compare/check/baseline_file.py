"""`tfcompare-baseline.json`: what `check` compares with instead of profiles, and decisions to accept a change.

    {"format": 1, "baselines": {"main": {…, "captures": […], "accepted": […]}}}

It is meant for version control: each column of a table is a line, in an order that is always the same.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from glob import escape
from itertools import accumulate, takewhile
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Any, TypeVar

from tfcompare import __version__
from tfcompare.compare.check.baseline_tables import CaptureRecord, LeftOut, SideTables, restored
from tfcompare.compare.check.condition_metrics import METRICS
from tfcompare.compare.matching.overlap import OTHERS
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import Pairs
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.sources.logdir.files import open_regular
from tfcompare.sources.record_environment import PACKAGES
from tfcompare.store.contents import Damaged, from_json
from tfcompare.text import text_of
from tfcompare.units import format_bytes

if TYPE_CHECKING:
    from tfcompare.run import Run

T = TypeVar("T")

FORMAT = 1
MOST_BYTES = 128_000
"""Of one baseline: three captures of a sample's 24 steps with their 121 ops and 67 kernels take 102 kB. Sites that host
code show changes of this size."""
_MOST_FILE_BYTES = 16 * MOST_BYTES
MOST_NAMED_BYTES = MOST_BYTES // 8
"""Of the names of ops, and of kernels, that have no rows."""
_LONGEST_NAME = 100


@dataclass(frozen=True)
class Figure:
    """A metric of `check` over all captures, in its unit; empty for a count."""

    value: float
    unit: str


@dataclass(frozen=True)
class Acceptance:
    """The value of a metric, as `Finding.name` has it, that `by` accepted `on` a day, `until` the end of another.

    `captures`: the `content_id` of those of the baseline that it was compared with.
    """

    metric: str
    value: float
    unit: str
    until: date
    by: str
    on: date
    because: str
    captures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Baseline:
    """A named baseline: when it was made and of what, its `figures` for reading, what it leaves out, its captures, and
    the accepted changes."""

    made: date
    tfcompare: str
    versions: str
    framework: str
    device: str
    devices: int
    hosts: int
    figures: dict[str, Figure]
    left_out: LeftOut
    captures: tuple[CaptureRecord, ...]
    accepted: tuple[Acceptance, ...] = ()

    @property
    def content_ids(self) -> tuple[str, ...]:
        """Those of the captures, in order."""
        return tuple(sorted(capture.content_id for capture in self.captures))

    def why_unknown(self, metric: str, pattern: str) -> str:
        """Why a metric, a key of `METRICS`, cannot be told from the file, and what to do; empty if it can."""
        instead = "compare with the profiles themselves (check BASELINE CANDIDATE)"
        if metric == "rate:":
            return f"a baseline file has no work of ops; {instead}"
        if metric not in ("op:", "occurrences:", "kernel:") or not pattern.strip("*"):
            return ""
        of_ops = metric != "kernel:"
        left = self.left_out.ops if of_ops else tuple((name, name) for name in self.left_out.kernels)
        more, what = (self.left_out.more_ops, "ops") if of_ops else (self.left_out.more_kernels, "kernels")
        if not left and not more:
            return ""
        matching = [names[0] for names in left if any(fnmatchcase(name, pattern) for name in names)]
        if matching or more or fnmatchcase(OTHERS, pattern):
            which = f"{len(matching):,} of which match" if not more else "of which others may match"
            return (
                f"the baseline file leaves out the {len(left) + more:,} {what} that take least time, {which}; {instead}"
            )
        return ""


@dataclass(frozen=True)
class _File:
    format: int
    baselines: dict[str, Baseline]


@dataclass(frozen=True)
class _Head:
    format: int


def name_of(name: str) -> str:
    """A name of a baseline. Raises `TfcompareError` for one that is empty, long, or not one line of text."""
    if not name.strip() or name != text_of(name) or len(name) > _LONGEST_NAME:
        raise TfcompareError(
            f"{name[:_LONGEST_NAME]!r}: expected the name of a baseline, such as main: one line of up to "
            f"{_LONGEST_NAME} characters"
        )
    return name


def read_baselines(path: Path) -> dict[str, Baseline]:
    """The baselines in a file, by name. Raises `TfcompareError` if it is not there, damaged, or of a newer version."""
    try:
        with open_regular(path, follows_links=True) as file:
            data = file.read(_MOST_FILE_BYTES + 1)
    except FileNotFoundError:
        raise TfcompareError(
            f"{path}: there is no such file of baselines; write one with `tfcompare baseline set NAME RUN`, or name it "
            "with --file or --baseline-file"
        ) from None
    except ValueError:
        raise TfcompareError(f"{path}: expected a file of baselines, and it is no file; name another") from None
    except OSError as error:
        raise TfcompareError(f"{path}: expected a file of baselines, and could not read it: {error.strerror}") from None
    try:
        if len(data) > _MOST_FILE_BYTES:
            raise Damaged(f"is larger than {format_bytes(_MOST_FILE_BYTES)}")
        if (found := from_json(data, _Head).format) != FORMAT:
            raise TfcompareError(
                f"{path}: is of format {found}, and this tfcompare ({__version__}) reads format {FORMAT}; use the "
                "version that wrote it, or remove the file, then set the baseline again"
            )
        json.loads(data, object_pairs_hook=_of_unique_keys)
        return from_json(data, _File).baselines
    except Damaged as error:
        raise _damaged(path, error) from None


def _of_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises `Damaged` if a key is there twice, which a merge can leave behind."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise Damaged(f"has {twice[:_LONGEST_NAME]!r} twice in one object")
    return found


def _damaged(path: Path, error: Damaged) -> TfcompareError:
    return TfcompareError(
        f"{path}: expected baselines that tfcompare wrote, and the file {error}; restore it from version control (was "
        "it merged?), or remove the file, then write it again with `tfcompare baseline set NAME RUN`"
    )


def baseline_named(path: Path, name: str) -> Baseline:
    """One of the baselines in a file. Raises as `read_baselines`, and `Unknown` for another name."""
    baselines = read_baselines(path)
    if name not in baselines:
        raise Unknown(f"baseline of {path}", name, sorted(baselines))
    return baselines[name]


def runs_of(baseline: Baseline, path: Path, name: str) -> tuple[Run, ...]:
    """The captures of a baseline as runs with the tables that `check` needs. Raises `TfcompareError` if damaged."""
    try:
        if not baseline.captures:
            raise Damaged(f"has no captures of {name}")
        if any(one.value < 0 for one in baseline.accepted):
            raise Damaged("has an accepted value below 0")
        if len({one.metric for one in baseline.accepted}) < len(baseline.accepted):
            raise Damaged("has two accepted values of a metric")
        return tuple(restored(capture, path / name) for capture in baseline.captures)
    except Damaged as error:
        raise _damaged(path, error) from None


def write_baselines(path: Path, baselines: dict[str, Baseline]) -> None:
    """Write a file of baselines, in order of their names, completely or not at all; of a link, the file it leads to.

    Raises `TfcompareError` if there are more than can be read, or if it cannot be written.
    """
    content = {"format": FORMAT, "baselines": {name: asdict(baselines[name]) for name in sorted(baselines)}}
    if len(text := _text(content) + "\n") > _MOST_FILE_BYTES:
        raise TfcompareError(
            f"{path}: with {len(baselines):,} baselines it would take {format_bytes(len(text))}, and may take "
            f"{format_bytes(_MOST_FILE_BYTES)}; remove some (`tfcompare baseline remove NAME`), or name another file"
        )
    target = Path(os.path.realpath(path))  # `resolve` raises RuntimeError for links in a circle
    arriving = None
    try:
        descriptor, name = mkstemp(prefix=f".{path.name}-", dir=target.parent)
        arriving = Path(name)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
        if not target.exists():
            target.touch(exist_ok=False)  # with the permissions of any new file: those of `arriving` are the owner's
        shutil.copymode(target, arriving)
        arriving.replace(target)
    except OSError as error:
        raise TfcompareError(f"{path}: could not write the file of baselines: {error.strerror}") from None
    finally:
        if arriving is not None:
            arriving.unlink(missing_ok=True)


def _text(content: dict[str, Any]) -> str:
    """As JSON, in which moments are texts."""
    plain = json.loads(json.dumps(content, default=lambda moment: moment.isoformat(), allow_nan=False))
    return "".join(_lines(plain))


def _lines(value: Any, indent: str = "\n") -> Iterator[str]:
    """JSON with a line for each key, and for each element that has keys; lists of plain values are one line."""
    inner = f"{indent} "
    if isinstance(value, dict) and value:
        for number, (key, one) in enumerate(value.items()):
            yield f"{',' if number else '{'}{inner}{json.dumps(key)}: "
            yield from _lines(one, inner)
        yield f"{indent}}}"
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        for number, one in enumerate(value):
            yield f"{',' if number else '['}{inner}"
            yield from _lines(one, inner)
        yield f"{indent}]"
    else:
        yield json.dumps(value, separators=(",", ":"))


def make_baseline(pairs: Pairs) -> Baseline:
    """The baseline of a run that is shown alone, with its captures.

    Raises `TfcompareError` if it is too large even without ops and kernels.
    """
    pair, side = Pair(pairs, 0), pairs.sides[0]
    tables, info, found = SideTables.of(side), side.run.info, side.run.found.metadata
    versions = [info.versions, *(f"{name} {found.get(name)}" for name in PACKAGES if found.get(name))]
    whole = Baseline(
        datetime.now(UTC).date(),
        __version__,
        ", ".join(dict.fromkeys(filter(None, versions))),
        info.framework,
        ", ".join(filter(None, [info.device_type, info.device_name])),
        info.device_count,
        info.hosts,
        dict(_figures(pair)),
        LeftOut(),
        (),
    )

    def with_rows(most: int) -> Baseline:
        """With `most` ops and kernels in rows of their own."""
        ops, more_ops = _named([(str(name), str(kind)) for name, kind in tables.ops.index[most:]])
        kernels, more_kernels = _named([str(name) for name in tables.kernels.index[most:]])
        left_out = LeftOut(ops, more_ops, kernels, more_kernels)
        return replace(whole, captures=tables.records(most), left_out=left_out)

    counts = range(max(len(tables.ops), len(tables.kernels)) + 1)
    if fitting := bisect(counts, MOST_BYTES, key=lambda most: len(_text(asdict(with_rows(most))))):
        return with_rows(fitting - 1)
    steps = sum(len(run.steps) for run in side.runs)
    raise TfcompareError(
        f"{side.run.name}: {len(side.runs):,} captures of {info.hosts:,} hosts with {steps:,} steps take "
        f"more than {format_bytes(MOST_BYTES)}, which is the most of a baseline in a file; take fewer "
        "steps (--steps FIRST:LAST) or captures"
    )


def _figures(pair: Pair) -> Iterator[tuple[str, Figure]]:
    """The metrics of `check` that take no pattern, and the peak of each memory, where they are known."""
    memories = sorted(set(pair.sides[0].run.table("memory_summary", host=pair.host)["memory_id"]))
    names = [(name, "") for name in METRICS if not name.endswith(":")]
    for name, pattern in [*names, *(("peak_memory:", escape(memory)) for memory in memories)]:
        measured = METRICS[name].measure(pair, pattern)
        if math.isfinite(measured.baseline):
            yield name + pattern, Figure(measured.baseline, measured.unit)


def _named(names: Sequence[T]) -> tuple[tuple[T, ...], int]:
    """(the first of these names, as many as there is room for; how many more there are)."""
    ends = accumulate(len(json.dumps(name)) for name in names)
    named = sum(1 for _ in takewhile(lambda end: end <= MOST_NAMED_BYTES, ends))
    return tuple(names[:named]), len(names) - named
