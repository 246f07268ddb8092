"""The spans of steps whose work, XLA programs on the host's own threads, goes on after their markers."""

from __future__ import annotations

import re

import numpy as np

from tfcompare.frames.executions import Executions
from tfcompare.frames.spans import NO_SPANS
from tfcompare.frames.steps.step_spans import StepSpans, no_spans, spans_of_steps
from tfcompare.markdown import as_code
from tfcompare.schema.arrays import Int32, Int64
from tfcompare.xspace import XSpace

_NEGLIGIBLE = 0.1
"""The share of the programs' time that may run after the markers, or be of unknown steps. A program that blocks within
each step may leave a small one, such as that of the next random key, running at its end."""
_MOST = 0.5
_EARLY, _REMEDY = "steps end before their work", "block on the result inside the step"
_RUNTIME_THREAD = re.compile(r"tf_XLA(PjRt|Tfrt)CpuClient.*")


def execution_spans(
    space: XSpace, executions: Executions, step_of_event: Int32, markers: StepSpans
) -> tuple[StepSpans, str]:
    """(from the first to the last event of the XLA programs that each step launched; why the steps have no time).

    All spans are missing if the programs run within the markers, which then last as long as their work. The steps have
    no time if the programs do not, and too little is known of which step launched them.
    """
    count, rows = len(markers.start_ps), executions.rows
    has_unlinked = (step_of_event[executions.unlinked] >= 0).any()
    if has_unlinked and not len(rows) and _has_runtime_threads(space):
        return no_spans(count), f"{_EARLY}: the profile holds none of it; {_REMEDY}"
    start, time = space.events.start_ps[rows], space.events.duration_ps[rows]
    end, is_linked = start + time, executions.launch >= 0
    step = np.where(is_linked, step_of_event[rows], -1)
    own, unknown = np.flatnonzero(step >= 0), np.flatnonzero(~is_linked & has_unlinked)
    late = np.zeros(len(rows), np.int64)
    late[own] = np.maximum(end[own] - np.maximum(start[own], markers.end_ps[step[own]]), 0)
    inside = NO_SPANS.union(markers.start_ps, markers.end_ps).covered_between(start[unknown], end[unknown])
    late[unknown] = time[unknown] - inside
    negligible = _NEGLIGIBLE * (time[own].sum() + time[unknown].sum())
    if late.sum() <= negligible:
        return no_spans(count), ""
    if time[unknown].sum() > negligible:
        return no_spans(count), _why_untimed(space, rows, late, end - np.maximum(start, markers.end_ps.max()))
    return spans_of_steps(step[own], start[own], end[own], count), ""


def _has_runtime_threads(space: XSpace) -> bool:
    """Whether a thread on which the runtime runs programs recorded anything, if only that it was given work."""
    return any(_RUNTIME_THREAD.fullmatch(name) for name in space.lines.name)


def _why_untimed(space: XSpace, rows: Int64, late: Int64, after_last: Int64) -> str:
    """Says which program has the most of the `late` time, whether that is after the last marker, and what helps."""
    of_program = _of_longest_program(space, rows, late)
    is_after = np.minimum(late, after_last.clip(0)).sum() > _MOST * late.sum()
    where = "after the last marker" if is_after else "outside of the markers"
    return f"{_EARLY}: most of the work{of_program} runs {where}; {_REMEDY}"


def _of_longest_program(space: XSpace, rows: Int64, time: Int64) -> str:
    """Names the XLA program with the most of this time, in Markdown; empty if the programs are not recorded."""
    module = space.strings("hlo_module")
    code = module.spread(len(space.events))[rows]
    named = code >= 0
    if not named.any():
        return ""
    return f" of {as_code(str(module.labels[int(np.bincount(code[named], time[named]).argmax())]))}"
