"""The columns of tables as pages, texts and files show them, and the keys of rows in a page's address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Literal

import numpy as np
import pandas as pd

from tfcompare import schema
from tfcompare.compare.diff import MATCHED, PER_RUN, SumsPer, change, outcome
from tfcompare.schema import SIDES, Column
from tfcompare.schema.columns import columns

HEADINGS = {"baseline": "Baseline", "candidate": "Candidate", "delta": "Change", "ratio": "Ratio"}
"""The label for the last part of a diff's column name."""

SHORT_LABELS = {"host_or_device": "Where", "data_type": "Type"}

OF_A_DIFF = {
    one.name: one
    for one in columns("""
        candidate key | Run | The candidate that the row is about.
        sums_of text | Sums of | What the row's sums are of: `all` hosts and devices; or each `device`, or each `host`,
            if the runs have other numbers of them.
        scope key | Name scope | The names of the ops up to their last `/`.
        status text | Status | `matched`, or on which side alone the row is: `added`, `removed`.
        match text | Match | How the row was paired: manually, by the same name, renamed (another number or spelling),
            by the same place in the program, as a fused op with what it was made of, or by a guess.
        constituents text | Constituents | The ops that a row matched as fused stands for, as `name:type`, in the order
            in which they start.
        interval_low level | Interval from | Lower end of the 95 % confidence interval of the ratio; empty where it was
            not tested.
        interval_high level | Interval to | Upper end of the 95 % confidence interval of the ratio; empty where it was
            not tested.
        verdict text | Verdict | Whether the change is significant; `added` and `removed`: only one run has the row. Not
            tested: too few steps, too little time, or a pair that is not sure to be one op.
        evidence text | Evidence | `replicates`: enough captures of each program; `single`: fewer, so that a change is
            only likely.
        rank level Int64 | Rank | Place among the run's ops: device before host, by self time.
        avg_time_us mean µs | Average time | Total time ÷ occurrences.
        avg_self_time_us mean µs | Average self time | Self time ÷ occurrences.
        self_share level share | Share | Share of the self time on host, or on device; IDLE counts only where it is
            shown.
        input_self_share level share | Self time, share | Share of the self time of all input ops.
        input_total_share level share | Total time, share | Total time as a share of the self time of all input ops:
            with what runs within, so they add up to more.
        time_rank level Int64 | Rank | Place in the run by total time, 1 is the longest.
        time_share level share | Share | Share of the run's kernel time.
        cumulative_time_share level share | Cumulative share | Share of the run's kernel time in this row and those that
            take longer.
        execution_time_us mean µs | Time per execution | Self time by executions of the program; a program's rows add up
            to its time per execution.
        runs_per_execution mean | Runs per execution | How often it ran in one execution of its program.
        count_ratio level | How often | How often it ran, candidate ÷ baseline; missing where only one run has the row.
        work_ratio level | Work each | Work of one occurrence, candidate ÷ baseline: FLOPs where it computes in either
            run, else bytes read and written; missing where that is unknown, or none.
        time_per_work_ratio level | Time per work | Time for each FLOP or byte, candidate ÷ baseline, so that
            how often × work each × time per work is the ratio of the time; missing where the row's time is not that of
            its work.
        time_each_ratio level | Time each | Time of one occurrence, candidate ÷ baseline.
        work_in text | Work in | What work is counted in: `FLOPs` or `bytes`; empty where it is unknown.
        work_rate level | Rate of work | FLOPs or bytes, as `work_in` says, by the row's time, per second.
        excess_us mean µs | Could still save | The part of the time per execution above the least that the device's peak
            FLOP rate and bandwidth allow; empty where costs or peaks are unknown.
        peak_size_bytes level bytes | At the peak | The buffer's size if it is live when its memory space is fullest,
            else 0; they add up to the peak.
        cumulative_share level share | Cumulative share | Share of this op and all above it.
        array_shape text | Shape | Dimensions of the op's result on both sides, or of its first operand that differs if
            the result does not, with types where these differ; once if equal; empty where the profile names none.
    """)
}
"""Columns that a diff, or TensorBoard's order, adds to the columns of a table."""

TEXT_LETTERS = 20
NAME_LETTERS = 28
_LETTERS = {"array_shape": 32}  # of an image before and after
NAMES = ("op_name", "kernel_name", "scope")
MOST_DECIMALS, MOST_DECIMALS_OF_COUNTS = 4, 2
SCOPE_MARK = " ‹ "
FEWEST_LETTERS = 12
"""Of a shortened name: with fewer, the op and its scope would say nothing."""

Format = Literal["text", "flag", "number", "change", "ratio", "factor", "share", "bar"]
"""`ratio` is written `0.0148×`, `factor`, of what a ratio is the product of, `1/512`."""


@dataclass(frozen=True)
class Shown:
    """How a column is shown: `heading` is above adjacent columns that share it, `label` above the column itself.

    `is_judged`: the row's verdict is about the column's metric; `is_figure`: its numbers are those of a
    side, or compare both; `is_name`: its texts are names with scopes; `letters`: how many letters of a text its column
    has room for, unless it is the first.
    """

    name: str
    heading: str
    label: str
    help: str
    format: Format
    unit: str = ""
    is_judged: bool = False
    is_figure: bool = False
    is_name: bool = False
    letters: int = TEXT_LETTERS

    @property
    def is_time(self) -> bool:
        """Whether it is shown in a time unit."""
        return self.unit == "µs"

    @property
    def is_cost(self) -> bool:
        """Whether lower values are better."""
        return self.unit in ("µs", "bytes")


def shown(name: str, table: schema.Table, sums_per: SumsPer = PER_RUN) -> Shown:
    """How the column `name` of a diff of `table`, or of `table` itself, is shown; raises `Unknown`."""
    base, role = _parts(name, table)
    column = OF_A_DIFF.get(base) or table.column(base)
    per = sums_per.of(column) if role else ""
    unit = "" if column.unit == "share" else column.unit
    unit = f"{unit}/{per}" if unit and per else f"per {per}" if per else unit
    name_and_unit = f"{column.label} ({unit})" if unit else column.label
    if not column.is_number and column.kind not in ("flag", "time_point"):
        label = SHORT_LABELS.get(name, column.label)
        if role == "candidate" or (role and column.kind != "key"):
            label = f"{label}, {role}"
        if column.dtype != "str":
            return Shown(name, "", f"{label} ({unit})" if unit else label, column.meaning, "number", column.unit)
        if base in NAMES:
            meaning = f"{column.meaning} {INNERMOST_FIRST}"
            return Shown(name, "", label, meaning, "text", is_name=True, letters=NAME_LETTERS)
        return Shown(name, "", label, column.meaning, "text", letters=_LETTERS.get(name, TEXT_LETTERS))
    if not role:
        return Shown(name, "", name_and_unit, column.meaning, _format(column, role), column.unit)
    is_judged = base == table.headline
    format_ = _format(column, role)
    meaning = f"{column.meaning} {_per_step(table)}" if per == "step" else column.meaning
    return Shown(name, name_and_unit, HEADINGS[role], meaning, format_, column.unit, is_judged, is_figure=True)


def _per_step(table: schema.Table) -> str:
    """Which steps a sum per step is about."""
    if table.name in schema.IN_STEPS:
        return "Mean over the included steps."
    return "Total of the profile ÷ all its steps, with what ran between steps and in excluded ones."


INNERMOST_FIRST = "Names begin with their last part; a double click on a cell shows the name as it is in the profile."


def innermost_first(name: str, letters: int | None = None) -> str:
    """`MatMul ‹ dense ‹ model` for `model/dense/MatMul`, so that a cell of any width shows what is most specific.

    Where there is room for so many `letters` only, the op leaves some to its scope: `conv_g… ‹ tr…decoder_outer`.
    """
    separator = "::" if name.startswith("Iterator::") else "/"
    if separator not in name or " " in name:
        return name
    whole = SCOPE_MARK.join(reversed(name.split(separator)))
    first, scope = whole.split(SCOPE_MARK)[:2]
    scope = scope.rstrip(")")  # of transformations of JAX
    room = len(whole) if letters is None else max(letters - len(SCOPE_MARK), FEWEST_LETTERS)
    if len(first) + len(scope) <= room or not scope:
        return whole
    most = max(room - len(scope), room // 3)
    op = first if len(first) <= most else f"{first[: most - 1]}…"
    rest = whole[len(first) + len(SCOPE_MARK) :]
    left = room - len(op)
    return f"{op}{SCOPE_MARK}{rest if len(scope) <= left else f'{scope[:2]}…{scope[3 - left :]}'}"


def distinct_names(names: Sequence[str], letters: int) -> list[str]:
    """The names as of `innermost_first`, but those that would read alike show the scope in which most of them differ,
    from where it differs, and the ends of their ops if these differ: `con… ‹ tr…decode` beside `con… ‹ tr…encode`."""
    labels = [innermost_first(name, letters) for name in names]
    alike: dict[str, list[int]] = {}
    for at, label in enumerate(labels):
        if SCOPE_MARK in label:
            alike.setdefault(label[:letters], []).append(at)
    for same in alike.values():
        if len(same) == 1:
            continue
        parts = [innermost_first(names[at]).split(SCOPE_MARK) for at in same]
        ops, *scopes = zip(*(each[: min(map(len, parts))] for each in parts), strict=True)
        most_distinct = max(scopes, key=lambda level: len(set(level)))
        differ = (at for at, letter in enumerate(zip(*most_distinct, strict=False)) if len(set(letter)) > 1)
        begin = next(differ, 0)
        for at, op, scope in zip(same, ops, most_distinct, strict=True):
            labels[at] = _op_in_scope(op, scope.rstrip(")"), letters, begin, from_end=len(set(ops)) > 1)
    return labels


def _op_in_scope(op: str, scope: str, letters: int, begin: int, *, from_end: bool) -> str:
    """The end or the beginning of the op's name, and two letters of the scope's with what begins at `begin`."""
    room = max(letters - len(SCOPE_MARK), FEWEST_LETTERS)
    most = max(room - len(scope), room // (3 if from_end else 4))  # an op that tells nothing apart needs less
    if len(op) > most:
        op = f"…{op[1 - most :]}" if from_end else f"{op[: most - 1]}…"
    room -= len(op)
    if len(scope) > room:
        begin = min(begin, len(scope) - room + 3)
        scope = f"{scope[:2]}…{scope[begin:][: room - 3]}" if begin > 3 else f"{scope[: room - 1]}…"
    return f"{op}{SCOPE_MARK}{scope}"


def shown_alone(name: str, table: schema.Table, sums_per: SumsPer = PER_RUN) -> Shown:
    """How the baseline's column of a diff is shown where one run is shown alone: as in `table` itself."""
    column = shown(name, table, sums_per)
    label = column.heading or column.label.removesuffix(", baseline")
    return replace(column, heading="", label=label)


def single_run_columns(names: Sequence[str]) -> list[str]:
    """The columns of a diff that say something about its baseline alone."""
    comparing = ("_candidate", "_delta", "_ratio")
    return [name for name in names if not name.endswith(comparing) and name not in _OF_TWO_RUNS]


_OF_TWO_RUNS = ("candidate", "status", "match", "interval_low", "interval_high", "verdict", "evidence", "work_in")


def _parts(name: str, table: schema.Table) -> tuple[str, str]:
    """(the base column's name; `baseline`, `candidate`, `delta`, `ratio` or nothing)."""
    known = {*OF_A_DIFF, *table.column_names}
    if name in known:
        return name, ""
    base, _, role = name.rpartition("_")
    return (base, role) if role in HEADINGS else (name, "")


def _format(column: Column, role: str) -> Format:
    if column.kind == "flag":
        return "flag"
    if role == "ratio":
        return "ratio"
    if column.name.endswith("_ratio"):
        return "factor"
    if column.unit == "share":
        return "share"
    return "change" if role == "delta" else "number"


MATCH_WORDS = {
    "by hand": "manual",
    "exact": "same name",
    "canonical": "renamed",
    "structural": "same place",
    "fused": "fused",
    "probable": "guess",
    "position": "same position",
}
"""The text for how a row was matched."""

MATCH_MEANINGS = {
    "by hand": "paired by you",
    "exact": "the same name in both runs",
    "canonical": "the same name except for what a framework adds, such as a number",
    "structural": "another name, but the same contents at the same place in the program",
    "fused": "one side has fused these ops into one, so they are compared together",
    "probable": "the most likely counterpart by name, type and time",
    "position": "by its position in the order",
}

MATCH_MARKS = {"probable": "≈", "by hand": "✎"}
"""The mark before the name of a row that was matched this way."""


def marked_rows(page: pd.DataFrame) -> dict[str, pd.Index]:
    """The marked rows, by how they were matched."""
    if "match" not in page:
        return {}
    rows = {match: page.index[page["match"] == match] for match in MATCH_MARKS}
    return {match: found for match, found in rows.items() if len(found)}


def changes_of(frame: pd.DataFrame, column: str) -> pd.Series:
    """A column of a diff as it is shown.

    A row that only one side has changed by its whole value. One that both have changed by an unknown value where a side
    did not record it.
    """
    sides = [f"{column.removesuffix('_delta')}_{side}" for side in SIDES]
    if not column.endswith("_delta") or not set(sides) <= set(frame.columns):
        return frame[column]
    ours, theirs = (frame[side] for side in sides)
    is_known = ours.notna() | theirs.notna()
    if "status" in frame:
        is_known &= (frame["status"] != MATCHED) | (ours.notna() & theirs.notna())
    return change(ours, theirs).where(is_known)


def in_words(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of a diff for a file or a query, with what became of each row in the words of pages as its verdict."""
    if not {"status", "verdict", "evidence"} <= set(rows.columns):
        return rows
    of_rows = zip(rows["status"], rows["verdict"], rows["evidence"], strict=True)
    return rows.assign(verdict=pd.Series([outcome(*row) for row in of_rows], rows.index, dtype="str"))


def for_file(rows: pd.DataFrame, table: schema.Table, sums_per: SumsPer) -> pd.DataFrame:
    """Rows of a diff for a file or a query: `in_words`, and sums named by what they are per."""
    return in_words(rows).rename(columns=sums_per.names(table))


def as_shown(rows: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Columns of a diff for a file, in the words of the screen: changes, what became of a row, how it was matched.

    As in a table, a row of one side is `added` or `removed` and has changed by its whole value.
    """
    rows = in_words(rows)
    found = pd.DataFrame({name: changes_of(rows, name) for name in names})
    if "match" in names:
        found["match"] = rows["match"].map(lambda word: MATCH_WORDS.get(word, word), na_action="ignore")
    return found


def decimals(values: pd.DataFrame) -> int:
    """Common number of decimals for some numbers: the largest gets about six significant digits."""
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    numbers = numbers[np.isfinite(numbers)]
    if not numbers.size or bool((numbers == np.round(numbers)).all()):
        return 0
    return int(np.clip(5 - np.floor(np.log10(max(float(np.abs(numbers).max()), 1e-3))), 1, MOST_DECIMALS))


def row_keys(rows: pd.DataFrame, names: Sequence[str]) -> pd.Series:
    """A key for each row, short enough for a URL; rows that differ in the columns `names` have different keys."""
    cells = zip(*(rows[name].astype("str").fillna("") for name in names), strict=True)
    digests = [blake2b("\n".join(row).encode(), digest_size=6).hexdigest() for row in cells]
    return pd.Series(digests, rows.index, dtype="str")
