"""`hlo_texts`: what surrounds the instructions of XLA programs that ran on one host."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tfcompare.frames.arrow import empty, host_table
from tfcompare.frames.hlo.programs import programs_of
from tfcompare.hlo.neighbours import fused_texts, operand_texts, source_ops, user_texts
from tfcompare.xspace import XSpace


def hlo_texts(space: XSpace, ran: pa.Table) -> pa.Table:
    """Columns of `schema.HLO_TEXTS`, a row for each program and instruction in `ran`, the host's `hlo_ops`, in its
    order. Raises `NotAProfile` for a damaged program."""
    if not len(ran):
        return empty("hlo_texts")
    programs = programs_of(space)
    ids = {programs.name(own_id): own_id for own_id in programs.ids}
    keys = dict.fromkeys(zip(*(ran[key].to_pylist() for key in ("program", "hlo_op")), strict=True))
    known = [(at, ids[program], hlo_op) for at, (program, hlo_op) in enumerate(keys) if program in ids]
    texts = {name: np.full(len(keys), "", object) for name in ("operands", "users", "fused", "source_ops")}
    rows = np.array([at for at, _, _ in known], np.int64)
    own_ids = np.array([own_id for _, own_id, _ in known], np.int64)
    for _, program, positions, found in programs.find(own_ids, [hlo_op for _, _, hlo_op in known]):
        texts["operands"][rows[positions]] = operand_texts(program, found)
        texts["users"][rows[positions]] = user_texts(program, found)
        texts["fused"][rows[positions]] = fused_texts(program, found)
        texts["source_ops"][rows[positions]] = source_ops(program, found)
    names = {"program": [program for program, _ in keys], "hlo_op": [hlo_op for _, hlo_op in keys]}
    return host_table("hlo_texts", {**names, **texts})
