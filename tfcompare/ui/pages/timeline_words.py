"""Above the timeline, in words: how long the compared steps are, where the candidate falls behind, what was found."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from tfcompare.tools.timeline.aligned import Aligned
from tfcompare.tools.timeline.drawing import found
from tfcompare.tools.timeline.losses import Loss
from tfcompare.tools.timeline.sentences import OVERLAP, aligned_how, alone, arrivals, hits, lengths, where
from tfcompare.ui.pages import timeline_panels
from tfcompare.ui.pages.timeline_hosts import Sides


def headline(sides: Sides, aligned: Aligned, places: Sequence[Loss], find: str) -> None:
    """How long the compared steps are, where the candidate loses or gains most, and how often a text was found.

    Of a run alone, how long the step is and what takes longest in it; of two hosts of one run, which of them reaches
    the collective last and why.
    """
    labels = sides.labels
    if sides.pair.is_single:
        st.markdown(alone(aligned), help=timeline_panels.WALL_TIME)
    elif sides.hosts and sides.hosts.steps is not None:
        st.markdown(arrivals(aligned, places, labels), help=OVERLAP if places else None)
    else:
        st.markdown(f"{lengths(aligned, labels)} {where(aligned, places, labels)}", help=OVERLAP)
    if sides.hosts:
        of_run = sides.hosts.steps is not None
        st.caption(f"1: {labels[0]}, 2: {labels[1]}. {aligned_how(aligned, labels[1]) if of_run else ''}")
    if find:
        st.caption(hits(find, found(aligned, find), labels))
