"""Which memory of each run is shown: one that both have by the same name, or a different one for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tfcompare.compare.matching.matching import pair_hosts
from tfcompare.compare.pair import Pair
from tfcompare.compare.side import Side
from tfcompare.run import Run
from tfcompare.views.memory import figures as memory_sides
from tfcompare.views.memory.curve import Memory
from tfcompare.views.memory.figures import Figures, Hosts, MemoryPair
from tfcompare.views.view import cached_per_pair

EACH = "each"
"""The value of the option `memory` if there is a different one for each run."""
ONE_OF_EACH = "a different one for each run …"


@dataclass(frozen=True)
class Chosen:
    """The pair of runs, and the chosen memory of each."""

    pair: Pair
    memories: MemoryPair
    hosts: Hosts

    @property
    def is_identical(self) -> bool:
        """Whether both sides are the same memory of one capture."""
        return self.pair.is_identical and self.memories.has_one_name

    @property
    def figures(self) -> Figures:
        """The `memory_summary` of both sides."""
        make = partial(memory_sides.figures, self.pair.diff("memory_summary"), self.memories, self.hosts)
        return self.pair.cached(("memory_figures", self.memories), make)

    @property
    def shown(self) -> list[tuple[Side, Run, Memory]]:
        """Each side that has the memory."""
        every = zip(self.pair.shown, self.memories.memories, strict=False)
        return [(side, run, memory) for (side, run), memory in every if memory]


@dataclass(frozen=True)
class _Choices:
    """All memories by their labels: matched ones and those of one side, and those of each side."""

    pairs: Mapping[str, MemoryPair]
    baseline: Mapping[str, Memory]
    candidate: Mapping[str, Memory]
    hosts: Hosts


def chosen(pair: Pair, options: Any) -> Chosen | None:
    """The memories that the options `memory`, `memory_baseline` and `memory_candidate` name; None without any."""
    found = _choices(pair)
    if options.memory == EACH:
        both = found.baseline[options.memory_baseline], found.candidate[options.memory_candidate]
        return Chosen(pair, MemoryPair(*both), found.hosts)
    return Chosen(pair, found.pairs[options.memory], found.hosts) if options.memory else None


def largest(pair: Pair) -> Chosen | None:
    """The memory with the largest peak of those that both runs have; None without any."""
    found = _choices(pair)
    both = (one for one in found.pairs.values() if None not in one.memories)
    return next((Chosen(pair, one, found.hosts) for one in both), None)


def by_name(pair: Pair, _options: Any) -> dict[str, str]:
    """The choices of `memory`, the largest peak first."""
    found = _choices(pair)
    are_on_both = bool(found.baseline and found.candidate)
    is_any_matched = any(None not in one.memories for one in found.pairs.values())
    labels = {label: label for label in found.pairs} if is_any_matched or not are_on_both else {}
    may_differ = are_on_both and len(found.pairs) > 1 and not pair.is_single
    return labels | ({EACH: ONE_OF_EACH} if may_differ else {})


def side_memories(pair: Pair, _options: Any, *, role: str) -> dict[str, str]:
    """The choices of `memory_baseline` or `memory_candidate`, the largest peak first."""
    return {label: label for label in getattr(_choices(pair), role)}


@cached_per_pair
def _choices(pair: Pair) -> _Choices:
    tables = pair.tables("memory_summary")
    hosts = pair_hosts(*(table["host"].unique() for table in tables))
    several_hosts = any(table["host"].nunique() > 1 for table in tables)

    def label(memory: Memory | None) -> str:
        if memory is None:
            return ""
        return f"{memory.memory_id} on {memory.host}" if several_hosts else memory.memory_id

    baseline, candidate = ({label(memory): memory for memory in memory_sides.by_peak(table)} for table in tables)
    pairs = {}
    for one in memory_sides.memory_pairs(*tables, hosts):
        only = {one.candidate: " (baseline only)", one.baseline: " (candidate only)"}.get(None, "")
        pairs[label(one.baseline or one.candidate) + only] = one
    return _Choices(pairs, baseline, candidate, hosts)
