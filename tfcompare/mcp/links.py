"""The address of the page of a dashboard that shows what a tool answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from tfcompare.loading import Question
from tfcompare.views import NAMES
from tfcompare.views.options import declared
from tfcompare.views.registry import view


def page_address(
    base: str, name: str, question: Question, runs: Sequence[Sequence[str]], options: Mapping[str, object]
) -> str:
    """The address, below `base`, of the page of a view, or of the Overview if it has none.

    `runs` are the ids of the captures of each side. Addresses have the labels of choices; those that depend on the runs
    are left out, and the page shows what it shows first.
    """
    page = view(name if name in NAMES else NAMES[0])
    baseline, *candidates = (ids[0] for ids in runs)
    steps = question.steps
    query: dict[str, object] = {"baseline": baseline, "candidate": candidates}
    query |= {"per": question.per if question.per != "step" else "", "host": question.host or ""}
    query |= {"step_marker": steps.marker or "", "steps": steps.range or "", "step_kind": steps.kind or ""}
    query["repeat"] = [f"{position}:{run}" for position, ids in enumerate(runs) for run in ids[1:]]
    for one in declared(page.options) if name == page.name else ():
        if one.name in options and not callable(one.choices):
            value = options[one.name]
            label = one.choices[value] if isinstance(one.choices, Mapping) else value
            query[one.key] = str(label).lower() if isinstance(label, bool) else label
    named = {key: value for key, value in query.items() if value}
    return f"{base.rstrip('/')}/{page.title.replace(' ', '_').replace('.', '_')}?{urlencode(named, doseq=True)}"
