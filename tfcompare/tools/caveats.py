"""What to know before trusting the numbers of a comparison, as Markdown sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tfcompare.compare.pairs import pairs_of
from tfcompare.markdown import as_code, as_markdown
from tfcompare.schema import SIDES
from tfcompare.text import some_of

if TYPE_CHECKING:
    from tfcompare.compare.comparability import Mismatch
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.pairs import Pairs
    from tfcompare.run import Run


_NAMED = 3
"""Instructions that a sentence names."""


def caveats(pairs: Pairs) -> list[str]:
    """The most serious first: differences between the runs, remarks on each run, and units."""
    every = [] if pairs.is_single else pairs_of(pairs)
    found = [(pair, one) for pair in every for one in pair.mismatches]
    hard, soft = ([_sentence(*one) for one in found if one[1].is_hard is which] for which in (True, False))
    notes = map(as_markdown, pairs.notes)
    lost = [sentence for pair in every if (sentence := _lost_events(pair))]
    return [*hard, *lost, *_remarks(pairs.runs), *soft, *notes]


def _sentence(pair: Pair, one: Mismatch) -> str:
    which = f" ({as_code(pair.candidate.name)})" if len(pair.among.sides) > 2 else ""
    return f"**{one.label}**{which}: {as_markdown(one.baseline)} vs {as_markdown(one.candidate)}; {one.meaning}"


def _lost_events(pair: Pair) -> str:
    """That a capture lost events of instructions, so that these are not judged; empty if neither did."""
    lost = pair.lost_events()
    if lost.empty:
        return ""
    names = dict(zip(SIDES, pair.names, strict=True))
    which = " and ".join(as_code(names[side]) for side in lost["side"].unique())
    ops = some_of(map(as_code, dict.fromkeys(lost["hlo_op"])), _NAMED)
    return (
        f"**Lost events**: in {which}, {ops} ran less often than other instructions of the same program, as often as "
        "which they run on the other side; they are not judged"
    )


def _remarks(runs: Sequence[Run]) -> list[str]:
    remarked: dict[str, list[str]] = {}
    for run in runs:
        for remark in run.remarks:
            if run.why_untimed and remark.endswith(run.why_untimed):
                continue  # the headline says so
            remarked.setdefault(remark, []).append(as_code(run.name))
    return [f"{', '.join(names)}: {as_markdown(remark)}" for remark, names in remarked.items()]
