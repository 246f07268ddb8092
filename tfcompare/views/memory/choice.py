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
class _Offered:
    """All memories by their labels: matched ones and those of one side, and those of each side."""

    pairs: Mapping[str, MemoryPair]
    baseline: Mapping[str, Memory]
    candidate: Mapping[str, Memory]
    hosts: Hosts


def chosen(pair: Pair, options: Any) -> Chosen | None:
    """The memories that the options `memory`, `memory_baseline` and `memory_candidate` name; None without any."""
    found = _offered(pair)
    if options.memory == EACH:
        both = found.baseline[options.memory_baseline], found.candidate[options.memory_candidate]
        return Chosen(pair, MemoryPair(*both), found.hosts)
    return Chosen(pair, found.pairs[options.memory], found.hosts) if options.memory else None


def largest(pair: Pair) -> Chosen | None:
    """The memory with the largest peak of those that both runs have; None without any."""
    found = _offered(pair)
    both = (one for one in found.pairs.values() if None not in one.memories)
    return next((Chosen(pair, one, found.hosts) for one in both), None)


def by_name(pair: Pair, _options: Any) -> dict[str, str]:
    """The choices of `memory`, the largest peak first."""
    found = _offered(pair)
    are_on_both = bool(found.baseline and found.candidate)
    is_any_matched = any(None not in one.memories for one in found.pairs.values())
    labels = {label: label for label in found.pairs} if is_any_matched or not are_on_both else {}
    may_differ = are_on_both and len(found.pairs) > 1 and not pair.is_single
    return labels | ({EACH: ONE_OF_EACH} if may_differ else {})


def of_baseline(pair: Pair, _options: Any) -> dict[str, str]:
    """The choices of `memory_baseline`, the largest peak first."""
    return {label: label for label in _offered(pair).baseline}


def of_candidate(pair: Pair, _options: Any) -> dict[str, str]:
    """The choices of `memory_candidate`, the largest peak first."""
    return {label: label for label in _offered(pair).candidate}


def is_of_each(_pair: Pair, options: Any) -> bool:
    """Whether there is a different memory for each run."""
    return bool(options.memory == EACH)


def _offered(pair: Pair) -> _Offered:
    def make() -> _Offered:
        ours, theirs = pair.tables("memory_summary")
        hosts = pair_hosts(ours["host"].unique(), theirs["host"].unique())
        several_hosts = any(table["host"].nunique() > 1 for table in (ours, theirs))
        baseline, candidate = (
            {_label(memory, several_hosts): memory for memory in memory_sides.by_peak(table)}
            for table in (ours, theirs)
        )
        pairs = memory_sides.memory_pairs(ours, theirs, hosts)
        return _Offered({_pair_label(one, several_hosts): one for one in pairs}, baseline, candidate, hosts)

    return pair.cached("memories", make)


def _pair_label(pair: MemoryPair, several_hosts: bool) -> str:
    memory = pair.baseline or pair.candidate
    alone = {pair.candidate: " (baseline only)", pair.baseline: " (candidate only)"}.get(None, "")
    return _label(memory, several_hosts) + alone if memory else ""


def _label(memory: Memory, several_hosts: bool) -> str:
    return f"{memory.memory_id} on {memory.host}" if several_hosts else memory.memory_id
