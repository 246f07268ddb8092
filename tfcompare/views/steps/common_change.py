"""What the ops that did not change have in common: another speed of the machine, rather than of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.schema import DEVICE, HOST
from tfcompare.units import format_ratio
from tfcompare.views.xla.program import are_identical

if TYPE_CHECKING:
    from tfcompare.compare.controls import Controls
    from tfcompare.compare.pair import Pair


def common_change(pair: Pair) -> str:
    """That what did not change takes longer, or less, in the candidate, as Markdown; empty where that is not clear.

    Where the programs are identical, also the time of devices without that factor. A factor of hosts is never taken
    out: threads of the program contend there, too.
    """
    clear = {place: one for place, one in pair.controls.items() if one.is_clear}
    if not clear:
        return ""
    is_on_host_alone = set(pair.controls) == {HOST}
    takes = " and ".join(_takes(one, "" if is_on_host_alone else place) for place, one in clear.items())
    if len(clear) > 1:
        why = "a busier or slower machine"
    elif DEVICE in clear:
        why = "a slower or busier device, another clock"
    else:
        why = "a busier or slower machine, other threads of the program"
    text = f"What did not change takes {takes} in {pair.marked[1]}: {why}, or a setting that touches everything."
    if DEVICE in clear and are_identical(pair):
        net = format_ratio(clear[DEVICE].time_ratio / clear[DEVICE].ratio)
        text = f"{text} The programs are identical; net of this, all ops on devices together take {net} as long."
    return text


def _takes(controls: Controls, place: str) -> str:
    """`**1.6×** as long on devices (1.5×–1.7× in these captures)`"""
    where = {HOST: " on hosts", DEVICE: " on devices"}.get(place, "")
    low, high = format_ratio(controls.low), format_ratio(controls.high)
    return f"**{format_ratio(controls.ratio)}** as long{where} ({low}–{high} in these captures)"
