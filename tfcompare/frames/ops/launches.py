"""The op that launched each event on a GPU stream: kernel, copy or memory set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfcompare.frames.grouping import combinations
from tfcompare.frames.hlo.command_buffers import COMMAND_BUFFER, instructions_of
from tfcompare.frames.ops.op_names import UNKNOWN, Op, parse_op
from tfcompare.frames.planes import device_rows
from tfcompare.schema.arrays import Bools, Int32, Int64, Strings
from tfcompare.xspace import XSpace
from tfcompare.xspace.space import once_per_space

_ANNOTATIONS = ("level 0", "annotation")
_NAMING = ("tf_op", *_ANNOTATIONS, "name")


@dataclass(frozen=True, eq=False)
class Launches:
    """What launched events, one element each.

    `names` and `types` are those of the op; where it is unknown, `has_op` is False and the name that of the HLO
    instruction or else of the event. `parts` identify the smallest parts of an op's time (`op_parts`). `xla_names` are
    the annotations that XLA wrote, often an op that the instruction itself lacks. `in_file` is False for an instruction
    of a program that the file does not contain. `programs` are the ids of the instructions' programs, empty without
    one; with `runs_once`, each execution of the program runs the instruction once.
    """

    names: Strings
    types: Strings
    has_op: Bools
    parts: Strings
    xla_names: Strings
    in_file: Bools
    programs: Strings
    runs_once: Bools

    def put_ops(self, launches: Int64, ops: Sequence[Op | None]) -> None:
        """Set the op of each of these launches, and the part that it is for their events; None leaves them."""
        known = np.array([op is not None for op in ops], np.bool_)
        at, events = launches[known], self.parts[launches[known]]
        named = list(filter(None, ops))
        self.names[at], self.types[at] = [op.name for op in named], [op.type for op in named]
        self.parts[at] = self.names[at] + "/" + events
        self.has_op[at] = True


@once_per_space
def launched_on_devices(space: XSpace) -> tuple[Int32, Launches]:
    """(for each event on a recorded line of a device, the index of what launched it, −1 for others; the launches)."""
    out, rows = np.full(len(space.events), -1, np.int32), device_rows(space)
    out[rows], launched = launches(space, rows)
    return out, launched


def launches(space: XSpace, rows: Int32) -> tuple[Int64, Launches]:
    """(index of the launch of each of `rows`, the distinct launches)."""
    ran = instructions_of(space)
    stats = [space.strings(name) for name in _NAMING]
    codes = [stat.spread()[rows] for stat in stats]
    instruction, metadata = ran.of_event[rows], space.events.metadata[rows]
    firsts, launch = combinations(metadata, instruction, *codes)
    instruction, events = instruction[firsts], space.metadata_names[metadata[firsts]]
    texts = [np.array([*stat.labels, ""], object)[code[firsts]] for stat, code in zip(stats, codes, strict=True)]
    size = len(firsts)
    out = Launches(
        names=events.copy(),
        types=np.full(size, UNKNOWN, object),
        has_op=np.zeros(size, np.bool_),
        parts=events.copy(),
        xla_names=texts[-1],
        in_file=instruction < 0,
        programs=np.full(size, "", object),
        runs_once=np.zeros(size, np.bool_),
    )
    of_event = np.flatnonzero(instruction < 0)
    out.put_ops(of_event, list(map(_op, *(text[of_event].tolist() for text in texts[:-1]))))
    in_buffers = np.append(np.isin(ran.hlo_ops, list(ran.buffers)), False)[instruction]
    of_buffer = np.flatnonzero(in_buffers)
    out.put_ops(of_buffer, [Op(name, COMMAND_BUFFER) for name in ran.hlo_ops[instruction[of_buffer]].tolist()])
    out.in_file[of_buffer] = True
    for program, at, of_launch in ran.found_among(np.where(in_buffers, -1, instruction)):
        out.names[at] = program.names(of_launch)
        out.programs[at] = list(map(str, ran.program_ids[instruction[at]].tolist()))
        parts = out.programs[at] + "/" + out.names[at]
        tf_ops = program.tf_ops(program.origins(of_launch))
        ops = {tf_op: parse_op(tf_op) for tf_op in set(tf_ops)}
        out.put_ops(at, [ops[tf_op] for tf_op in tf_ops])
        out.parts[at], out.in_file[at] = parts, True
        out.runs_once[at] = program.computation[of_launch] == program.entry[program.programs(of_launch)]
    return launch, out


def _op(tf_op: str, *labels: str) -> Op | None:
    """The op that an event names, in its stat `tf_op` or in an annotation."""
    if tf_op:
        return parse_op(tf_op) or Op(tf_op, UNKNOWN)
    # an annotation begins with the outermost name: `name:type#shape=(…)#::#edge_name=…#`
    names = (label.partition("::")[0].partition("#")[0] for label in labels if label)
    return next(filter(None, map(parse_op, names)), None)
