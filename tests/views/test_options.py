"""What can be chosen in a view: on the command line, in Python, and as it is declared."""

from __future__ import annotations

import json
import re
from dataclasses import fields

import pytest

from tests.views.flat import KNOWN_TRUTH
from tests.views.golden import CHOICES, IN_OTHER_TESTS
from tfcompare import cli, compare, load
from tfcompare.errors import Unknown
from tfcompare.views import NAMES
from tfcompare.views.registry import view

RUNS = [str(KNOWN_TRUTH / name) for name in ("matmuls_10", "matmuls_20")]


@pytest.mark.parametrize("name", NAMES)
def test_every_option_is_a_flag_with_its_meaning(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["view", name, "--help"])
    text = capsys.readouterr().out
    flags = re.findall(r"^  (--[\w-]+)", text.partition(f"options of {name}:")[2], flags=re.M)
    assert flags == [f"--{one.name.replace('_', '-')}" for one in fields(view(name).options)]


def test_every_option_is_in_a_golden_or_in_another_test() -> None:
    for name, choices in CHOICES.items():
        chosen = {option for _, options in choices for option in options}
        others = IN_OTHER_TESTS.get(name, set())
        assert chosen | others == {one.name for one in fields(view(name).options)}
        assert not chosen & others


def test_options_are_flags_keyword_arguments_and_fields_of_json(tfcompare) -> None:
    status, out, _ = tfcompare("view", "op_stats", *RUNS, "--by", "op_type", "--filter", "ma", "--format", "json")
    assert status == 0
    (candidate,) = json.loads(out)["candidates"]
    assert candidate["options"]["by"] == "op_type"
    (table,) = [one for one in candidate["blocks"] if one["kind"] == "table"]
    assert table["columns"][0]["name"] == "op_type"
    assert {row[0] for row in table["rows"]} == {"MatMul", "MakeIterator"}
    shown = compare(*map(load, RUNS)).view("op_stats", by="op_type", filter="ma")
    (same,) = json.loads(shown.to("json"))["candidates"]
    assert same["blocks"] == candidate["blocks"]
    wide = json.loads(shown.to("json", every=True))["candidates"][0]["blocks"]
    (all_columns,) = [one for one in wide if one["kind"] == "table"]
    assert len(all_columns["columns"]) > len(table["columns"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--by", "op_tpe"], "unknown group by 'op_tpe'; must be one of: 'op_name', 'op_type', 'scope'; did you mean"),
        (["--where", "Device"], "unknown where 'Device'; must be one of: 'Host'"),
        (["--memory", "x"], "unrecognized arguments: --memory x"),
    ],
)
def test_what_cannot_be_chosen_is_refused_in_a_sentence(tfcompare, given, said) -> None:
    try:
        status, _, error = tfcompare("view", "op_stats", *RUNS, *given)
    except SystemExit as end:  # refused while it is parsed
        assert end.code == 2
        return
    assert (status, said in error) == (2, True)


def test_an_unknown_option_is_refused() -> None:
    comparison = compare(*map(load, RUNS))
    with pytest.raises(Unknown, match="unknown option 'colour'; must be one of: 'by', "):
        comparison.view("op_stats", colour="red")
