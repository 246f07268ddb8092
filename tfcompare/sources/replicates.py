"""Detects runs that are captures of the same program, by their folder names, so that they can be grouped.

Two runs have the same program name if their paths, up to `plugins/profile`, differ only in the capture time, in a word
for a repetition (`again`, `repeat_2`, `run3`), or in a counter at the end of one folder's name. A number counts as a
counter only if it can hardly be anything else (`_counts`). Ambiguous names are left for manual grouping.

Replicates also need names that say repetition. A capture time alone does not: folders such as
`logs/fit/20221104-212610` are experiments, one after the other.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.files import is_profile
from tfcompare.sources.logdir.naming import without_stamp
from tfcompare.sources.logdir.runs import only, readable

Parts = tuple[str, ...]
_Place = tuple[Parts, Parts]
"""The parts of a path before and after one of its parts."""

_ONCE_MORE = re.compile(
    r"(?:^|[ _.-]+)(?:(?:again|rerun|rep(?:eat(?:ed)?)?)[ _.-]?\d*|run[ _.-]?\d+)$| ?\(\d{1,3}\)$", re.IGNORECASE
)
COUNTER = re.compile(r"(?P<stem>.*[^ _.-])[ _.-]+(?P<number>\d{1,3})")
_HOW_MANY = re.compile(
    r"(?:^|[\W\d_])(?:v|ver|version|layers?|filters?|units?|depth|width|height|size|dims?|batch|bs|lr|rate|epochs?|"
    r"steps?|heads?|blocks?|kernels?|strides?|gpus?|tpus?|cpus?|cores?|devices?|hosts?|workers?|threads?|nodes?|bits?|"
    r"fp|int|level|stage|phase|part|trial|fold|dropout|seq|len|length|scale|factor|variant|config|exp|experiment)$",
    re.IGNORECASE,
)
"""Ends of names after which a number is a quantity, or the number of one of several programs."""


def suggest(found: Sequence[FoundRun], baseline: str | None, candidates: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """For the ids of compared runs, the ids of other captures of the same program, by their names.

    Candidates with the same name become replicates of the first of them. If the baseline has the same name as a
    candidate, it is unclear whose replicate a capture is, so none of that name is suggested. Copies of compared runs
    are not suggested either.
    """
    runs = {run.id: run for run in found if run.is_readable}
    compared = [run_id for run_id in dict.fromkeys((baseline, *candidates)) if run_id in runs]
    names = names_of(list(runs.values()))
    first: dict[Parts, str] = {}
    for run_id in compared:
        first.setdefault(names[run_id], run_id)
    if baseline in runs and any(names[run_id] == names[baseline] for run_id in compared if run_id != baseline):
        del first[names[baseline]]
    groups: dict[str, list[str]] = defaultdict(list)
    for run_id, name in names.items():
        primary = first.get(name, run_id)
        if primary == run_id:
            continue
        others = dict.fromkeys(i for i in (*compared, *groups[primary]) if i != run_id)
        if not any(is_copy(runs[run_id], runs[other]) for other in others):
            groups[primary].append(run_id)
    return {primary: tuple(ids) for primary, ids in groups.items() if ids}


def is_one_program(found: Sequence[FoundRun]) -> bool:
    """Whether all these runs are captures of one program, by their names."""
    return len(set(names_of(found).values())) == 1


def names_of(found: Sequence[FoundRun]) -> dict[str, Parts]:
    """By run id, what is equal for captures of one program."""
    return replicate_names({run.id: _path(run) for run in found})


def captures_at(
    found: Sequence[FoundRun], place: str | Path, *, join: bool = False
) -> tuple[list[FoundRun], list[str]]:
    """(the one run that was found at a place, or all captures of one program; why some of these cannot be read).

    Raises as `find_run` does.
    """
    if len(found) > 1 and is_one_program(found):
        return readable(found, place)
    return [only(found, place, join=join)], []


def folders(run: FoundRun) -> Parts:
    """The parts of the run's path without `plugins/profile` and its file."""
    parts = _path(run)
    return parts[:-1] if parts and is_profile(parts[-1]) else parts


def program_names(paths: Mapping[str, Parts]) -> dict[str, Parts]:
    """Each run's path without what distinguishes captures of one program; equal for captures of the same program.

    `paths` contains the parts of each run's path without `plugins/profile`, including the file name if it is a file.
    """
    plain = {}
    for run_id, path in paths.items():  # a number in a file's name identifies the host, so it stays
        words = (part if is_profile(part) else without_repetition(part) for part in path)
        plain[run_id] = tuple(filter(None, words))
    siblings: dict[_Place, set[str]] = defaultdict(set)
    for parts in set(plain.values()):
        for i, part in enumerate(parts):
            siblings[parts[:i], parts[i + 1 :]].add(part)
    counted = {place: found for place, names in siblings.items() if len(names) > 1 and (found := _count(names))}
    return {run_id: _without_counter(parts, counted) for run_id, parts in plain.items()}


def replicate_names(paths: Mapping[str, Parts]) -> dict[str, Parts]:
    """As `program_names`, but runs whose paths differ in nothing but capture times have names of their own."""
    untimed = {run_id: tuple(map(without_stamp, parts)) for run_id, parts in paths.items()}
    count = Counter(untimed.values())
    names = program_names(paths)
    return {run_id: names[run_id] if count[untimed[run_id]] == 1 else path for run_id, path in paths.items()}


def is_copy(run: FoundRun, other: FoundRun) -> bool:
    """Whether the files of both runs have identical bytes; they are only read if their sizes are equal.

    For a run in a store, the digests of its files are already known.
    """
    if run.is_stored or other.is_stored:
        return run.content_id == other.content_id != ""
    ours, theirs = (sorted(r.files, key=lambda file: file.host) for r in (run, other))
    if [(f.host, f.size_bytes) for f in ours] != [(f.host, f.size_bytes) for f in theirs]:
        return False
    pairs = tuple((a.path, b.path) for a, b in zip(ours, theirs, strict=True))
    return _have_equal_content(pairs, run.stat_key, other.stat_key)


@lru_cache(maxsize=256)
def _have_equal_content(pairs: tuple[tuple[Path, Path], ...], *_stat_keys: str) -> bool:
    try:
        return all(ours.read_bytes() == theirs.read_bytes() for ours, theirs in pairs)
    except OSError:  # loading the run reports it
        return False


def _path(run: FoundRun) -> Parts:
    parts = run.path.parts
    for i in range(len(parts) - 1):
        if parts[i : i + 2] == ("plugins", "profile"):
            return parts[:i] + parts[i + 2 :]
    return parts


@lru_cache(maxsize=1 << 16)
def without_repetition(name: str) -> str:
    """A folder's name without a capture time or a word for a repetition at its end."""
    while (shorter := _ONCE_MORE.sub("", without_stamp(name))) != name:
        name = shorter
    return name


def program_name(names: Sequence[str]) -> str:
    """What captures with these names are called together: what is left without capture times and words for a
    repetition, if that is the same for all; else the first name."""
    plain = {"/".join(filter(None, map(without_repetition, name.split("/")))) for name in names}
    same = plain.pop() if len(plain) == 1 else ""
    return same or names[0]


def _without_counter(parts: Parts, counted: Mapping[_Place, Mapping[str, str]]) -> Parts:
    """The path with `#` in place of a counter at the end of a part, the last part that has one."""
    for i in reversed(range(len(parts))):
        stem = counted.get((parts[:i], parts[i + 1 :]), {}).get(parts[i])
        if stem is not None:
            return (*parts[:i], f"{stem}#", *parts[i + 1 :])
    return parts


def _count(names: Collection[str]) -> dict[str, str]:
    """For each of these sibling names that ends in a counter, the part before the number."""
    numbers: dict[str, dict[str, str]] = defaultdict(dict)
    for name in names:
        if name.isdecimal():
            numbers[""][name] = name
        elif (match := COUNTER.fullmatch(name)) and not is_profile(name):
            numbers[match["stem"]][name] = match["number"]
    found: dict[str, str] = {}
    for stem, behind in numbers.items():
        if _counts(stem, list(behind.values()), stem in names):
            found |= dict.fromkeys(behind, stem)
            if stem in names:
                found.setdefault(stem, stem)
    return found


def _counts(stem: str, numbers: Sequence[str], is_there: bool) -> bool:
    """Whether the numbers after a stem count captures.

    They must be consecutive from 0 or 1, or from 2 if the stem alone is a name too; and the stem must neither contain a
    number (`filters_16`) nor end in a word that takes a number (`layers`). Otherwise, or if the whole name is a number,
    only numbers with leading zeros count (`filters_16_8_01`).
    """
    values = sorted(map(int, numbers))
    if len(values) + is_there < 2 or values[0] > 1 + is_there:
        return False
    if values != list(range(values[0], values[0] + len(values))):
        return False
    if stem and not any(c.isdecimal() for c in stem) and not _HOW_MANY.search(stem):
        return True
    return len({len(n) for n in numbers}) == 1 and any(n.startswith("0") and len(n) > 1 for n in numbers)
