"""`compilations`: what was traced, lowered and compiled on one host while its profile was recorded."""

from __future__ import annotations

from collections import defaultdict

import pandas as pd

from tfcompare import schema
from tfcompare.errors import NotAProfile
from tfcompare.frames.hlo.compile_events import compile_events
from tfcompare.frames.hlo.programs import Programs, programs_of
from tfcompare.hlo.names import function_name
from tfcompare.hlo.program import Program
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

_PARAMETER_NUMBER = 9  # in `HloInstructionProto`
_MOST_PROGRAMS, _MOST_PARAMETERS = 8, 4  # whose shapes are listed
_KEYS = ["function", "phase"]


def compilations(space: XSpace, host: str) -> pd.DataFrame:
    """Columns of `schema.COMPILATIONS`, longest total time first; no rows if nothing was traced or compiled."""
    found = compile_events(space)
    if not len(found.rows):
        return schema.COMPILATIONS.empty()
    time_us = space.events.duration_ps[found.rows] / PS_PER_US
    events = pd.DataFrame({"function": found.functions, "phase": found.phases, "time_us": time_us})
    table = events.groupby(_KEYS, as_index=False).agg(
        occurrences=("time_us", "size"), total_time_us=("time_us", "sum"), longest_us=("time_us", "max")
    )
    programs = programs_of(space)
    ids: dict[str, list[int]] = defaultdict(list)
    for program_id in sorted(programs.ids):
        ids[function_name(programs.name(program_id))].append(program_id)
    shapes = {name: _differing_shapes(programs, ids[name]) for name in table["function"].unique() if len(ids[name]) > 1}
    table["programs"] = [len(ids[name]) for name in table["function"]]
    table["shapes"] = [shapes.get(name, "") for name in table["function"]]
    order = table.sort_values(["total_time_us", *_KEYS], ascending=[False, True, True])
    return schema.COMPILATIONS.conform(order.assign(host=host).reset_index(drop=True))


def _differing_shapes(programs: Programs, ids: list[int]) -> str:
    """The parameters in which these programs differ, such as `f32[8,128]; f32[9,128]`.

    Empty if they do not differ, or not in the shapes of as many parameters. Damaged programs are left out.
    """
    signatures = list(dict.fromkeys(filter(None, (_parameters(programs, program_id) for program_id in ids))))
    if len(signatures) < 2 or len({len(signature) for signature in signatures}) > 1:
        return ""
    differing = [i for i, shapes in enumerate(zip(*signatures, strict=True)) if len(set(shapes)) > 1]
    more = ", …" if len(differing) > _MOST_PARAMETERS else ""
    texts = [", ".join(one[i] for i in differing[:_MOST_PARAMETERS]) + more for one in signatures[:_MOST_PROGRAMS]]
    return "; ".join([*texts, *(["…"] if len(signatures) > _MOST_PROGRAMS else [])])


def _parameters(programs: Programs, program_id: int) -> tuple[str, ...]:
    """The shapes of a program's parameters, in order; none if it is damaged."""
    try:
        program = programs.program(program_id)
        return _shapes_of_parameters(program) if program is not None else ()
    except NotAProfile:
        return ()


def _shapes_of_parameters(program: Program) -> tuple[str, ...]:
    entry = program.computations.get(program.entry)
    instructions = entry.instructions if entry is not None else ()
    parameters = [one for one in instructions if one.opcode == "parameter"]
    parameters.sort(key=lambda one: one.number_in(_PARAMETER_NUMBER, 0))
    return tuple(", ".join(map(str, one.arrays)) for one in parameters)
