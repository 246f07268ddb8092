"""Which of XLA's buffers changed the memory of a program most, where allocations do not tell their ops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare import executions
from tfcompare.compare.diff import ADDED, REMOVED
from tfcompare.compare.matching.plain_names import bare_path
from tfcompare.compare.stats.verdict import SAME, verdict_on_size
from tfcompare.hlo.names import plain_instruction
from tfcompare.schema.hlo import MAIN_MEMORY
from tfcompare.text import as_code
from tfcompare.units import format_bytes, format_delta
from tfcompare.views.blocks import Block, Link, Links
from tfcompare.views.links import OPENS_MORE

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair

_LETTERS = 48
"""Of a name in the sentence."""
_NAMED_AFTER = 2
"""A buffer is called after its op and the innermost scope of that."""


@dataclass(frozen=True)
class ChangedBuffers:
    """The peak of device memory that XLA planned for a program of both runs, in bytes, and the buffers that changed it
    most: what they hold, their shape on each side, empty on one without them, and their bytes."""

    program: str
    peaks: tuple[float, float]
    what: str
    shapes: tuple[str, str]
    sizes: tuple[float, float]


def blocks(pair: Pair) -> Iterator[Block]:
    """A sentence on the program whose planned memory changed most, and a link to its buffers; nothing if none did, or
    for different programs."""
    if pair.are_unrelated:
        return
    if (found := pair.cached("changed buffers", partial(changed_buffers, pair))) is not None:
        link = Link("Show the buffers that changed", "xla", {"program": found.program, **OPENS_MORE})
        yield Links([link], sentence(found, pair.marked))


def sentence(found: ChangedBuffers, names: tuple[str, str]) -> str:
    """`XLA's buffers of jit_f: 394 MB in B, 696 MB in A (−302 MB), above all f32[8,128] of mlp/mul (−67.1 MB).`"""
    (ours, theirs), (before, after) = found.peaks, found.sizes
    peaks = f"{format_bytes(theirs)} in {names[1]}, {format_bytes(ours)} in {names[0]}"
    shapes = " → ".join(as_code(shape, _LETTERS) for shape in dict.fromkeys(found.shapes) if shape)
    what = " of ".join(filter(None, [shapes, as_code(found.what, _LETTERS)]))
    changes = (format_delta(of, "bytes") for of in (theirs - ours, after - before))
    whole, most = changes
    return f"XLA's buffers of {as_code(found.program)}: {peaks} ({whole}), above all {what} ({most})."


def changed_buffers(pair: Pair) -> ChangedBuffers | None:
    """The program of both runs whose planned peak changed most, if it is not the same; None without any."""
    instructions = pair.instructions()
    if pair.is_single or pair.is_identical or instructions.empty:
        return None
    ours, theirs = instructions["program"], instructions["program_candidate"].fillna(instructions["program"])
    programs = ours.mask(instructions["status"] == ADDED), theirs.mask(instructions["status"] == REMOVED)
    tables = zip(pair.tables("hlo_memory"), programs, strict=True)
    before, after = (_live(table, instructions["program_key"].groupby(names).first()) for table, names in tables)
    peaks = before.groupby("program_key").agg(ours=("size_bytes", "sum"))
    peaks = peaks.join(after.groupby("program_key").agg(theirs=("size_bytes", "sum")), how="inner")
    if peaks.empty:
        return None
    key = str((peaks["theirs"] - peaks["ours"]).abs().idxmax())
    ours_bytes, theirs_bytes = float(peaks["ours"][key]), float(peaks["theirs"][key])
    if verdict_on_size(ours_bytes, theirs_bytes) == SAME:
        return None
    buffers = _paired(before[before["program_key"] == key], after[after["program_key"] == key])
    delta = buffers["after"] - buffers["before"]
    most = buffers.iloc[int((delta if theirs_bytes > ours_bytes else -delta).argmax())]
    named = executions.programs(instructions)
    label = str(named.loc[named["program_key"] == key, "label"].iloc[0])
    shapes, sizes = (most["shape_before"], most["shape_after"]), (most["before"], most["after"])
    return ChangedBuffers(label, (ours_bytes, theirs_bytes), str(most["what"]), shapes, sizes)


def _live(memory: pd.DataFrame, key_of: pd.Series) -> pd.DataFrame:
    """The buffers of a side in device memory at the peak of each program, on the host where that is largest, with
    `program_key` (`key_of` its name) and `what` they hold."""
    rows = memory[memory["is_live_at_peak"].astype(bool) & (memory["memory_space"] == MAIN_MEMORY)]
    rows = rows[rows["program"].isin(key_of.index)].reset_index(drop=True)
    rows = rows.assign(program_key=rows["program"].map(key_of))
    place = rows.groupby(["program", "host"], sort=False).ngroup()
    peak = rows.groupby(place)["size_bytes"].transform("sum")
    rows = rows[place.isin(place[peak.groupby(rows["program_key"]).idxmax()])]
    names = zip(rows["op_name"].tolist(), rows["hlo_op"].tolist(), strict=True)
    what = ["/".join(bare_path(op)[-_NAMED_AFTER:]) or plain_instruction(hlo_op) for op, hlo_op in names]
    return rows.assign(what=pd.Series(what, rows.index, dtype="str"))


def _paired(baseline: pd.DataFrame, candidate: pd.DataFrame) -> pd.DataFrame:
    """The bytes of buffers that hold the same in the same shape: columns `what`, `shape_before`, `shape_after`,
    `before`, `after`. Of shapes that only one side has, the largest on each belong together."""
    by = ["what", "shape"]
    ours, theirs = (rows.groupby(by)["size_bytes"].sum() for rows in (baseline, candidate))
    both = pd.concat([ours.rename("before"), theirs.rename("after")], axis=1).fillna(0.0).sort_index().reset_index()
    both = both.assign(shape_before=both["shape"].where(both["before"] > 0, ""))
    both = both.assign(shape_after=both["shape"].where(both["after"] > 0, "")).drop(columns="shape")
    gone, new = (
        both[both[other] == 0].sort_values(one, ascending=False).drop_duplicates("what")
        for one, other in (("before", "after"), ("after", "before"))
    )
    reshaped = gone[["what", "shape_before", "before"]].merge(new[["what", "shape_after", "after"]], on="what")
    is_in = both.index.isin([*gone.index, *new.index]) & both["what"].isin(reshaped["what"])
    return pd.concat([both[~is_in], reshaped], ignore_index=True)
