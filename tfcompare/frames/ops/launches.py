"""The op that launched each event on a GPU stream: kernel, copy or memory set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tfcompare.frames.grouping import combinations
from tfcompare.frames.hlo.command_buffers import COMMAND_BUFFER, instructions_of
from tfcompare.frames.hlo.programs import Programs, programs_of
from tfcompare.frames.ops.op_names import UNKNOWN, Op, parse_op
from tfcompare.frames.planes import device_rows
from tfcompare.schema.arrays import Int32, Int64, Strings
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import once_per_space

_ANNOTATIONS = ("level 0", "annotation")
_NAMING = ("tf_op", *_ANNOTATIONS, "name")


class Launch(NamedTuple):
    """What launched an event.

    `op` is None if unknown. `own_name` is the HLO instruction's name, or else the event's. `part` identifies the
    smallest part of an op's time (`op_parts`). `xla_name` is the annotation that XLA wrote, often an op that the
    instruction itself lacks. `in_file` is False for an instruction of a program that the file does not contain.
    `program` is the id of the instruction's program, empty without one; with `runs_once`, each execution of the program
    runs the instruction once.
    """

    op: Op | None
    own_name: str
    part: str
    xla_name: str = ""
    in_file: bool = True
    program: str = ""
    runs_once: bool = False


@once_per_space
def launched_on_devices(space: XSpace) -> tuple[Int32, list[Launch]]:
    """(for each event on a recorded line of a device, the index of what launched it, −1 for others; the launches)."""
    out, rows = np.full(len(space.events), -1, np.int32), device_rows(space)
    out[rows], launched = launches(space, rows)
    return out, launched


def launches(space: XSpace, rows: Int32) -> tuple[Int64, list[Launch]]:
    """(index of the launch of each of `rows`, the distinct launches)."""
    ran = instructions_of(space)
    stats = [ran.hlo_op, *(space.strings(name) for name in _NAMING)]
    codes = [stat.spread(len(space.events))[rows] for stat in stats]
    program, metadata = ran.program_ids(space, rows), space.events.metadata[rows]
    firsts, launch = combinations(metadata, program, *codes)
    events = space.metadata_names[metadata[firsts]].tolist()
    texts = [np.array([*stat.labels, ""], object)[code[firsts]] for stat, code in zip(stats, codes, strict=True)]
    out = []
    for event, hlo_op, tf_op, *labels, name in zip(events, *texts, strict=True):
        if hlo_op in ran.buffers:
            out.append(Launch(Op(hlo_op, COMMAND_BUFFER), event, f"{hlo_op}/{event}", name))
        elif hlo_op:
            out.append(Launch(None, event, event, name, in_file=False))
        else:
            op: Op | None = Op(tf_op, UNKNOWN)
            if tf_op:
                op = parse_op(tf_op) or op
            else:  # an annotation begins with the outermost name: `name:type#shape=(…)#::#edge_name=…#`
                names = (label.partition("::")[0].partition("#")[0] for label in labels if label)
                op = next(filter(None, map(parse_op, names)), None)
            out.append(Launch(op, event, event if op is None else f"{op.name}/{event}"))
    named = np.flatnonzero((texts[0] != "") & ~np.isin(texts[0], list(ran.buffers)))
    _put_instructions(programs_of(space), program[firsts], texts[0], named, out)
    return launch, out


def _put_instructions(
    programs: Programs, program_ids: Int64, hlo_ops: Strings, named: Int64, out: list[Launch]
) -> None:
    """Put the launches by instructions that the file contains into `out`; `named` are those with an `hlo_op`."""
    for own_id, program, positions, rows in programs.find(program_ids[named], hlo_ops[named]):
        tf_ops, names = program.tf_ops(program.origins(rows)), program.names(rows)
        runs_once = program.computation[rows] == program.entry
        ops = {tf_op: parse_op(tf_op) if tf_op else None for tf_op in set(tf_ops)}
        cells = zip(named[positions].tolist(), tf_ops, names.tolist(), runs_once.tolist(), strict=True)
        for at, tf_op, name, is_once in cells:
            part = f"{own_id}/{name}"
            out[at] = Launch(ops[tf_op], name, part, out[at].xla_name, program=str(own_id), runs_once=is_once)
