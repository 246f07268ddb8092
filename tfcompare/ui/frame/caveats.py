"""What to know of the comparison on every page: caveats, and manual choices that no longer apply."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from tfcompare.compare.pairs import Pairs, pairs_of
from tfcompare.compare.side import letter
from tfcompare.run import Run
from tfcompare.store.cached_frames import frame_cache
from tfcompare.text import as_markdown
from tfcompare.ui.frame.selection import Selection
from tfcompare.views import caveats
from tfcompare.views.caveats import environment
from tfcompare.views.registry import views

WIDTH = 900
_KNOWN = "tfcompare.applicable"


def show(comparison: Pairs) -> None:
    """A button that unfolds the caveats, and below them how each run was captured."""
    found = caveats.caveats(comparison)
    icon = ":material/warning:" if found else ":material/info:"
    with (
        st.popover(
            f"Caveats ({len(found)})" if found else "Details", icon=icon, type="tertiary", key="tfcompare.caveats"
        ),
        st.container(width=WIDTH),
    ):
        st.markdown("\n".join(f"- {sentence}" for sentence in found) or "No caveats.")
        st.markdown("**How the runs were captured**")
        _environments(comparison.runs)


def show_cache_problems() -> None:
    """A line in the sidebar for each problem with this machine's cache of tables; everything works without it."""
    cache = frame_cache()
    for message in cache.messages if cache is not None else ():
        st.sidebar.warning(as_markdown(message), icon=":material/inventory_2:")


def _environments(runs: Sequence[Run]) -> None:
    """The environment and settings of each capture, side by side, those that differ marked."""
    facts = environment([run.info for run in runs], st.context.timezone)
    rows = {as_markdown(fact.label): [*map(as_markdown, fact.values), "≠" if fact.differs else ""] for fact in facts}
    names = [f"{letter(i)} {as_markdown(run.name)}" for i, run in enumerate(runs)]
    st.table(pd.DataFrame.from_dict(rows, orient="index", columns=[*names, "Differs"]))


def why_not(comparison: Pairs) -> dict[str, str]:
    """The reason for each page, by its title, that has nothing to show for these runs."""
    reasons = {view.title: [view.why_not(pair) for pair in pairs_of(comparison)] for view in views()}
    return {title: of_pairs[0] for title, of_pairs in reasons.items() if all(of_pairs)}


def remember(selection: Selection, reasons: dict[str, str]) -> None:
    """Keep the reasons for the selected runs, so that the next page can show them before these are loaded."""
    st.session_state[_KNOWN] = selection.compared, reasons


def remembered_reasons(selection: Selection) -> dict[str, str]:
    """The remembered reasons for the selected runs; none if these were not loaded yet."""
    compared, reasons = st.session_state.get(_KNOWN, ((), {}))
    found: dict[str, str] = reasons if compared == selection.compared else {}
    return found
