"""What to know before trusting the numbers of a comparison, as Markdown sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tfcompare.markdown import as_code, as_markdown
from tfcompare.schema import SIDES
from tfcompare.text import some_of

if TYPE_CHECKING:
    from tfcompare.compare import Comparison
    from tfcompare.compare.comparability import Mismatch
    from tfcompare.run import Run


_NAMED = 3
"""Instructions that a sentence names."""


def caveats(comparison: Comparison, mismatches: Mapping[str, Sequence[Mismatch]] | None = None) -> list[str]:
    """The most serious first: differences between the runs, remarks on each run, and units.

    `mismatches` are those of each candidate by its id, if they are known already.
    """
    if mismatches is None:
        mismatches = {run.id: comparison.mismatches(run) for run in other_runs(comparison)}
    found = [(run, one) for run in other_runs(comparison) for one in mismatches[run.id]]
    hard, soft = ([_sentence(comparison, *one) for one in found if one[1].is_hard is which] for which in (True, False))
    notes = [as_markdown(note.replace("`", "")) for note in comparison.notes]
    lost = [sentence for run in other_runs(comparison) if (sentence := _lost_events(comparison, run))]
    return [*hard, *lost, *_remarks(runs_of(comparison)), *soft, *notes]


def runs_of(comparison: Comparison) -> list[Run]:
    """The baseline and its candidates; a run that is shown alone once."""
    return [comparison.baseline, *other_runs(comparison)]


def other_runs(comparison: Comparison) -> list[Run]:
    """The candidates; none for a run that is shown alone."""
    return [] if comparison.is_single else list(comparison.candidates)


def _sentence(comparison: Comparison, run: Run, one: Mismatch) -> str:
    which = f" ({as_code(run.name)})" if len(comparison.candidates) > 1 else ""
    return f"**{one.label}**{which}: {as_markdown(one.baseline)} vs {as_markdown(one.candidate)}; {one.meaning}"


def _lost_events(comparison: Comparison, run: Run) -> str:
    """That a capture lost events of instructions, so that these are not judged; empty if neither did."""
    lost = comparison.lost_events(run)
    if lost.empty:
        return ""
    names = dict(zip(SIDES, comparison.names_of(run), strict=True))
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
