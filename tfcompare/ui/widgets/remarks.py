"""What to know before trusting the numbers of a comparison."""

from __future__ import annotations

from functools import partial

import streamlit as st

from tfcompare.compare import Comparison
from tfcompare.compare.comparability import Mismatch
from tfcompare.ui.widgets.figures import cached
from tfcompare.ui.widgets.text import as_code, as_markdown


def remarks(comparison: Comparison) -> None:
    """Show what to know before trusting the numbers: about each run, and about differences between the runs."""
    baseline = comparison.baseline
    remarked: dict[str, list[str]] = {}
    for run in (baseline, *comparison.candidates):
        for remark in run.remarks:
            remarked.setdefault(remark, []).append(as_code(run.name))
    for remark, names in remarked.items():
        st.warning(f"{', '.join(names)}: {as_markdown(remark)}", icon=":material/warning:")
    for run in comparison.candidates:
        found = cached(comparison, ("mismatches", run.id), partial(comparison.mismatches, run))
        if hard := [m for m in found if m.is_hard]:
            st.warning(
                f"{as_code(baseline.name)} and {as_code(run.name)} were not recorded alike, so their times differ for "
                f"more reasons than the program.{_listed(hard)}",
                icon=":material/balance:",
            )
        if soft := [m for m in found if not m.is_hard]:
            st.info(
                f"What limits the comparison of {as_code(baseline.name)} and {as_code(run.name)}:{_listed(soft)}",
                icon=":material/balance:",
            )


def _listed(found: list[Mismatch]) -> str:
    lines = [f"\n- **{m.label}**: {as_markdown(m.baseline)} and {as_markdown(m.candidate)}; {m.meaning}" for m in found]
    return "\n" + "".join(lines)
