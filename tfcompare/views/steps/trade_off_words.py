"""What the candidate saves and what that costs, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tfcompare.compare.steps.iterations import ALIKE
from tfcompare.compare.steps.trade_off import STEP_TIME
from tfcompare.text import as_code, some_of
from tfcompare.units import format_delta, format_percent_change, format_value, ratio_of

if TYPE_CHECKING:
    from tfcompare.compare.pair import Pair
    from tfcompare.compare.steps.trade_off import Change, Recomputed, TradeOff

_MOST_SCOPES = 3


def trade_off_sentence(pair: Pair, found: TradeOff, candidate: str, *, timed: str | None = None) -> str:
    """`Recomputing saves 302 MB of XLA's buffers (−43.4 %) for +417 µs per step of train_step (+18.5 %); …`

    In Markdown, as the name of the candidate is. `timed` is the kind of step whose times the sentence before has, empty
    for all: then `for +417 µs per step`.
    """
    per = "per step" if pair.iterations == ALIKE else "per iteration"
    of_kind = f"{per} of {as_code(found.kind)}" if found.kind and found.kind != timed else per
    subject, again = candidate, ""
    if found.recomputed is not None:
        again = f"; {_computed_again(*found.recomputed)}"
        if found.is_by_recomputing:
            subject = _recomputing(*found.recomputed)
    known = STEP_TIME if found.kind == timed else ""
    saved = _amount(found.saved, format_value(-found.saved.delta, found.saved.unit), of_kind, known)
    cost = _amount(found.cost, format_delta(found.cost.delta, found.cost.unit), of_kind, known)
    return f"{subject} saves {saved} for {cost}{again}."


def _amount(change: Change, much: str, per: str, known: str) -> str:
    """`+417 µs per step of train_step (+18.5 %)`, `302 MB of XLA's buffers (−43.4 %)`, without the percentage of what
    is `known`."""
    of = "" if change.measured == STEP_TIME else f"of {change.measured}"
    what = " ".join(filter(None, [much, of, per if change.is_time else ""]))
    if change.measured == known:
        return what
    return f"{what} ({format_percent_change(ratio_of(change.baseline, change.candidate))})"


def _recomputing(baseline: Recomputed, candidate: Recomputed) -> str:
    if candidate.count > baseline.count:
        return "Recomputing more" if baseline.count else "Recomputing"
    return "Recomputing less" if candidate.count else "Not recomputing"


def _computed_again(baseline: Recomputed, candidate: Recomputed) -> str:
    """`26 instructions of attention and mlp are computed again`, or are not any longer."""
    more = candidate.count > baseline.count
    side, count = (candidate if more else baseline), abs(candidate.count - baseline.count)
    names = [as_code(scope) for scope in side.scopes]
    listed = " and ".join(names) if len(names) < _MOST_SCOPES else some_of(names, _MOST_SCOPES)
    beside = " more" if more and baseline.count else ""
    what = f"{count:,}{beside} instruction{'' if count == 1 else 's'}{f' of {listed}' if listed else ''}"
    return f"{what} {'is' if count == 1 else 'are'} {'' if more else 'no longer '}computed again"
