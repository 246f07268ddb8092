"""`compilations`: what was traced, lowered and compiled on one host while its profile was recorded."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa

from tfcompare.errors import NotAProfile
from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.hlo.compile_events import compile_events
from tfcompare.frames.hlo.programs import Programs, programs_of
from tfcompare.hlo.names import function_name
from tfcompare.hlo.program import PARAMETER_NUMBER, Program
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import PS_PER_US

_MOST_PROGRAMS, _MOST_PARAMETERS = 8, 4  # whose shapes are listed


def compilations(space: XSpace) -> pa.Table:
    """Columns of `schema.COMPILATIONS`, longest total time first; no rows if nothing was traced or compiled."""
    found = compile_events(space)
    if not len(found.rows):
        return empty("compilations")
    times: dict[tuple[str, str], list[int]] = defaultdict(list)
    for *key, took_ps in zip(found.functions, found.phases, space.events.duration_ps[found.rows].tolist(), strict=True):
        times[key[0], key[1]].append(took_ps)
    total_ps = {key: sum(each) for key, each in times.items()}
    keys = sorted(times, key=lambda key: (-total_ps[key], key))
    programs = programs_of(space)
    ids: dict[str, list[int]] = defaultdict(list)
    for program_id in sorted(programs.ids):
        ids[function_name(programs.name(program_id))].append(program_id)
    shapes = {name: _differing_shapes(programs, ids[name]) for name, _ in keys if len(ids[name]) > 1}
    columns = {
        "function": [function for function, _ in keys],
        "phase": [phase for _, phase in keys],
        "occurrences": np.array([len(times[key]) for key in keys]),
        "total_time_us": np.array([total_ps[key] for key in keys]) / PS_PER_US,
        "longest_us": np.array([max(times[key]) for key in keys]) / PS_PER_US,
        "programs": np.array([len(ids[function]) for function, _ in keys]),
        "shapes": [shapes.get(function, "") for function, _ in keys],
    }
    return host_table("compilations", columns)


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
    entry = program.instructions_of(np.array([program.entry])) if program.entry >= 0 else np.zeros(0, np.int64)
    parameters = entry[program.has_opcode(entry, "parameter".__eq__)]
    numbers = program.integers(parameters, PARAMETER_NUMBER)
    rows = parameters[np.argsort(numbers, kind="stable")].tolist()
    return tuple(", ".join(map(str, program.shape_of(row).arrays)) for row in rows)
