"""What the events on GPU streams were launched for: the op behind a kernel, a copy or a memory set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tfcompare.frames.combinations import combinations
from tfcompare.frames.ops.op_names import UNKNOWN, Op, parse_op
from tfcompare.frames.planes import METADATA_PLANE, events_of_lines, recorded_lines
from tfcompare.xspace import Plane, XSpace
from tfcompare.xspace.hlo import Instruction, instructions

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

_HLO_PROTO = ("Hlo Proto", "hlo_proto")
_ANNOTATIONS = ("level 0", "annotation")
_NAMING = ("hlo_op", "tf_op", *_ANNOTATIONS, "name")


class Launch(NamedTuple):
    """What an event was launched for.

    `op`: None where nothing names one; `own_name`: the HLO instruction's, without one the event's; `part`: the smallest
    part of an op's time (`op_parts`); `xla_name`: what XLA wrote beside the instruction, often the op that the
    instruction itself lacks; `in_file`: False for an instruction whose program the file does not hold.
    """

    op: Op | None
    own_name: str
    part: str
    xla_name: str = ""
    in_file: bool = True


def stream_events(space: XSpace, plane: Plane) -> Int32:
    """The rows of the events on the plane's recorded streams."""
    recorded = recorded_lines(space)
    return events_of_lines(space, [i for i in plane.lines if recorded[i]])


def launches(space: XSpace, rows: Int32) -> tuple[Int64, list[Launch]]:
    """(index of the launch of each of `rows`; the launches): one for each distinct combination of what names an op."""
    stats = [space.strings(name) for name in _NAMING]
    codes = [stat.spread(len(space.events))[rows] for stat in stats]
    program, metadata = space.number_of("program_id", rows, 0), space.events.metadata[rows]
    firsts, launch = combinations(metadata, program, *codes)
    programs = Programs(space)
    out = []
    for i in firsts.tolist():
        labels = [s.labels[c[i]] if c[i] >= 0 else "" for s, c in zip(stats, codes, strict=True)]
        text = dict(zip(_NAMING, labels, strict=True))
        out.append(_launch(str(space.metadata_names[metadata[i]]), text, programs, int(program[i])))
    return launch, out


class Programs:
    """The HLO instructions of the XLA programs in the file, read when first asked for."""

    def __init__(self, space: XSpace) -> None:
        metadata = {p.index for p in space.planes if p.name == METADATA_PLANE}
        self._protos = {
            int(space.metadata_ids[row]): proto
            for name in _HLO_PROTO
            for row, proto in space.metadata_bytes(name).items()
            if int(space.metadata_plane[row]) in metadata
        }
        self._read: dict[int, dict[str, Instruction]] = {}

    def instruction(self, program: int, name: str) -> Instruction | None:
        """That of an `hlo_op`; None where the file does not hold it."""
        name = name.rpartition("::")[2]
        if program not in self._read:
            proto = self._protos.get(program)
            self._read[program] = instructions(proto) if proto is not None else {}
        return self._read[program].get(name)


def _launch(event: str, text: dict[str, str], programs: Programs, program: int) -> Launch:
    """By `hlo_op` and the program it is part of, else by `tf_op`, else by what annotates the launch."""
    if text["hlo_op"]:
        instruction = programs.instruction(program, text["hlo_op"])
        if instruction is None:
            return Launch(None, event, event, text["name"], in_file=False)
        op = parse_op(instruction.tf_op) if instruction.tf_op else None
        return Launch(op, instruction.name, f"{program}/{instruction.name}", text["name"])
    if text["tf_op"]:
        op = parse_op(text["tf_op"]) or Op(text["tf_op"], UNKNOWN)
        return Launch(op, event, f"{op.name}/{event}")
    for annotation in _ANNOTATIONS:
        op = parse_op(_without_details(text[annotation])) if text[annotation] else None
        if op is not None:
            return Launch(op, event, f"{op.name}/{event}")
    return Launch(None, event, event)


def _without_details(annotation: str) -> str:
    """The outermost name of `name:type#shape=(…)#::#edge_name=…#`, without what follows it."""
    return annotation.partition("::")[0].partition("#")[0]
