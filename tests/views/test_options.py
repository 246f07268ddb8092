"""What can be chosen in a view: on the command line, in Python, and as it is declared."""

from __future__ import annotations

import json
import re
from dataclasses import fields

import pytest

from tests.profiles import SAMPLE_RUNS
from tests.views.flat import only_pair
from tests.views.golden import CHOICES, IN_OTHER_TESTS, comparison_of
from tfcompare import cli
from tfcompare.errors import Unknown
from tfcompare.views import NAMES
from tfcompare.views.options import declared, options_with
from tfcompare.views.registry import view, views

RUNS = [str(SAMPLE_RUNS[name]) for name in ("filters_512_128", "filters_16_8")]


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


@pytest.mark.parametrize("pair", ["cpu", "gpu", "xla", "workers"])
def test_what_holds_without_a_choice_is_offered_and_blocks_at_the_top_are_the_same_for_all_options(pair: str) -> None:
    """A page makes a place for each block before it knows what was chosen."""
    of_pair = only_pair(comparison_of(pair))
    for one in views():
        if one.why_not(of_pair):
            continue
        preset = options_with(one.options, of_pair, {})
        kinds = [type(block) for block in one.make(of_pair, preset)]
        for option in declared(one.options):
            offered, value = option.offered(of_pair, preset), getattr(preset, option.name)
            if offered:
                assert value in offered or value is None is option.default
            if not option.is_open(of_pair, preset):
                continue
            if value is not None:
                assert options_with(one.options, of_pair, {option.name: value}) == preset
            other = {bool: True, int: 3, str: "no such word"}.get(type(option.default))
            for chosen in [other] if offered is None else list(offered)[:3]:
                options = options_with(one.options, of_pair, {option.name: chosen})
                assert [type(block) for block in one.make(of_pair, options)] == kinds, (one.name, option.name, chosen)


def test_options_are_flags_keyword_arguments_and_fields_of_json(tfcompare) -> None:
    status, out, _ = tfcompare("view", "op_stats", *RUNS, "--by", "op_type", "--filter", "conv", "--format", "json")
    assert status == 0
    (candidate,) = json.loads(out)["candidates"]
    assert candidate["options"]["by"] == "op_type"
    (table,) = [one for one in candidate["blocks"] if one["kind"] == "table"]
    assert table["columns"][0]["name"] == "op_type"
    assert {row[0] for row in table["rows"]} == {"Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput"}
    shown = comparison_of("cpu").view("op_stats", by="op_type", filter="conv")
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
    with pytest.raises(Unknown, match="unknown option 'colour'; must be one of: 'by', "):
        comparison_of("cpu").view("op_stats", colour="red")
