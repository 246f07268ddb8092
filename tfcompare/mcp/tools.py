"""The tools: each translates a call into a `Question`, and what answers it into JSON and sentences."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from os.path import commonpath
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import anyio.from_thread
from anyio.lowlevel import current_token
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, TextContent
from pydantic import Field

from tfcompare import schema, settings
from tfcompare.compare.cache import Cache
from tfcompare.compare.check.conditions import check, parse_condition
from tfcompare.compare.pairs import Pairs, pairs_of
from tfcompare.comparison import Comparison, compare
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.loading import Progress, Question, answer, cache_problems, read, runs_below
from tfcompare.mcp import answers
from tfcompare.mcp.answers import Call, fitted
from tfcompare.mcp.links import page_address
from tfcompare.mcp.places import Places, below
from tfcompare.query.asking import Limits, ask
from tfcompare.query.diff_tables import DiffTables
from tfcompare.query.tables import DIFF, RunTables
from tfcompare.render import as_json, check_output
from tfcompare.render import report as reports
from tfcompare.render.inline import plain, plain_with_code
from tfcompare.render.shown import Shown
from tfcompare.render.terminal import MOST_ROWS
from tfcompare.run import Run
from tfcompare.sources.allowed_roots import is_run_inside
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.logdir.runs import find_runs
from tfcompare.sources.replicates import names_of
from tfcompare.sources.step_choice import step_choice
from tfcompare.text import as_code
from tfcompare.views.caveats import caveats
from tfcompare.views.options import declared, options_with
from tfcompare.views.registry import view as view_of
from tfcompare.views.run_listing import listing
from tfcompare.views.steps.verdict_words import check_notes

RUNS_AT_ONCE = 20
"""Runs that one call lists, since each is read."""
MOST_CANDIDATES = 20
"""More of them are a series, which other commands compare."""
MOST_ROWS_OF_QUERY = 1_000
"""Rows that one call fetches: more than an answer has room for."""
_MOST_RESULT_BYTES = 4 << 20
MOST_CONDITIONS, _LONGEST_CONDITION = 40, 500
"""Of one check: each takes up to 50 ms, and an answer has room for about as many."""
_MOST_LOADED = 8
"""Comparisons and queried runs in memory, within the `cache_bytes` of the settings; the store reads others quickly."""
_SHOWN_OF_HEADLINE = ("baseline", "candidate", "delta", "ratio")
_SHOWN_OF_ROW = ("interval_low", "interval_high", "status", "match", "verdict", "evidence")

T = TypeVar("T")
Place = Annotated[str, Field(description="a run's `path`, or a folder of several captures of one program")]
Steps = Annotated[str | None, Field(description="only these steps, counted from 1, such as 5:25")]
Offset = Annotated[int, Field(ge=0, description="entries to leave out, as `left_out` says")]


class Loaded(Cache):
    """What was loaded last, with its runs and comparisons, of which as many stay as memory is allowed for."""

    def _is_full(self) -> bool:
        made = [one for one, _ in self._results.values()]
        runs = {id(run): run for one in made for run in one.runs}
        held = sum(run.memory_bytes for run in runs.values())
        held += sum(one.memory_bytes for one in made if isinstance(one, Pairs))
        return super()._is_full() or held > settings.from_environment().cache_bytes


class Tools:
    """The tools of a server for these places. `link` is the address of a dashboard that shows the same roots, if one
    does. Files are read by one call at a time."""

    def __init__(self, places: Places, link: str | None = None) -> None:
        self.places = places
        self.link = link
        self._loaded = Loaded(_MOST_LOADED)
        self._reading = threading.Lock()

    def find_runs(
        self,
        path: Annotated[str, Field(description="a folder, relative to the root or absolute; `.` is the root")],
        context: Context[Any, Any],
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, answers.FoundRuns]:
        """The profile runs at and below a folder, by time of capture: device, steps, step time, size and problems.

        Give `path` of a run to the other tools, or `captures_in` to use all captures of its program, which makes
        verdicts surer. Times are in UTC; the step time is the mean of the included steps.
        """
        every = find_runs(self.places.resolve(path))
        found = [run for run in every if is_run_inside(run, self.places.roots)]
        count = len(every) - len(found)
        notes = [f"Left out, since links lead to them outside of the roots: {count:,} of the runs."] if count else []
        here = found[offset : offset + RUNS_AT_ONCE]
        outcomes: dict[str, Run | TfcompareError] = {}
        with self._reading:
            progress = _progress(context)
            for run in (run for run in here if run.is_readable):
                try:
                    outcomes[run.id] = read(run, progress=progress)
                except TfcompareError as error:
                    outcomes[run.id] = error
        frame = listing(here, outcomes)
        columns = ("name", "state", "recorded", "device", "hosts", "steps", "size_bytes", "remarks", "tags")
        rows: list[dict[str, Any]] = as_json.jsonable(frame[[*columns, "step_time_ms_mean"]].to_dict("records"))
        programs = names_of(found)
        for run, row in zip(here, rows, strict=True):
            row["step_time_ms"] = row.pop("step_time_ms_mean")
            row["remarks"] = self.places.in_sentence(row["remarks"])
            row["path"] = self.places.as_typed(_shortest(run, found))
            alike = [one for one in found if programs[one.id] == programs[run.id]]
            row["captures_in"] = self.places.as_typed(together) if (together := _folder_of(alike, found)) else None

        def more(count: int) -> Call:
            return Call(tool="find_runs", arguments={"path": path, "offset": offset + count})

        beyond = len(found) - offset - len(here)
        return fitted({"notes": notes, "runs": rows}, answers.of_runs, offset=0, more=more, beyond=max(beyond, 0))

    def compare(
        self,
        baseline: Place,
        context: Context[Any, Any],
        candidates: Annotated[
            list[str] | None, Field(description="as baseline; none: the baseline is shown alone")
        ] = None,
        view: Annotated[str, Field(description="overview first, then what `more` names")] = "overview",
        options: Annotated[
            dict[str, bool | int | str] | None, Field(description="what can be chosen in the view: {'by': 'op_type'}")
        ] = None,
        per: Literal["step", "run", "device"] = "step",
        steps: Steps = None,
        host: Annotated[str | None, Field(description="only this host")] = None,
        step_kind: Annotated[str | None, Field(description="only steps of this kind, such as train")] = None,
        step_marker: Annotated[str | None, Field(description="the host event that begins each step")] = None,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, answers.Compared]:
        """What changed from a baseline to each candidate, as one view shows it; of a run alone, what it shows of it.

        The views: overview (is it slower, by how much, how sure is that, and why), op_stats, kernel_stats, memory,
        input_pipeline, tf_data, timeline, xla, hosts, candidates (several beside each other), op (one op; the option
        `op` is its name). `delta` is candidate − baseline, `ratio` candidate ÷ baseline. A verdict of `inconclusive`
        or `not tested` means that these runs cannot tell.
        """
        chosen = {"per": per if per != "step" else None, "steps": steps, "host": host}
        chosen |= {"step_kind": step_kind, "step_marker": step_marker}
        candidates = candidates or []
        given: dict[str, Any] = {"baseline": baseline, "candidates": candidates}
        given |= {name: one for name, one in chosen.items() if one is not None}
        choice = step_choice(step_marker, steps, kind=step_kind)
        question = self._question([baseline, *candidates], per=per, host=host, steps=choice)
        comparison, notes = self._comparison(question, context)
        shown = _shown(comparison, view, options or {})
        content = shown.content(as_json.Style(MOST_ROWS, more=str, text=plain_with_code))
        calls: dict[str, Call] = {}
        for number, one in enumerate(content["candidates"]):
            other = candidates[number : number + 1]
            one["blocks"] = [_for_agents(block, given, other, calls) for block in one["blocks"]]
        if len(comparison.candidates) > 1:
            lines = [plain_with_code(comparison.headline(run.id)) for run in comparison.candidates]
            content["blocks"] = [{"kind": "list", "items": [{"text": line, "more": ""} for line in lines]}]
        # What follows quotes profiles in many ways, so it is quoted as a whole.
        content["caveats"] = [as_code(plain(one)) for one in caveats(comparison)]
        content["notes"] = [as_code(self.places.in_sentence(note)) for note in notes]
        content["calls"] = {name: call.model_dump() for name, call in calls.items()}
        if self.link is not None:
            content["link"] = self._page(self.link, comparison, question, view, options or {})

        def more(count: int) -> Call:
            of_view = {"view": view, "options": options, "offset": count}
            return Call(tool="compare", arguments=given | {name: one for name, one in of_view.items() if one})

        values = as_json.values(shown.view.name, content)
        return fitted(values, answers.of_view, offset=offset, more=more)

    def table(
        self,
        baseline: Place,
        candidate: Place,
        name: Annotated[str, Field(description="a table with a diff, such as op_stats, kernel_stats, memory_summary")],
        context: Context[Any, Any],
        where: Annotated[str | None, Field(description="a condition in SQL, such as verdict = 'slower'")] = None,
        order: Annotated[str | None, Field(description="columns, such as self_time_us_per_step_delta DESC")] = None,
        limit: Annotated[int, Field(ge=1, le=MOST_ROWS_OF_QUERY)] = 20,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, answers.Rows]:
        """Rows of the diff of a table: the keys, the headline metric of both runs with delta and ratio, and verdicts.

        Rows come by the size of the change, largest first, unless `order` says otherwise. Times are µs, sizes bytes.
        `where` and `order` may name every column of the diff: `query` with DESCRIBE op_stats_diff lists them, and
        shows those that are left out here.
        """
        diffable = [one.name for one in schema.TABLES.values() if one.has_diff]
        if name not in diffable:
            raise Unknown("table with a diff", name, diffable)
        comparison, _ = self._comparison(self._question([baseline, candidate]), context)
        tables = RunTables.of(comparison.runs, DiffTables(comparison))
        columns = ", ".join(f'"{column}"' for column in _shown_columns(comparison, name))
        sql = f"SELECT {columns} FROM {name}{DIFF}"
        sql += f" WHERE ({where}\n)" if where else ""  # a comment in it ends with its line
        sql += f" ORDER BY {order}\n" if order else ""
        given: dict[str, Any] = {"baseline": baseline, "candidate": candidate, "name": name, "limit": limit}
        given |= {key: value for key, value in (("where", where), ("order", order)) if value}
        return _rows(sql, tables, Call(tool="table", arguments=given), offset, limit)

    def query(
        self,
        sql: Annotated[str, Field(description="one SELECT, DESCRIBE or SHOW TABLES in the dialect of DuckDB")],
        runs: Annotated[list[str], Field(description="paths of runs; the first is the baseline")],
        context: Context[Any, Any],
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, answers.Rows]:
        """Rows of a query over the tables of runs: each has the rows of all runs and a first column `run`.

        Of several runs there are also the diffs, such as op_stats_diff. SHOW TABLES lists the tables, DESCRIBE
        op_stats the columns. Times are µs, sizes bytes, unless a name says otherwise. Queries cannot read anything
        else, or write.
        """
        if not runs:
            raise TfcompareError("query takes at least one run in `runs`; find_runs lists them")
        question = self._question(runs)

        def make() -> tuple[RunTables, list[str]]:
            found, notes = runs_below(question, _progress(context))
            return RunTables.of(found, DiffTables(compare(*found)) if len(found) > 1 else None), notes

        tables, _ = self._load("query", question, make)
        return _rows(sql, tables, Call(tool="query", arguments={"sql": sql, "runs": runs}), offset, MOST_ROWS_OF_QUERY)

    def check(
        self,
        baseline: Place,
        candidate: Place,
        conditions: Annotated[
            list[str], Field(description="what must not happen, such as step_time>+5% or peak_memory>+10%")
        ],
        context: Context[Any, Any],
        strict: Annotated[bool, Field(description="an unclear condition fails as well")] = False,
        steps: Steps = None,
        step_kind: Annotated[str | None, Field(description="only steps of this kind, such as train")] = None,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, answers.Checked]:
        """Whether a change may go in: conditions on what must not happen, judged with confidence intervals.

        `outcome` is passed, failed, unclear, not judged, or no conditions (verdicts only). Passed says that nothing is
        shown to be worse, not that nothing is: `smallest_detectable_change` is what these captures could have shown.
        Unclear and not judged say that they cannot tell, and `reason` what to record.
        Metrics: step_time, step_time_median, step_time_p95, device_time, throughput, time_between_steps, op:PATTERN,
        kernel:PATTERN, input_latency (times); peak_memory, memory_growth, flops, kernel_launches,
        occurrences:PATTERN (exact); mfu, hbm_share, rate:PATTERN.
        """
        if len(conditions) > MOST_CONDITIONS or any(len(one) > _LONGEST_CONDITION for one in conditions):
            most = f"at most {MOST_CONDITIONS} conditions of up to {_LONGEST_CONDITION} letters"
            raise TfcompareError(f"one call checks {most}, and got {len(conditions):,}; ask for some of them")
        parsed = [parse_condition(text) for text in conditions]
        question = self._question([baseline, candidate], steps=step_choice(steps=steps, kind=step_kind))
        comparison, notes = self._comparison(question, context)
        findings = check(comparison, parsed)
        judgement = findings.judge(strict=strict)
        names = (comparison.baseline.name, comparison.candidates[0].name)
        names = names if names[0] != names[1] else (baseline, candidate)
        content = check_output.content(findings, names, judgement)
        del content["passed"]  # also of what is unclear, for scripts that ask for an exit status
        of_runs = [as_code(self.places.in_sentence(note)) for note in notes]
        content["notes"] = [*of_runs, *map(plain_with_code, check_notes(findings.pair))]
        text = "\n".join(map(plain_with_code, check_output.as_markdown(findings, names, judgement).splitlines()))
        given = {"baseline": baseline, "candidate": candidate, "conditions": conditions, "strict": strict}
        given |= {"steps": steps, "step_kind": step_kind}

        def more(count: int) -> Call:
            return Call(tool="check", arguments={k: v for k, v in given.items() if v} | {"offset": count})

        # Later answers do not repeat what the first says of all conditions.
        return fitted(content, lambda _: iter([] if offset else [text]), offset=offset, more=more)

    def report(
        self,
        baseline: Place,
        candidate: Place,
        format: Annotated[Literal["html", "markdown", "json"], Field(description="as the suffix of `path`")],
        path: Annotated[str, Field(description="a new file, .html, .md or .json, in a folder that exists")],
        context: Context[Any, Any],
    ) -> Annotated[CallToolResult, answers.Written]:
        """Writes a report on what changed, for people: HTML with charts and the timeline, Markdown or JSON.

        No existing file is overwritten, and nothing is written into the folder of a profile.
        """
        target, form = self.places.new_report(path, format)
        comparison, _ = self._comparison(self._question([baseline, candidate]), context)
        command = ["tfcompare", "report", baseline, candidate, "-o", path]
        text = reports.report(comparison, form, command=command, words=[baseline, candidate])
        with target.open("x", encoding="utf-8") as file:  # again: it may have come into being meanwhile
            file.write(text)
        content = {"path": self.places.as_typed(target), "size_bytes": target.stat().st_size}
        sentence = f"Wrote {as_code(content['path'])}."
        return CallToolResult(content=[TextContent(text=sentence)], structured_content=answers.printable(content))

    def _question(self, places: Sequence[str], **others: Any) -> Question:
        """What is asked about the runs at places that a client names. Raises `Outside`."""
        if len(places) > MOST_CANDIDATES + 1:
            raise TfcompareError(f"at most {MOST_CANDIDATES} candidates can be compared at once, not {len(places) - 1}")
        return Question(tuple(map(self.places.resolve, places)), **others)

    def _comparison(self, question: Question, context: Context[Any, Any]) -> tuple[Comparison, list[str]]:
        """The comparison, and sentences on the runs; not on this machine's cache, which is no client's business."""

        def make() -> tuple[Comparison, list[str]]:
            comparison, notes = answer(question, _progress(context))
            ours = set(cache_problems())
            return comparison, [note for note in notes if note not in ours]

        return self._load("compare", question, make)

    def _load(self, kind: str, question: Question, make: Callable[[], T]) -> T:
        """What `make` returns, kept while the files do not change. Raises `Outside` if a link leads out."""

        def alone() -> T:
            with self._reading:
                return make()

        found = self.places.runs_at(*question.places)
        return self._loaded.get((kind, question, tuple(run.stat_key for run in found)), alone)

    def _page(
        self, base: str, comparison: Comparison, question: Question, view: str, options: dict[str, Any]
    ) -> str | None:
        """The address of the page that shows the same; None if a dashboard lists these runs otherwise, such as a file
        of a run alone."""
        ids = {run.path: run.id for run in find_runs(*self.places.roots)}
        sides = [[ids.get(run.found.path, "") for run in side.runs] for side in comparison.sides]
        return page_address(base, view, question, sides, options) if all(map(all, sides)) else None


def call_of_view(name: str, given: dict[str, Any]) -> Call:
    """The call that shows another view of what was `given` to `compare`."""
    return Call(tool="compare", arguments=given | {"view": name})


def call_of_table(name: str, given: dict[str, Any], candidates: list[str]) -> Call | None:
    """The call that shows all rows of a table of the baseline and these candidates of what was `given` to `compare`;
    None for one that a view made of several."""
    if name not in schema.TABLES:
        return None
    if schema.table(name).has_diff and len(candidates) == 1:
        return Call(tool="table", arguments={"baseline": given["baseline"], "candidate": candidates[0], "name": name})
    return Call(tool="query", arguments={"sql": f"FROM {name}", "runs": [given["baseline"], *candidates]})


def _for_agents(
    block: dict[str, Any], given: dict[str, Any], candidates: list[str], calls: dict[str, Call]
) -> dict[str, Any]:
    """A block with code by lines; adds the calls that its `more` mean to `calls`. `candidates`: the one that the block
    is about."""
    if block["kind"] == "section":
        return block | {"blocks": [_for_agents(one, given, candidates, calls) for one in block["blocks"]]}
    if block["kind"] == "code":
        return {"kind": "code", "lines": block["text"].splitlines()}
    if (
        block["kind"] == "table"
        and block["rows_left_out"]
        and (call := call_of_table(block["name"], given, candidates))
    ):
        block["more"] = " ".join(["table", block["name"], *(candidates if len(given["candidates"]) > 1 else ())])
        calls[block["more"]] = call
    pointers = [block.get("more", ""), *(one.get("more", "") for one in block.get("findings", []))]
    calls |= {name: call_of_view(name, given) for name in pointers if name and name not in calls}
    return block


def _shown(comparison: Comparison, name: str, options: dict[str, Any]) -> Shown:
    """The view with these options. Raises `Unknown` for the view, an option or a value, `TfcompareError` for a value
    of another type."""
    found = view_of(name)
    for one in declared(found.options):
        if (value := options.get(one.name)) is not None:
            kind = type(one.default) if isinstance(one.default, bool | int) else str
            if type(value) is not kind:
                raise TfcompareError(f"the option {one.name} takes a {kind.__name__}; not {value!r}")
    for pair in pairs_of(comparison):
        options_with(found.options, pair, options)
    return Shown(comparison, found, options)


def _shown_columns(comparison: Comparison, name: str) -> list[str]:
    """The columns of a diff that say most: of a table with a headline metric, the keys, that metric and the verdict."""
    table = schema.table(name)
    every = list(DiffTables(comparison).dtypes[f"{name}{DIFF}"])
    if table.headline is None:
        return every
    names = comparison.sums_per().names(table)
    metric = [f"{table.headline}_{role}" for role in _SHOWN_OF_HEADLINE]
    wanted = [*table.keys, *(names.get(one, one) for one in metric), *_SHOWN_OF_ROW]
    return [one for one in wanted if one in every]


def _rows(sql: str, tables: RunTables, call: Call, offset: int, most: int) -> CallToolResult:
    """The rows of a query from `offset` on, at most so many."""
    memory = settings.from_environment().query_bytes
    limits = Limits(memory_bytes=memory, rows=most, result_bytes=_MOST_RESULT_BYTES, offset=offset)
    found = ask(sql, tables, limits)
    frame = found.named()
    if frame.empty and found.cut:
        raise TfcompareError(f"a row takes more than {_MOST_RESULT_BYTES:,} bytes: ask for fewer columns")
    rows = as_json.jsonable(frame.astype(object).to_numpy().tolist())

    def more(count: int) -> Call:
        return Call(tool=call.tool, arguments=call.arguments | {"offset": offset + count})

    content = {"columns": list(map(str, frame)), "rows": rows}
    return fitted(content, answers.of_rows, offset=0, more=more, beyond=None if found.cut else 0)


def _progress(context: Context[Any, Any]) -> Progress:
    """Reports each run before it is read, in whatever thread that is."""
    numbers, server = itertools.count(), anyio.from_thread.run_sync(current_token)

    def report(found: FoundRun) -> None:
        message = f"reading {as_code(found.name)}"
        anyio.from_thread.run(context.report_progress, next(numbers), None, message, token=server)

    return report


def _shortest(run: FoundRun, every: Sequence[FoundRun]) -> Path:
    """The logdir of a run, if it holds no other; else where the run is."""
    path = Path(run.path)
    if path.parts[-3:-1] == ("plugins", "profile") and len(below(every, path.parents[2])) == 1:
        return path.parents[2]
    return path


def _folder_of(captures: Sequence[FoundRun], every: Sequence[FoundRun]) -> Path | None:
    """The folder that holds these captures of one program and nothing else; None without one."""
    if len(captures) < 2:
        return None
    folder = Path(commonpath([run.path for run in captures]))
    return folder if len(below(every, folder)) == len(captures) else None
