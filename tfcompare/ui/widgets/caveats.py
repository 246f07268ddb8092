"""What to know before trusting the numbers of a comparison, and how its runs were captured."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pandas as pd
import streamlit as st

from tfcompare.compare import Comparison
from tfcompare.compare.comparability import Mismatch
from tfcompare.run import Run
from tfcompare.tools.environment import environment
from tfcompare.ui.frame.comparison_cache import cached
from tfcompare.ui.widgets.text import as_code, as_markdown

WIDTH = 900


def caveats(comparison: Comparison) -> list[str]:
    """Markdown sentences, the most serious first: differences between the runs, remarks on each run, and units."""
    found = [(run, one) for run in _others(comparison) for one in _mismatches(comparison, run)]
    hard, soft = ([_sentence(comparison, *one) for one in found if one[1].is_hard is which] for which in (True, False))
    notes = [as_markdown(note.replace("`", "")) for note in comparison.notes]
    return [*hard, *_remarks(runs_of(comparison)), *soft, *notes]


def runs_of(comparison: Comparison) -> list[Run]:
    """The baseline and its candidates; a run that is shown alone once."""
    return [comparison.baseline, *_others(comparison)]


def _others(comparison: Comparison) -> list[Run]:
    return [] if comparison.is_single else list(comparison.candidates)


def _mismatches(comparison: Comparison, run: Run) -> list[Mismatch]:
    return cached(comparison, ("mismatches", run.id), partial(comparison.mismatches, run))


def show(comparison: Comparison) -> None:
    """A button that unfolds the caveats, and below them how each run was captured."""
    found = caveats(comparison)
    icon = ":material/warning:" if found else ":material/info:"
    with (
        st.popover(
            f"Caveats ({len(found)})" if found else "Details", icon=icon, type="tertiary", key="tfcompare.caveats"
        ),
        st.container(width=WIDTH),
    ):
        st.markdown("\n".join(f"- {sentence}" for sentence in found) or "No caveats.")
        st.markdown("**How the runs were captured**")
        _environments(runs_of(comparison))


def _sentence(comparison: Comparison, run: Run, one: Mismatch) -> str:
    which = f" ({as_code(run.name)})" if len(comparison.candidates) > 1 else ""
    return f"**{one.label}**{which}: {as_markdown(one.baseline)} vs {as_markdown(one.candidate)}; {one.meaning}"


def _remarks(runs: Sequence[Run]) -> list[str]:
    remarked: dict[str, list[str]] = {}
    for run in runs:
        for remark in run.remarks:
            remarked.setdefault(remark, []).append(as_code(run.name))
    return [f"{', '.join(names)}: {as_markdown(remark)}" for remark, names in remarked.items()]


def _environments(runs: Sequence[Run]) -> None:
    """The environment and settings of each capture, side by side, those that differ marked."""
    facts = environment([run.info for run in runs], st.context.timezone)
    rows = {as_markdown(fact.label): [*map(as_markdown, fact.values), "≠" if fact.differs else ""] for fact in facts}
    names = [f"{letter(i)} {as_markdown(run.name)}" for i, run in enumerate(runs)]
    st.table(pd.DataFrame.from_dict(rows, orient="index", columns=[*names, "Differs"]))


def letter(position: int) -> str:
    """`A` for the baseline, `B` for the first candidate."""
    return chr(ord("A") + position) if position < 26 else str(position + 1)
