"""The op that launched each event on a GPU stream: kernel, copy or memory set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tfcompare.frames.combinations import combinations
from tfcompare.frames.hlo.programs import Programs, programs_of
from tfcompare.frames.ops.op_names import UNKNOWN, Op, parse_op
from tfcompare.frames.planes import events_of_lines, recorded_lines
from tfcompare.xspace import Plane, XSpace

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_ANNOTATIONS = ("level 0", "annotation")
_NAMING = ("hlo_op", "tf_op", *_ANNOTATIONS, "name")


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


def stream_events(space: XSpace, plane: Plane) -> Int32:
    """The rows of the events on the plane's recorded streams."""
    recorded = recorded_lines(space)
    return events_of_lines(space, [i for i in plane.lines if recorded[i]])


def launches(space: XSpace, rows: Int32) -> tuple[Int64, list[Launch]]:
    """(index of the launch of each of `rows`, the distinct launches)."""
    stats = [space.strings(name) for name in _NAMING]
    codes = [stat.spread(len(space.events))[rows] for stat in stats]
    program, metadata = space.number_of("program_id", rows, 0), space.events.metadata[rows]
    firsts, launch = combinations(metadata, program, *codes)
    programs = programs_of(space)
    out = []
    for i in firsts.tolist():
        labels = [s.labels[c[i]] if c[i] >= 0 else "" for s, c in zip(stats, codes, strict=True)]
        text = dict(zip(_NAMING, labels, strict=True))
        out.append(_launch(str(space.metadata_names[metadata[i]]), text, programs, int(program[i])))
    return launch, out


def _launch(event: str, text: dict[str, str], programs: Programs, program: int) -> Launch:
    """The launch given by `hlo_op` and its program, else by `tf_op`, else by an annotation."""
    if text["hlo_op"]:
        found = programs.find(program, text["hlo_op"])
        if found is None:
            return Launch(None, event, event, text["name"], in_file=False)
        compiled, instruction = found
        tf_op = compiled.origin(instruction).tf_op
        op = parse_op(tf_op) if tf_op else None
        return Launch(
            op,
            instruction.name,
            f"{program}/{instruction.name}",
            text["name"],
            program=str(program),
            runs_once=instruction.computation == compiled.entry,
        )
    if text["tf_op"]:
        op = parse_op(text["tf_op"]) or Op(text["tf_op"], UNKNOWN)
        return Launch(op, event, f"{op.name}/{event}")
    for annotation in _ANNOTATIONS:
        op = parse_op(_without_details(text[annotation])) if text[annotation] else None
        if op is not None:
            return Launch(op, event, f"{op.name}/{event}")
    return Launch(None, event, event)


def _without_details(annotation: str) -> str:
    """The outermost name in an annotation like `name:type#shape=(…)#::#edge_name=…#`."""
    return annotation.partition("::")[0].partition("#")[0]
