"""The usual questions are answered from the tools' output alone, within ten calls and 100 kB."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mcp.golden import FOLDER, SCRIPTS, root_of, transcript

ANSWERS = {
    "fastest": "filters_16_8_better_input; likely faster than filters_16_8",
    "slow_host": "worker1: ",
    "memory": "`filters_16_8` uses 59.1 % less memory at its peak",
    "merge": "yes, no, failed, no, unclear, no, failed",
    "input_waits": "Iterator::Root::BatchV2::Map (preprocessing)",
    "cannot_tell": "cannot tell: not judged: ",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_agent_finds_the_answer(name: str, tmp_path: Path) -> None:
    text, agent = transcript(name, root_of(name, tmp_path))
    assert text.rpartition("\nAnswer: ")[2].startswith(ANSWERS[name])
    assert agent.calls <= 10
    assert agent.bytes <= 100_000
    assert text == (FOLDER / f"{name}.txt").read_text(encoding="utf-8"), "python -m tests.mcp.golden"
