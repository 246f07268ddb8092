"""What tools take and answer: shapes, bounds, errors, and where to go on."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import jsonschema
import pytest
from mcp.client.client import Client

from tests.mcp.agent import Agent, ask, blocks, call, failure, findings, text_of
from tests.mcp.golden import write_run
from tests.profiles import SAMPLES
from tests.xspace_builder import event, line, plane, space
from tfcompare.mcp.answers import MOST_BYTES, fitted, size_of
from tfcompare.mcp.answers import Call as ToolCall
from tfcompare.mcp.places import Places
from tfcompare.mcp.server import server
from tfcompare.mcp.tools import Loaded
from tfcompare.run import load

WHERE = "op_type = 'MatMul'"
PAIR = {"baseline": "autoencoder/filters_512_128", "candidate": "autoencoder/filters_16_8"}


def profile(names: list[str], *, slower: float = 1.0, steps: int = 12) -> bytes:
    """Steps that run an op of each name on a host's thread."""
    events = []
    for step in range(steps):
        at, length = 20_000 * step, 18_000 / len(names)
        events.append(event("train", at, 19_000, _r=1, step_num=step))
        events += [event(f"{name}:MatMul", at + i * length, length * slower / 2) for i, name in enumerate(names)]
    return space(plane("/host:CPU", line("main", *events, id=1)))


def test_tools_say_that_they_only_read_and_what_they_answer() -> None:
    async def listed(*, writes: bool) -> list[Any]:
        async with Client(server(Places((SAMPLES,)), writes=writes)) as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in anyio.run(lambda: listed(writes=True))}
    assert list(tools) == ["find_runs", "compare", "table", "query", "check", "report"]
    assert [name for name, tool in tools.items() if not tool.annotations.read_only_hint] == ["report"]
    assert all(tool.output_schema["properties"]["left_out"] for tool in tools.values())
    assert "report" not in [tool.name for tool in anyio.run(lambda: listed(writes=False))]


def test_structured_content_is_as_declared() -> None:
    async def script(agent: Agent) -> str:
        tools = {tool.name: tool.output_schema for tool in (await agent.client.list_tools()).tools}
        calls = [
            ("find_runs", {"path": "workers"}),
            ("compare", {"baseline": PAIR["baseline"], "candidates": [PAIR["candidate"]]}),
            ("table", {**PAIR, "name": "op_stats", "limit": 2}),
            ("query", {"sql": "SHOW TABLES", "runs": [PAIR["baseline"]]}),
            ("check", {**PAIR, "conditions": []}),
        ]
        for name, arguments in calls:
            jsonschema.validate(await agent.call(name, **arguments), tools[name])
        return ""

    ask(script)


def test_a_candidate_is_compared_as_the_command_does(tfcompare) -> None:
    runs = [str(SAMPLES / PAIR["baseline"]), str(SAMPLES / PAIR["candidate"])]
    _, printed, _ = tfcompare("view", "op_stats", *runs, "--by", "op_type", "--format", "json")
    (command,) = json.loads(printed)["candidates"]
    found = call(
        "compare", baseline=PAIR["baseline"], candidates=[PAIR["candidate"]], view="op_stats", options={"by": "op_type"}
    )
    (candidate,) = found["candidates"]
    assert candidate["options"] == command["options"]
    ours, theirs = (next(b for b in blocks(one) if b["kind"] == "table") for one in (candidate, command))
    assert ours["rows"] == theirs["rows"]
    assert found["calls"][ours["more"]] == {"tool": "table", "arguments": {**PAIR, "name": "op_stats"}}


def test_more_is_a_call_with_the_same_choices() -> None:
    async def script(agent: Agent) -> str:
        runs = {"baseline": "workers/balanced", "candidates": ["workers/slow_input"]}
        found = await agent.call("compare", **runs, steps="5:15", host="worker1")
        pointers = {one["more"] for one in findings(found).values() if "more" in one}
        assert pointers
        assert pointers <= set(found["calls"])
        chosen = {**runs, "steps": "5:15", "host": "worker1"}
        assert found["calls"]["input_pipeline"] == {
            "tool": "compare",
            "arguments": {**chosen, "view": "input_pipeline"},
        }
        followed = await agent.follow(found["calls"]["input_pipeline"])
        assert (followed["view"], followed["host"]) == ("input_pipeline", "worker1")
        return ""

    ask(script)


def test_each_of_several_candidates_has_its_own_rows() -> None:
    async def script(agent: Agent) -> str:
        candidates = ["autoencoder/filters_16_8", "autoencoder/filters_16_8_better_input"]
        found = await agent.call("compare", baseline=PAIR["baseline"], candidates=candidates, view="op_stats")
        (first, *_) = found["candidates"]
        (table,) = (block for block in blocks(first) if block["kind"] == "table" and "more" in block)
        expected = {"baseline": PAIR["baseline"], "candidate": candidates[0], "name": "op_stats"}
        assert found["calls"][table["more"]] == {"tool": "table", "arguments": expected}
        headlines = [item["text"] for item in found["blocks"][0]["items"]]
        names = ("`filters_16_8` is", "`filters_16_8_better_input` is")
        assert [text.startswith(name) for name, text in zip(names, headlines, strict=True)] == [True, True]
        return ""

    ask(script)


def test_rows_are_those_of_the_diff_and_conditions_are_sql() -> None:
    where = "op_type = 'Conv2D' -- a comment"
    found = call("table", **PAIR, name="op_stats", where=where, order="self_time_us_per_step_baseline", limit=100)
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    times = [row["self_time_us_per_step_baseline"] for row in rows]
    assert {row["op_type"] for row in rows} == {"Conv2D"}
    assert times == sorted(times)
    largest = call("table", **PAIR, name="op_stats", limit=3)
    changes = [abs(row[largest["columns"].index("self_time_us_per_step_delta")]) for row in largest["rows"]]
    assert changes == sorted(changes, reverse=True)
    assert largest["left_out"]["call"]["arguments"] == {**PAIR, "name": "op_stats", "limit": 3, "offset": 3}


@pytest.fixture(scope="module")
def many_ops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of 150 ops with names of 400 letters."""
    folder = tmp_path_factory.mktemp("many")
    names = [f"layer_{i}/" + "long/" * 80 + "op" for i in range(150)]
    write_run(folder / "before", profile(names))
    write_run(folder / "after", profile(names, slower=1.4))
    return folder


@pytest.mark.parametrize(
    ("tool", "arguments", "rows"),
    [
        ("compare", {"baseline": "before", "candidates": ["after"], "view": "op_stats"}, None),
        ("table", {"baseline": "before", "candidate": "after", "name": "op_stats", "where": WHERE, "limit": 150}, 150),
        ("query", {"sql": "SELECT op_name FROM op_stats WHERE " + WHERE, "runs": ["before"]}, 150),
    ],
)
def test_answers_are_bounded_and_say_how_to_go_on(many_ops: Path, tool: str, arguments: dict, rows: int | None) -> None:
    async def script(agent: Agent) -> str:
        seen: list[Any] = []
        call_: dict[str, Any] | None = {"tool": tool, "arguments": arguments}
        while call_ is not None and len(seen) < (rows or 1_000):
            found = await agent.follow(call_)  # which checks the size
            new = found.get("rows") or [json.dumps(block, sort_keys=True) for block in blocks(found)]
            assert new or "left_out" not in found, "every call comes further"
            seen += new
            call_ = found["left_out"]["call"] if "left_out" in found else None
        assert agent.calls > 1
        assert len({json.dumps(one) for one in seen}) == len(seen), "nothing comes twice"
        assert rows in (None, len(seen))
        return ""

    ask(script, many_ops)


def test_what_is_too_large_by_itself_is_passed_over_and_counted() -> None:
    entries = ["a", "x" * MOST_BYTES, "b"]
    seen = []
    offset: int | None = 0
    while offset is not None:
        result = fitted(
            {"rows": entries},
            lambda _: iter([]),
            offset=offset,
            more=lambda count: ToolCall(tool="table", arguments={"offset": count}),
        )
        assert size_of(result) <= MOST_BYTES
        seen += result.structured_content.get("rows", [])
        left_out = result.structured_content.get("left_out")
        offset = left_out["call"]["arguments"]["offset"] if left_out else None
    assert seen == ["a", "b"]


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("compare", {"baseline": "nowhere"}, "nowhere: there is no such file or folder"),
        ("compare", {}, "wrong arguments: baseline: Field required"),
        ("compare", {"baseline": PAIR["baseline"], "candidate": "x"}, "unknown argument of compare 'candidate'"),
        ("compare", {"baseline": PAIR["baseline"], "view": "memry"}, "did you mean 'memory'?"),
        ("compare", {"baseline": PAIR["baseline"], "options": {"top": "many"}}, "the option top takes a int"),
        ("compare", {"baseline": "autoencoder"}, "autoencoder: holds 4 runs; name one of them"),
        ("table", {**PAIR, "name": "op_stats", "where": "nonsense = 1"}, "nonsense"),
        ("table", {**PAIR, "name": "steps_of"}, "unknown table with a diff 'steps_of'"),
        ("query", {"sql": "SELECT * FROM read_csv('/etc/passwd')", "runs": [PAIR["baseline"]]}, ""),
        ("query", {"sql": "SHOW TABLES", "runs": []}, "query takes at least one run"),
        ("check", {**PAIR, "conditions": ["step_time"]}, "step_time"),
        ("check", {**PAIR, "conditions": ["step_time>+5%"] * 41}, "at most 40 conditions"),
        ("check", {**PAIR, "conditions": [f"op:{'*' * 500}>+5%"]}, "at most 40 conditions of up to 500 letters"),
        ("query", {"sql": "SELECT repeat('x', 9000000)", "runs": [PAIR["baseline"]]}, "a row takes more than"),
        ("compare", {"baseline": "x" * 50_000}, "…"),
        ("shell", {}, "unknown tool 'shell'"),
    ],
)
def test_errors_are_one_sentence(tool: str, arguments: dict, sentence: str) -> None:
    found = failure(tool, **arguments)
    assert sentence in found
    assert "\n" not in found
    assert "Traceback" not in found
    assert str(SAMPLES) not in found


def test_files_that_have_changed_are_read_again_and_others_are_not(tmp_path: Path, monkeypatch) -> None:
    write_run(tmp_path / "before", profile(["a", "b"]))
    write_run(tmp_path / "after", profile(["a", "b"]))
    read: list[str] = []
    monkeypatch.setattr(
        "tfcompare.loading.load", lambda found, **options: read.append(found.name) or load(found, **options)
    )

    async def script(agent: Agent) -> str:
        runs = {"baseline": "before", "candidates": ["after"]}
        await agent.call("compare", **runs)
        await agent.call("compare", **runs, view="op_stats")
        await agent.call("table", baseline="before", candidate="after", name="op_stats")
        assert sorted(read) == ["after", "before"]  # at the same time
        write_run(tmp_path / "after", profile(["a", "b", "c"]))
        await agent.call("compare", **runs)
        assert sorted(read) == ["after", "after", "before", "before"]
        return ""

    ask(script, tmp_path)


def test_memory_bounds_what_stays_loaded(monkeypatch) -> None:
    monkeypatch.setenv("TFCOMPARE_CACHE_MB", "3")
    loaded = Loaded(8)
    for name, megabytes in (("a", 1), ("b", 1), ("c", 2)):
        run = SimpleNamespace(memory_bytes=megabytes << 20)
        loaded.get(name, lambda run=run: (SimpleNamespace(runs=[run]), []))
    made: list[str] = []
    for name in ("b", "c", "a"):
        loaded.get(name, lambda name=name: made.append(name) or (SimpleNamespace(runs=[]), []))
    assert made == ["a"]


def test_a_client_hears_which_run_is_read() -> None:
    async def main() -> list[tuple[float, str]]:
        heard: list[tuple[float, str]] = []

        async def hear(progress: float, _total: float | None, message: str | None) -> None:
            heard.append((progress, message or ""))

        async with Client(server(Places((SAMPLES,)))) as client:
            found = await client.call_tool("compare", {"baseline": "workers/balanced"}, progress_callback=hear)
        assert not found.is_error, text_of(found)
        return heard

    assert anyio.run(main) == [(0.0, "reading `balanced`")]
