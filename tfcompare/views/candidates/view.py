"""All candidates of a comparison: ranked, over time, and op by op."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC
from functools import partial
from typing import Literal

import pandas as pd

from tfcompare import schema
from tfcompare.compare.pair import Pair
from tfcompare.compare.side import letter
from tfcompare.compare.stats.estimates import STEP_TIME
from tfcompare.compare.stats.verdict import IDENTICAL
from tfcompare.text import as_code, as_markdown, capitalized
from tfcompare.views import chart_style as style
from tfcompare.views.blocks import Block, Chart, Section, Table, Text
from tfcompare.views.candidates import charts
from tfcompare.views.candidates import figures as many_runs
from tfcompare.views.candidates.figures import BASELINE, By
from tfcompare.views.columns import NAMES, Shown
from tfcompare.views.options import option
from tfcompare.views.steps.headline import headline, how_to_mark_steps
from tfcompare.views.verdict_marks import text_of
from tfcompare.views.view import View

TABLES = {
    "op_stats": "ops",
    "kernel_stats": "kernels",
    "hlo_ops": "XLA instructions",
    "memory_summary": "peak memory",
    "memory_peak": "allocations at the peak",
    "input_pipeline": "input ops",
    "copies": "copies",
    "compilations": "compilations",
}
"""What a table with a column for each run can be about."""
GROUPINGS: dict[By, str] = {"op_name": "op", "op_type": "op type"}
MORE_OF_ALL = "More of all runs"
"""Apart from what unfolds above it on the page of the overview."""
REFERENCE = "● baseline"
"""Shown for the baseline in place of a verdict."""
_RATIO = "Of the step times, as is the interval; no interval where it was not tested."
_ASCII_UNITS: dict[str, Literal["s", "ms", "us"]] = {"s": "s", "ms": "ms", "µs": "us"}


@dataclass(frozen=True)
class Options:
    """What the changes are shown by, and the table with a column for each run."""

    changes_by: By = option("op_name", "Group by", GROUPINGS)
    beside: str = option("op_stats", "Table", lambda pair, _options: _tables(pair), is_list=True)


def blocks(pair: Pair, options: Options) -> Iterator[Block]:
    """The runs, fastest first; their step times over time, and the ops that changed."""
    yield from ranking(pair)
    yield from over_time(pair, options)


def over_time(pair: Pair, options: Options) -> Iterator[Block]:
    """What unfolds: step times of all runs, and the ops that changed, in the order of the captures; a table with all
    runs."""
    yield Section(MORE_OF_ALL, partial(_more, pair, options))


def _more(pair: Pair, options: Options) -> Iterator[Block]:
    yield Section("All runs", partial(_step_times, pair), is_open=True)
    yield Section("Changes of all runs", partial(_changes, pair, options), True, ["changes_by"])
    yield Section("All runs beside each other", partial(_beside, pair, options), True, ["beside"])


def ranking(pair: Pair) -> Iterator[Block]:
    """Which run is the fastest, whether it is for certain, and the table of runs, fastest first."""
    if sentence := pair.cached("fastest", partial(_fastest, pair)):
        yield Text(sentence, "headline")
    runs = _runs(pair)
    scale = style.time_scale(runs["step_time_us_mean"])
    step_time = f"step_time_{_ASCII_UNITS[scale.unit]}"
    rows = many_runs.fastest_first(runs)
    times = {f"{step_time}_{of}": scale.of(rows[f"step_time_us_{of}"]) for of in ("mean", "median")}
    words = zip(*(rows[name] for name in ("role", "verdict", "evidence", "caveat")), strict=True)
    starts = zip(rows["start_time"], rows["start_time_source"], strict=True)
    recorded = [
        f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S}{'' if source == 'profile' else ' *'}" for when, source in starts
    ]
    rows = rows.assign(**times, verdict_text=[_verdict_text(*row) for row in words], start_time=recorded)
    columns = {one.name: one for one in _columns(step_time, scale.unit) if rows[one.name].notna().any()}
    every = partial(many_runs.fastest_first, runs)
    title, shown = "All runs, fastest first", list(columns)
    yield Table(schema.OP_STATS, title, rows, shown, everything=every, address="runs_", others=columns, file="all_runs")
    candidates = runs[runs["role"] != BASELINE]
    for caveat, of_caveat in candidates[candidates["caveat"] != ""].groupby("caveat", sort=False):
        of_all = len(of_caveat) == len(candidates)
        names = "all candidates" if of_all else ", ".join(as_code(name) for name in of_caveat["name"])
        yield Text(f"\\* {names}: {as_markdown(caveat)}.", "quiet")


def _fastest(pair: Pair) -> str:
    """`C` is the fastest of 4 runs: it is 1.5× faster than `B` (1.1×–2.2×, one capture each): 7.13 ms vs 10.9 ms per
    step.; in Markdown. Empty where fewer than two runs have steps."""
    found = many_runs.fastest_and_next(pair.among)
    if found is None:
        return ""
    runs = pair.among.runs
    called = (letter(runs.index(found.baseline)), letter(runs.index(found.candidate)))
    names = found.names if pair.by_name else called
    verdict = found.headline_verdict
    first = f"{as_code(names[1])}{' (the baseline)' if found.candidate is pair.baseline else ''}"
    if verdict == IDENTICAL:
        return f"{first} and {as_code(names[0])}, the same capture, have the shortest step of {len(runs):,} runs."
    if found.are_unrelated:
        return f"{first} has the shortest step of {len(runs):,} runs, but {as_code(names[0])} is another program."
    change = headline(found, names)
    if change.predicate and not verdict.caveat:
        return f"{first} is the fastest of {len(runs):,} runs: it {change.predicate}."
    but = f" But {as_markdown(verdict.caveat)}." if verdict.caveat else ""
    return f"{first} has the shortest step of {len(runs):,} runs; {change.clause}.{but}"


def _runs(pair: Pair) -> pd.DataFrame:
    """The table of runs, which go by their letters and names, as everywhere; or by their names alone."""
    runs = pair.among.cached("runs", partial(many_runs.runs_table, pair.among))
    return runs if pair.by_name else runs.assign(name=[f"{letter(i)} · {name}" for i, name in enumerate(runs["name"])])


def _verdict_text(role: str, verdict: str, evidence: str, caveat: str) -> str:
    """The verdict with its symbol; no text may begin with `=`, which a spreadsheet would execute."""
    if role == BASELINE:
        return REFERENCE
    text = text_of(verdict, evidence).replace("=", "\u2009=")
    return f"{text} *" if caveat else text


def _columns(step_time: str, unit: str) -> list[Shown]:
    change = "Step time, candidate ÷ baseline"
    largest = "The largest peak of any memory within the profile."
    less = f"{largest} Less the baseline's."
    differs = "Whether the step time differs from the baseline's significantly. * See below."
    recorded = "When the profile began. * No time in the profile: its folder's."
    return [
        Shown("name", "", "Run", "The run; a double click shows the whole name.", "text"),
        Shown("verdict_text", "", "Verdict", differs, "text"),
        Shown(f"{step_time}_mean", "Step time", f"Mean ({unit})", STEP_TIME, "number", unit),
        Shown(f"{step_time}_median", "Step time", f"Median ({unit})", "Median of the run's own steps.", "number", unit),
        Shown("ratio", change, "Ratio", _RATIO, "ratio"),
        Shown("interval_low", change, "At least", "Lower end of the 95 % confidence interval of the ratio.", "ratio"),
        Shown("interval_high", change, "At most", "Upper end of the 95 % confidence interval of the ratio.", "ratio"),
        Shown("peak_bytes", "Peak memory (bytes)", "Peak", largest, "number", "bytes"),
        Shown("peak_bytes_delta", "Peak memory (bytes)", "Change", less, "change", "bytes"),
        Shown("input_share", "Input", "Share", "Share of the step time spent waiting for input.", "share"),
        Shown("start_time", "", "Recorded (UTC)", recorded, "text"),
    ]


def _step_times(pair: Pair) -> Iterator[Block]:
    """The step time of the runs in chronological order."""
    runs = _runs(pair)
    timed = runs["step_time_us_mean"].notna()
    if not timed.any():
        how = capitalized(how_to_mark_steps(run.info for run in pair.among.runs))
        yield Text(f"No step times to show: none of these runs marks its steps. {how}.", "notice")
        return
    yield Chart("all_step_times", lambda: charts.step_times(many_runs.in_time_order(runs[timed])))
    if not timed.all():
        others = ", ".join(map(as_code, runs.loc[~timed, "name"]))
        yield Text(f"Not drawn, since they mark no steps: {others}.", "quiet")


def _changes(pair: Pair, options: Options) -> Iterator[Block]:
    """The ops with the largest change in any run, shown for all runs."""
    by, runs, among = options.changes_by, _runs(pair), pair.among
    cells = among.cached(("changes by run", by), lambda: many_runs.changes_by_run(among.diffs("op_stats"), by))
    if cells.empty:
        yield Text("No op's self time differs between the baseline and any of these runs.", "notice")
        return
    candidates = many_runs.in_time_order(runs[runs["role"] != BASELINE])
    names = dict(zip(candidates["run"], candidates["name"], strict=True))
    yield Chart("change_map", lambda: charts.change_map(cells, names, per=pair.per_what), on=by)


def _tables(pair: Pair) -> dict[str, str]:
    """The tables that any of the runs has rows of, by their names."""
    runs = pair.among.runs
    have = (name for name in TABLES if any(len(run.table(name, host=pair.host_of(run))) for run in runs))
    return {name: TABLES[name] for name in have} or {"op_stats": TABLES["op_stats"]}


def _beside(pair: Pair, options: Options) -> Iterator[Block]:
    """A table's figures in all runs, a column for each."""
    table = schema.table(options.beside)
    rows = pair.among.cached(("beside", table.name), partial(many_runs.side_by_side, pair.among, table.name))
    keys = [key for key in table.keys if rows[key].nunique() > 1] or [table.keys[-1]]
    headline = table.column(str(table.headline))
    per = f"/{pair.per_what}" if headline.kind == "sum" and pair.per != "run" else ""
    label = f"{headline.label} ({headline.unit}{per})"
    figures = []
    for position, run in enumerate(pair.among.runs):
        of_run = run.name if pair.by_name else f"{letter(position)} · {run.name}"
        figures.append(Shown(f"value_{position}", of_run, label, headline.meaning, "number", headline.unit))
        if position:
            figures.append(Shown(f"ratio_{position}", of_run, "Ratio", "Candidate ÷ baseline.", "ratio"))
    names = sorted(keys, key=lambda key: key not in NAMES)
    shown, others = [*names, *(one.name for one in figures)], {one.name: one for one in figures}
    title, file = TABLES[table.name].capitalize(), f"{table.name}_of_all_runs"
    found = Table(table, title, rows, shown, others=others, address="beside_", file=file, everything=lambda: rows)
    yield replace(found, nothing="None of these runs has any.")


def _why_not(pair: Pair) -> str:
    several = len(pair.among.candidates) >= many_runs.FEWEST_CANDIDATES
    return "" if several else "There is only one candidate: the overview says all about it."


VIEW = View("candidates", "All candidates", blocks, why_not=_why_not, options=Options, is_of_all=True)
OVER_TIME = View("over_time", "All candidates", over_time, why_not=_why_not, options=Options)
"""What the page of the overview shows last."""
