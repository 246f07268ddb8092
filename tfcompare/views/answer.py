"""What is said first, on every surface: the verdict, key figures, why, what changed most, what to try next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from tfcompare.compare.diff import MATCHED
from tfcompare.compare.groups.aggregate import largest_changes
from tfcompare.compare.groups.fused_rows import row_name
from tfcompare.compare.memory_growth import growth_in
from tfcompare.compare.pair import Pair
from tfcompare.compare.stats.estimates import STEP_TIME
from tfcompare.compare.stats.verdict import SAME, UNCLEAR, UNTESTED
from tfcompare.compare.steps.step_time_verdict import step_time_us
from tfcompare.compare.table_diff import overlap
from tfcompare.schema import SIDES, SPARSE_CORE
from tfcompare.text import as_code, as_markdown, capitalized
from tfcompare.units import MISSING, format_bytes, format_delta, format_percent, format_ratio, format_time_us, ratio_of
from tfcompare.views import links
from tfcompare.views.advice import Advice, Findings, advise_on, facts_of
from tfcompare.views.advice import Facts as AdviceFacts
from tfcompare.views.blocks import Block, Chart, Facts, Finding, Items, Link, Opens, Section, Text, Verdict
from tfcompare.views.hosts.figures import slowest_host_in
from tfcompare.views.hosts.words import after_headline, host_sentence, verdict_sentence, who
from tfcompare.views.kernels.clock_change import clock_change
from tfcompare.views.key_figures import KeyFigure
from tfcompare.views.memory import peak as memory_peak
from tfcompare.views.ops import op
from tfcompare.views.ops.figures import main_side, top_ops
from tfcompare.views.ops.shapes import SHAPE, ops_with_shapes, shape_column
from tfcompare.views.pair_words import WHAT_TO_CHOOSE, not_compared, sums_per, time_in_common
from tfcompare.views.steps import source_lines, what_differs
from tfcompare.views.steps import words as step_kinds
from tfcompare.views.steps.attribution import attribution_of
from tfcompare.views.steps.attribution_words import PART_WORDS
from tfcompare.views.steps.certain import what_it_can_be, with_equal_programs
from tfcompare.views.steps.common_change import common_change
from tfcompare.views.steps.dashboard import PEAK_MEMORY, PLANNED_MEMORY, dashboard
from tfcompare.views.steps.figures import has_step_times, verdict_on_loop
from tfcompare.views.steps.headline import headline as step_headline
from tfcompare.views.steps.headline import work_of_steps
from tfcompare.views.steps.verdict_words import (
    device_time,
    doubt,
    evidence,
    headline_names_host,
    loop_clause,
    next_step,
    significant_findings,
    without_step_times,
)
from tfcompare.views.steps.words import between_steps_sentence, dispatch_sentence, lost_steps, slow_steps
from tfcompare.views.verdict_marks import colours_of_change, outcome_text, text_of, tone_of
from tfcompare.views.view import by_role, cards
from tfcompare.views.xla import changed_buffers
from tfcompare.views.xla import figures as unknown_costs

if TYPE_CHECKING:
    import pandas as pd

_SELF_TIME = (
    "Self time, summed over all threads and devices: it can be longer than the step. Select a row for the op's steps, "
    "kernels and memory."
)
TOP = 5
"""The number of ops that are shown first."""
ALL = 0.9995
"""A share from here on is written as 100 %."""


def answer(pair: Pair) -> Iterator[Block]:
    """What answers first, where there is room for no more."""
    yield from first(pair)
    yield from why(pair)
    yield from changes(pair, TOP)
    yield from below(pair)
    yield from source_lines.changes(pair)


def first(pair: Pair) -> Iterator[Block]:
    """The verdict, the slowest host, why, and the key figures."""
    yield verdict(pair)
    if pair.are_unrelated:
        yield from figures(pair)
        return
    found = attribution_of(pair)
    if found.waterfall is not None and not (pair.is_single or pair.is_identical):
        yield Text(found.sentence)
    if sentence := pair.cached("clock", partial(_clock, pair)):
        yield Text(sentence, more="kernel_stats")
    elif sentence := pair.cached("common change", partial(common_change, pair)):
        yield Text(sentence, more="op_stats")
    yield from figures(pair)
    yield from memory_growth(pair)


def _clock(pair: Pair) -> str:
    """That only what computes changed its speed, where that is so: then another clock is likelier than the program."""
    found = None if pair.is_identical else clock_change(pair)
    if found is None:
        return ""
    compute, memory = (f"{format_ratio(low)} to {format_ratio(high)}" for low, high in (found.compute, found.memory))
    return (
        f"This looks like another clock or power limit, not like the program: of {found.count:,} {found.of} that are "
        f"the same in both runs, and run as often, those that compute take **{compute}** as long in {pair.marked[1]}, "
        f"those that move memory {memory}."
    )


def below(pair: Pair) -> Iterator[Block]:
    """What explains the largest changes: hosts, kinds of steps, what differs besides times, and memory."""
    if not pair.are_unrelated:
        if of_hosts := host_sentence(pair, after_headline if headline_names_host(pair) else verdict_sentence):
            yield Text(of_hosts, more="hosts")
        yield from step_kinds.blocks(pair)
    yield from what_differs.section(pair)
    yield from memory(pair)
    yield from _unknown(pair)


def memory(pair: Pair) -> Iterator[Block]:
    """What changed the peak memory, if it changed; where allocations do not tell, the buffers that XLA planned."""
    if pair.are_unrelated:
        return
    if memory_peak.names_no_op(pair) and (planned := list(changed_buffers.blocks(pair))):
        yield from planned  # that it was allocated outside of ops would say less
    elif sentence := pair.cached("largest change of memory", partial(memory_peak.largest_change, pair)):
        yield Text(sentence, more="memory")


def memory_growth(pair: Pair) -> Iterator[Block]:
    """How much more memory a run holds after each step, if that grows for certain in either."""
    grown = [growth_in(pair, side) for side, _ in pair.shown]
    growing = [(name, one) for name, one in zip(pair.marked, grown, strict=False) if one is not None and one.is_growth]
    for name, one in growing:
        where = "" if pair.is_single else f" in {name}"
        ends = f"{format_bytes(one.low)} to {format_bytes(one.high)}"
        sentence = (
            f"Memory grows by **{format_bytes(one.bytes_per_step)} per step**{where} (95 % confidence interval {ends}, "
            f"over {one.steps} steps of {as_code(one.memory_id)})"
        )
        what = " ".join(filter(None, [as_code(one.op_name), one.shape and as_code(one.shape)]))
        live = f": {what} stays live" if one.op_name else ""
        yield Text(f"{sentence}{live}.", more="memory")
    if len(growing) == 1 and not pair.is_single:
        (other,) = (name for name in pair.marked if name != growing[0][0])
        yield Text(f"In {other}, no growth is certain.", look="quiet")


def figures(pair: Pair) -> Iterator[Block]:
    """The key figures; says so if there are none."""
    if found := _figures(pair):
        yield cards(pair, found)
    else:
        yield Text("The profile holds no steps and no ops. Capture it again while the program runs.", "notice")


def _figures(pair: Pair) -> list[KeyFigure]:
    return pair.cached("dashboard", lambda: dashboard(pair, attribution_of(pair).parts))


def _unknown(pair: Pair) -> Iterator[Block]:
    """Which costs are unknown, and whether the peak memory is; where it is only planned, the figure says so."""
    if unknown := unknown_costs.unknown_costs_sentence(pair):
        yield Text(unknown, look="quiet", more="xla")
    if not {PEAK_MEMORY, PLANNED_MEMORY}.intersection(one.label for one in _figures(pair)):
        yield Text("The peak memory is unknown: no allocations were recorded.", look="quiet")


def verdict(pair: Pair) -> Verdict:
    """Faster or slower, by how much, and how sure; of a run alone, its step time; nothing of different programs."""
    if pair.are_unrelated:
        return _of_different_programs(pair)
    shown = dict(zip(pair.called, [run for _, run in pair.shown], strict=False))
    if not all(map(has_step_times, shown.values())):
        sentence, how = without_step_times(pair, shown)
        return Verdict("", "neutral", sentence, [how], note=how)
    slow = [*lost_steps(shown), *slow_steps(pair, shown)]
    if pair.is_single:
        side = pair.sides[0]
        included = sum(len(side.steps(i).included) for i in side.positions)
        counted = f"{included:,} of {sum(one.info.step_count for one in side.runs):,} steps are included."
        time_us = step_time_us(side)
        name = f"{as_code(side.name)}: " if pair.by_name else ""
        step = Finding("step_time", "Step time", "µs", math.nan, time_us, more="timeline", is_alone=True)
        sentence = f"{name}{format_time_us(time_us)} per step"
        return Verdict("", "neutral", sentence, [counted, *slow], [step], STEP_TIME)
    found, of_all = pair.headline_verdict, pair.verdict
    can_be = what_it_can_be(pair, attribution_of(pair).moved_most)
    against, between, following = doubt(pair), between_steps_sentence(pair), next_step(pair)
    basis = [evidence(pair), against, device_time(pair), can_be, *slow, between, dispatch_sentence(pair), following]
    ours, theirs = map(step_time_us, pair.sides)
    interval = (of_all.low, of_all.high) if of_all.has_interval else None
    step = Finding("step_time", "Step time", "µs", ours, theirs, of_all.word, of_all.evidence, interval, "timeline")
    details = found.sensitivity.details() if found.sensitivity else ""
    badge = text_of(found.word, found.evidence), tone_of(found.word, found.evidence)
    note = against or following or can_be or between
    return Verdict(*badge, headline(pair), list(filter(None, basis)), [step], STEP_TIME, details, note)


def _of_different_programs(pair: Pair) -> Verdict:
    """That there is no verdict, and how much of the time is in ops of both."""
    ours, theirs = overlap(pair).shares
    found = Finding("different_programs", "Time in ops of both", "share", ours, theirs, UNTESTED, more="op_stats")
    note = f"{time_in_common(pair, pair.marked)} {WHAT_TO_CHOOSE}"
    return Verdict("", "neutral", headline(pair), [note], [found], note=note)


def headline(pair: Pair, *, whole: bool = False) -> str:
    """What the comparison's headline says first, with a trade-off, or all of it; where that is inconclusive, after what
    is certain."""
    found = step_headline(pair, pair.called)
    certain = pair.cached("certain", partial(_certain, pair))
    same = "same compiled programs" if with_equal_programs(pair) else ""
    first = f"{capitalized('; '.join(filter(None, [same, certain, found.clause])))}."
    return " ".join(filter(None, [first, found.trade_off, *(found.others if whole else ())]))


def _certain(pair: Pair) -> str:
    """The two most important things that are certain though the step time is inconclusive, or how the loops differ if
    the steps do not differ in the same way, in Markdown."""
    found = pair.headline_verdict
    if found.word == UNCLEAR:
        clauses = list(islice(significant_findings(pair, attribution_of(pair), pair.marked), 2))
    elif (found.word == SAME or found.is_claim) and verdict_on_loop(pair).word != found.word:
        clauses = list(filter(None, [loop_clause(pair, pair.marked)]))
    else:
        return ""
    return " and ".join(clauses)


def why(pair: Pair) -> Iterator[Block]:
    """The parts of the average step and how they changed; of a run alone, what its average step consists of."""
    found = attribution_of(pair)
    if found.waterfall is None:
        return
    if pair.is_single:
        yield Section("Where the time goes", [Chart("average_step", partial(average_step, pair), _parts(pair))], True)
        return
    if not found.waterfall.is_empty:
        narrow = partial(waterfall, pair, narrow=True)
        chart = Chart("waterfall", partial(waterfall, pair), _parts(pair), draw_narrow=narrow)
        yield Section("Why", [chart], True, help="Means over the included steps, as the step time is.")


def places(pair: Pair) -> Iterator[Link]:
    """A link to where each term of the budget is in the timeline, as far as that is known."""
    for cause in attribution_of(pair).causes:
        label = f"{format_delta(cause.delta_us, 'µs')} {PART_WORDS[cause.part]}"
        if cause.gap is not None:
            yield from links.to_gap(pair, cause.side, cause.gap, label)
        elif cause.op_name:
            yield links.to_op(cause.op_name, label)
        elif cause.around:
            yield links.to_text(cause.around, label)


def waterfall(pair: Pair, _options: Any = None, *, narrow: bool = False) -> Any:
    """The change of the average step by part, as a figure; None without one."""
    from tfcompare.views.steps.part_charts import step_waterfall

    found = attribution_of(pair).waterfall
    if pair.is_single or found is None or found.is_empty:
        return None
    return step_waterfall(found, pair.sides, colours_of_change(pair.verdict), narrow=narrow)


def average_step(pair: Pair, _options: Any = None) -> Any:
    """What the average step of a run alone consists of, as a figure; None without steps."""
    from tfcompare.views.steps.part_charts import step_breakdown

    if not pair.is_single or not has_step_times(pair.baseline):
        return None
    return step_breakdown(attribution_of(pair).parts, pair.sides[0])


def _parts(pair: Pair) -> Facts:
    """The parts of the average step, without those that are 0 on all sides; the last row is their sum."""
    parts = attribution_of(pair).parts
    sides = [parts[name].fillna(0.0) for name in by_role("mean_us", SIDES[: len(pair.shown)])]
    rows, findings = [], []
    for part, label, *times in zip(parts["part"], parts["label"], *sides, strict=True):
        if any(times):
            more = "input_pipeline" if part == "input_us" else "op_stats"
            rows.append((label, times))
            ours, theirs = (math.nan, *times)[-2:]  # of a run alone, its time is the candidate's
            findings.append(Finding(f"part:{part}", label, "µs", ours, theirs, more=more, is_alone=pair.is_single))
    rows.append(("Total", [float(times.sum()) for times in sides]))
    if pair.is_single:
        whole = rows[-1][1][0]
        cells = [[label, format_time_us(time), format_percent(time / whole)] for label, (time,) in rows]
        return Facts(["Average step", "Time", "Share"], cells, (1, 2), findings=findings)
    cells = []
    for label, (ours, theirs) in rows:
        change, ratio = format_delta(theirs - ours, "µs"), format_ratio(ratio_of(ours, theirs))
        cells.append([label, format_time_us(ours), format_time_us(theirs), change, ratio])
    return Facts(["Average step", *pair.headings, "Change", "Ratio"], cells, (1, 2, 3, 4), findings=findings)


def changes(pair: Pair, top: int) -> Iterator[Block]:
    """The `top` ops that changed most, 0 for all; of a run alone, its longest ops."""
    per = f"self time per {sums_per(pair)}"
    if pair.is_single:
        yield _longest(pair, per, top)
        return
    if pair.are_unrelated:
        return
    diff = ops_with_shapes(pair)
    every = largest_changes(diff, n=len(diff))
    if every.empty:
        yield Text(not_compared(pair) or "No op changed its self time.")
        return
    found = every.head(top or len(every))
    has_shapes = bool(shape_column(found))
    header = [f"Largest changes, {per}", "Change", *pair.headings, "Ratio", "95 % CI", "Verdict"]
    header += ["Shape"] if has_shapes else []
    cells = [[*_change(pair, row), *([_shape(row) or MISSING] if has_shapes else [])] for _, row in found.iterrows()]
    tones = list(map(tone_of, found["verdict"], found["evidence"]))
    findings = [_finding(pair, row) for _, row in found.iterrows()]
    note, opens = _note(pair, found, len(every)), _opens(pair, found)
    optional = (*((7,) if has_shapes else ()), 5, 2, 3)
    yield Facts(header, cells, range(1, 6), tones, optional, note, findings, opens, _SELF_TIME, "change")


def _opens(pair: Pair, rows: pd.DataFrame) -> Opens:
    """Opens the op of a finding on one of these rows by its id."""
    names = {_op_id(row): str(row["op_name"]) for _, row in rows.iterrows()}
    return Opens(lambda chosen: op.details_by_name(pair, names[chosen]) if chosen in names else None)


def _note(pair: Pair, found: pd.DataFrame, changed: int) -> str:
    """How many more ops changed than are shown, how much of the time is in ops of both runs, unless it is all, and why
    an interval without 1 can be inconclusive, where one is."""
    share = float(pair.coverage()["matched_share"].iloc[0])
    notes = [f"{changed - len(found):,} more ops changed."] if changed > len(found) else []
    if share < ALL:
        notes.append(f"Time with a counterpart in the other run: {format_percent(share)}.")
    is_apart = (found["interval_low"] > 1) | (found["interval_high"] < 1)
    if (is_apart & (found["verdict"] == UNCLEAR)).any():
        tested = int(pair.diff()["interval_low"].notna().sum())
        claim = f"a claim must hold among all {tested:,} ops that were tested, and with strays counted"
        notes.append(f"Inconclusive although the interval excludes 1×: {claim}.")
    return " ".join(notes)


def _longest(pair: Pair, per: str, top: int) -> Block:
    stats = pair.rows("op_stats", pair.sides[0])
    ops = top_ops(stats, top or len(stats))
    if ops.empty:
        return Text("The profile has no ops.")
    cells, findings = [], []
    for row in ops.to_dict("records"):
        name, time_us = str(row["op_name"]), row["self_time_us"]
        cells.append([name, str(row["op_type"]), format_time_us(time_us), format_percent(row["self_share"])])
        findings.append(Finding(_op_id(row), name, "µs", math.nan, time_us, more="op_stats", is_alone=True))
    header = [f"Longest ops on the {main_side(stats).lower()}, {per}", "Type", "Time", "Share"]
    return Facts(header, cells, (2, 3), (), (1,), "", findings, _opens(pair, ops), _SELF_TIME, "change")


def _op_id(row: Mapping[Any, Any] | pd.Series) -> str:
    return f"op:{row['host_or_device']}:{row['op_type']}:{row['op_name']}"


def _finding(pair: Pair, row: pd.Series) -> Finding:
    ours, theirs = (float(row[name]) for name in by_role("self_time_us"))
    low, high = pair.interval(row)
    name, word = (
        row_name(str(row["op_name"]), str(row["op_type"])),
        row["verdict" if row["status"] == MATCHED else "status"],
    )
    rests_on = row["evidence"] if isinstance(row["evidence"], str) else ""
    interval = None if math.isnan(low) else (low, high)
    key, more = _op_id(row), "op_stats"
    return Finding(key, name, "µs", ours, theirs, str(word), rests_on, interval, more, shape=_shape(row))


def _shape(row: pd.Series) -> str:
    return row[SHAPE] if isinstance(row[SHAPE], str) else ""


def _change(pair: Pair, row: pd.Series) -> list[str]:
    """The cells on an op that changed."""
    low, high = pair.interval(row)
    place = f" on {SPARSE_CORE}" if row["host_or_device"] == SPARSE_CORE else ""
    return [
        f"{row_name(str(row['op_name']), str(row['op_type']))}{place}",
        format_delta(float(row["self_time_us_change"]), "µs"),
        *(format_time_us(row[name]) for name in by_role("self_time_us")),
        format_ratio(row["self_time_us_ratio"]),
        MISSING if math.isnan(low) else f"{format_ratio(low)}–{format_ratio(high)}",
        outcome_text(row.to_dict()),
    ]


def side_facts(pair: Pair) -> list[AdviceFacts]:
    """What advice is based on, of baseline and candidate."""

    runs = [(side.run, side.host) for side in pair.sides]
    return [pair.among.cached(("facts", run.id, host), partial(facts_of, run, host)) for run, host in runs]


def findings(pair: Pair) -> Findings:
    """The advice on the candidate, computed once."""
    return pair.cached("findings", lambda: advise_on(*side_facts(pair)))


def advice(pair: Pair) -> Iterator[Block]:
    """What to try next, the piece that could save most first."""
    found = findings(pair)
    if found.caveat:
        yield Text(found.caveat)
    elif found.advice:
        if work := work_of_steps(pair.iterations, pair.marked):
            yield Text(f"{capitalized(work)}: here, times and counts per step are those of whole steps.", look="quiet")
        items, saves = [], []
        for one in found.advice:
            title, much = one.title, format_percent(one.saves)
            if one.saves > 0 and much not in title:
                title += f" · saves up to {much}"
            items.append((title, f"{one.text} {' '.join(_evidence(one, pair))} [More in the guide]({one.link})"))
            saves.append(Finding(f"advice:{one.rule}", one.title, "share", math.nan, one.saves, is_alone=True))
        yield Items(items, saves)
    else:
        slow = None if pair.host is not None else slowest_host_in(pair, pair.candidate)
        if slow is not None and slow.found.stands_out:
            yield Text(f"No known problem but {who(slow)}, for which the others wait.", more="hosts")
        else:
            yield Text("No known problem found.")


def also_worth_trying(pair: Pair) -> Iterator[Block]:
    """Suggestions for the candidate that the profile shows nothing for or against; nothing where there are none."""
    found = findings(pair).also_worth_trying
    if not found:
        return
    yield Text("These are no findings: the profile shows nothing for or against them.", look="quiet")
    yield Items([(one.title, f"{one.text} [More in the guide]({one.link})") for one in found])


def _evidence(one: Advice, pair: Pair) -> Iterator[str]:
    for number in one.evidence:
        label = as_markdown(f"{number.label}: {number.subject}" if number.subject else number.label)
        texts = (number.baseline_text, number.candidate_text)
        sides = [f"{name} {text}" for name, text in zip(pair.headings, texts, strict=False)]
        if not all(math.isnan(value) for value in (number.baseline, number.candidate)):
            yield f"{label}: {', '.join(sides) if len(sides) > 1 else number.baseline_text}."
