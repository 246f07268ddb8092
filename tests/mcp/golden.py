"""What an agent asks and reads to answer the usual questions, from the tools' output alone.

`python -m tests.mcp.golden` stores it, to review what a change did.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests import unrecorded
from tests.mcp.agent import Agent, Script, ask, blocks, findings
from tests.profiles import SAMPLES

FOLDER = Path(__file__).with_name("golden")


async def fastest(agent: Agent) -> str:
    """Which of three runs is fastest, is that real, and why?"""
    found = await agent.call("find_runs", path="autoencoder")
    by_name = {run["name"]: run["path"] for run in found["runs"] if not run["name"].endswith("again")}
    baseline, *candidates = by_name.values()
    beside = await agent.call("compare", baseline=baseline, candidates=candidates, view="candidates")
    (table,) = (block for block in blocks(beside) if block.get("title") == "All runs, fastest first")
    first, second = (row[0] for row in table["rows"][:2])
    why = await agent.call("compare", baseline=by_name[second], candidates=[by_name[first]])
    step = findings(why)["step_time"]
    part = max((f for name, f in findings(why).items() if name.startswith("part:")), key=lambda f: -f["delta"])
    is_real = "cannot tell" if step["verdict"] in ("inconclusive", "not tested") else step["verdict"]
    return f"{first}; {is_real} than {second}, from {step['evidence']} captures; above all {part['label']}"


async def slow_host(agent: Agent) -> str:
    """Which host holds up the others?"""
    found = await agent.call("compare", baseline="workers/balanced", candidates=["workers/slow_input"])
    hosts = await agent.follow(found["calls"]["hosts"])
    changed = {name: one for name, one in findings(hosts).items() if name.startswith("host:")}
    slowest = max(changed.values(), key=lambda one: one["candidate"])
    pages = await agent.call("compare", baseline="workers/balanced", candidates=["workers/slow_input"], view="tf_data")
    return f"{slowest['label']}: {next(blocks(hosts))['text']} tf.data: {next(blocks(pages))['text']}"


async def memory(agent: Agent) -> str:
    """What changed in memory?"""
    runs = {"baseline": "autoencoder/filters_512_128", "candidates": ["autoencoder/filters_16_8"]}
    overview = await agent.call("compare", **runs)
    found = await agent.follow(overview["calls"]["memory"])
    (live,) = (block for block in blocks(found) if block.get("title") == "Live at the peak")
    largest = dict(zip([column["name"] for column in live["columns"]], live["rows"][0], strict=True))
    where = "status <> 'matched'"
    gone = await agent.call(
        "table", baseline=runs["baseline"], candidate=runs["candidates"][0], name="memory_peak", where=where, limit=3
    )
    return (
        f"{next(blocks(found))['text']} Most: {largest['op_name']}, {largest['allocation_bytes_delta']:.0f} bytes; "
        f"of tensors on one side alone, {len(gone['rows'])} are shown, and there are more: {'left_out' in gone}"
    )


async def merge(agent: Agent) -> str:
    """May a pull request go in, that slows the step by at most 5 %?"""
    small, large = "autoencoder_gpu/h100_16_8", "autoencoder_gpu/h100_512_128"
    again = {"baseline": "autoencoder/filters_16_8", "candidate": "autoencoder/filters_16_8_again"}
    limits = ["step_time>+5%", "peak_memory>+10%"]
    better = await agent.call("check", baseline=large, candidate=small, conditions=limits)
    worse = await agent.call("check", baseline=small, candidate=large, conditions=limits)
    alike = await agent.call("check", **again, conditions=limits)
    strict = await agent.call("check", **again, conditions=limits, strict=True)
    outcomes = [one["outcome"] for one in (better, worse, alike, strict)]
    return ", ".join("yes" if one == "passed" else f"no, {one}" for one in outcomes)


async def input_waits(agent: Agent) -> str:
    """What does the input wait for?"""
    alone = await agent.call("compare", baseline="autoencoder/filters_16_8", view="input_pipeline")
    sql = "SELECT op_name, category, self_time_us FROM input_pipeline ORDER BY self_time_us DESC LIMIT 2"
    rows = await agent.call("query", sql=sql, runs=["autoencoder/filters_16_8"])
    (name, category, _), second = rows["rows"]
    fixed = await agent.call(
        "compare", baseline="autoencoder/filters_16_8", candidates=["autoencoder/filters_16_8_better_input"]
    )
    return f"{name} ({category}), then {second[0]}; {next(blocks(alone))['text']}; {next(blocks(fixed))['text']}"


async def cannot_tell(agent: Agent) -> str:
    """Is the candidate slower, whose GPU was not recorded?"""
    found = await agent.call("find_runs", path=".")
    baseline, candidate = sorted(run["path"] for run in found["runs"])
    overview = await agent.call("compare", baseline=baseline, candidates=[candidate])
    step = findings(overview).get("step_time")
    judged = await agent.call("check", baseline=baseline, candidate=candidate, conditions=["step_time>+5%"])
    if step is not None and step["candidate"] is not None and step.get("verdict") not in (None, "not tested"):
        return step["verdict"]
    return f"cannot tell: {judged['outcome']}: {judged['findings'][0]['reason']}"


def write_run(folder: Path, profile: bytes, *, host: str = "localhost") -> Path:
    """Writes a profile as a profiler does; returns its logdir."""
    run = folder / "plugins" / "profile" / "2026_11_30_12_00_00"
    run.mkdir(parents=True, exist_ok=True)
    (run / f"{host}.xplane.pb").write_bytes(profile)
    return folder


def unrecorded_runs(folder: Path) -> None:
    """Writes a run whose GPU was recorded, and one whose was not."""
    write_run(folder / "before", unrecorded.profile())
    write_run(folder / "candidate", unrecorded.profile((), complaint=unrecorded.NO_CUPTI))


SCRIPTS: dict[str, Script] = {
    one.__name__: one for one in (fastest, slow_host, memory, merge, input_waits, cannot_tell)
}
RUNS: dict[str, Callable[[Path], None]] = {"cannot_tell": unrecorded_runs}
"""What writes the runs of a question that is not about the samples."""


def transcript(name: str, root: Path) -> tuple[str, Agent]:
    """(the question, what was asked and read, and the answer; the agent)."""
    answer, agent = ask(SCRIPTS[name], root)
    return "\n".join([f"# {SCRIPTS[name].__doc__}", "", *agent.transcript, f"Answer: {answer}", ""]), agent


def root_of(name: str, folder: Path) -> Path:
    """The root of the server for a question; runs that are no samples are written to this folder."""
    if name not in RUNS:
        return SAMPLES
    RUNS[name](folder)
    return folder


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for one in SCRIPTS:
        with tempfile.TemporaryDirectory() as place:
            text, _ = transcript(one, root_of(one, Path(place)))
        (FOLDER / f"{one}.txt").write_text(text, encoding="utf-8")
