"""The skill for agents: its commands print what it says that they print, and it names views and metrics that exist."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from tests.profiles import ROOT
from tfcompare import cli
from tfcompare.views.registry import views

SKILL = (ROOT / "skills" / "tfcompare" / "SKILL.md").read_text(encoding="utf-8")
_EXAMPLE = re.compile(
    r"^\*\*(?P<question>.+?)\*\*.*?^```sh\n(?P<command>.*?)^```\n\n```text\n(?P<lines>.*?)^```", re.M | re.S
)


def examples() -> list[Any]:
    return [
        pytest.param(found["command"].strip(), found["lines"].splitlines(), id=found["question"])
        for found in _EXAMPLE.finditer(SKILL)
    ]


@pytest.mark.parametrize(("command", "lines"), examples())
def test_each_worked_example_prints_what_it_says(
    command: str, lines: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")  # or tables cut names
    program, *words = shlex.split(command)
    assert program == "tfcompare"
    assert cli.main(words) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for line in lines:
        assert " ".join(line.split()) in printed


def test_there_are_ten_worked_examples_or_more() -> None:
    assert len(examples()) >= 10


def test_every_view_answers_a_question() -> None:
    table = SKILL[SKILL.index("| the question") : SKILL.index("## When not to claim")]
    named = set(re.findall(r"`(\w+)`", table))
    assert {view.name for view in views()} <= named


def test_it_says_what_it_is_for_where_agents_look_for_it() -> None:
    head = SKILL.split("---\n")[1]
    assert re.search(r"^name: tfcompare$", head, re.MULTILINE)
    (description,) = re.findall(r"^description: (.+)$", head, re.MULTILINE)
    assert 50 < len(description) <= 1024  # what agents are shown of a skill before they open it
