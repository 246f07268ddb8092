"""Every view of every sample pair, in every format, and what can be chosen there."""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

import pytest

from tests.laws import mostly_thorough
from tests.render.documents import payload_of
from tests.views.flat import KNOWN_TRUTH, flat, of_kind, only_pair, pair_of
from tests.views.golden import CHOICES, FOLDER, IN_OTHER_TESTS, OPTIONS, PAIRS, comparison_of, said, with_options
from tfcompare import cli, compare, load
from tfcompare.compare.pairs import pairs_of
from tfcompare.comparison import Comparison
from tfcompare.errors import Unknown
from tfcompare.render.as_json import Style, block_values
from tfcompare.render.inline import plain
from tfcompare.render.report import report
from tfcompare.render.shown import ALL_ROWS, Shown
from tfcompare.schema import SIDES
from tfcompare.views import NAMES
from tfcompare.views.answer import figures
from tfcompare.views.blocks import Beside, Block, Cards, Chart, Facts, Section, Table, Text, Verdict
from tfcompare.views.options import declared, options_with
from tfcompare.views.registry import view, views

CASES = [
    ("cpu", "overview"),
    ("alone", "overview"),
    ("cpu", "kernel_stats"),
    ("cpu", "tf_data"),
    ("xla", "xla"),
    ("cpu", "timeline"),
    *(
        pytest.param(pair, name, marks=pytest.mark.thorough)
        for pair, name in [
            *(("workers", "overview"), ("cpu", "op_stats"), ("gpu", "kernel_stats"), ("cpu", "memory")),
            *(("workers", "input_pipeline"), ("workers", "hosts")),
        ]
    ),
]
"""Pairs that have what the view shows, and one that has not; the first six have blocks of each kind."""


def text_in(document: str) -> str:
    """The words of an HTML document in a row."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", "", document.replace("<br>", " "))).split())


@pytest.mark.parametrize("pair", PAIRS)
def test_every_view_says_what_is_stored(pair: str) -> None:
    """After a change: python -m tests.views.golden"""
    assert said(pair) == (FOLDER / f"{pair}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CHOICES)
def test_every_option_changes_what_is_stored(name: str) -> None:
    """After a change: python -m tests.views.golden"""
    assert with_options(name) == (OPTIONS / f"{name}.txt").read_text(encoding="utf-8")


def at_once(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks that are on a page before anything is unfolded; charts beside each other are one."""
    for block in blocks:
        if isinstance(block, Section) and (block.is_open or not block.title):
            yield from at_once(block.blocks)
        elif isinstance(block, Beside) and len(of_kind(block.blocks, Chart)) > 1:
            yield of_kind(block.blocks, Chart)[0]
        else:
            yield block


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("name", ["kernel_stats", "memory", "input_pipeline", "tf_data", "hosts"])
def test_a_page_shows_one_table_and_one_chart_before_anything_is_unfolded(name: str, pair: str) -> None:
    of, of_pair = view(name), only_pair(comparison_of(pair))
    found = list(at_once(of.blocks(of_pair))) if not of.why_not(of_pair) else []
    assert len(of_kind(found, Table)) <= 1
    assert len(of_kind(found, Chart)) <= 1


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair != "alone"])
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


def test_a_run_alone_is_compared_with_nothing() -> None:
    words = re.findall(r"\w+", (FOLDER / "alone.txt").read_text(encoding="utf-8").lower())
    assert not {"baseline", "candidate", "both", "ci"} & set(words)


@pytest.mark.parametrize(("pair", "name"), CASES)
def test_all_formats_have_the_same_sentences_and_figures(pair: str, name: str) -> None:
    comparison = comparison_of(pair)
    shown = Shown.of(comparison, name)
    (of_pair,) = pairs_of(comparison, by_name=True)
    why_not = view(name).why_not(of_pair)
    blocks = [Text(why_not)] if why_not else list(flat(view(name).blocks(of_pair)))
    sentences = [block.headline for block in of_kind(blocks, Verdict)] + [block.text for block in of_kind(blocks, Text)]
    rows = [row for block in blocks if isinstance(block, Cards | Facts) for row in rows_of(block)]
    terminal = " ".join(str(shown).split())
    documents = [terminal, text_in(shown.to("html")), text_in(shown._repr_html_())]
    markdown = re.sub(r"\\(.)", r"\1", shown.to("markdown"))
    for sentence in sentences:
        assert all(" ".join(plain(sentence).split()) in document for document in documents)
    for row in rows:
        assert " ".join(row) in re.sub(" +", " ", terminal)
        assert f"| {' | '.join(row)} |" in markdown
    assert shown.to("table", rows=ALL_ROWS).count("more rows") == 0
    check_json(comparison, name)


def rows_of(block: Cards | Facts) -> Sequence[Sequence[str]]:
    return block.facts.rows if isinstance(block, Cards) else block.rows


def check_json(comparison: Comparison, name: str) -> None:
    """JSON has the findings and what shows more."""
    text = Shown.of(comparison, name).to("json", words=["logs/a b", "logs/c"])
    content = json.loads(text)
    assert (content["view"], content["version"]) == (name, 1)
    (candidate,) = content["candidates"]
    found = list(findings(candidate["blocks"]))
    for one in found:
        assert one["id"] and one["label"]
        assert ("value" in one) == (comparison.is_single or one["id"].startswith(("advice:", "loss:")))
        if "more" in one:
            assert re.fullmatch(r"tfcompare view \w+ 'logs/a b' logs/c", one["more"])
    assert len([one["id"] for one in found]) == len({one["id"] for one in found})
    if name == "overview":
        assert found[0]["id"] == "step_time"
        assert len(text) < 16_000
    if name == "overview" and not comparison.is_single:
        verdict = comparison.verdict[comparison.candidates[0].id]
        assert (found[0]["verdict"], found[0]["interval"]) == (verdict.text, [verdict.low, verdict.high])
        assert found[0]["ratio"] == pytest.approx(verdict.ratio)


def findings(blocks: list[dict]) -> Iterator[dict]:
    for block in blocks:
        yield from block.get("findings", [])
        yield from findings(block.get("blocks", []))


@pytest.mark.parametrize("pair", mostly_thorough(PAIRS, "alone"))
def test_the_report_has_every_view_with_something_to_show(pair: str) -> None:
    comparison = comparison_of(pair)
    document = report(comparison)
    titles = re.findall(r"<summary><h2>(.*?)</h2>", document)
    (of_pair,) = pairs_of(comparison)
    assert [view.title for view in views()[1:] if not view.why_not(of_pair)] == [
        title for title in titles if title in {view.title for view in views()}
    ]
    tables = {one["name"] for one in payload_of(document) if one["kind"] == "table"}
    shown = [block for view in views() if not view.why_not(of_pair) for block in flat(view.blocks(of_pair))]
    assert {block.name for block in shown if isinstance(block, Table)} == tables


def test_several_candidates_each_have_their_part() -> None:
    both = comparison_of("several")
    text = Shown.of(both, "overview").to("table")
    assert text.count("Largest changes") == 2
    assert text.index("All runs, fastest first") < text.index("Key figures")
    assert "\nfilters_16_8_better_input\n" in text
    assert len(json.loads(Shown.of(both, "memory").to("json"))["candidates"]) == 2


def test_json_says_why_a_view_has_nothing_to_show_and_what_only_one_run_has() -> None:
    (candidate,) = json.loads(comparison_of("cpu").view("kernel_stats").to("json"))["candidates"]
    why_not, *_how_to_record = candidate["blocks"]
    assert why_not["text"].startswith("No kernels. filters_512_128 and filters_16_8 ran without GPU events")
    for names in (("jax_filters_16_8", "filters_16_8"), ("filters_16_8", "jax_filters_16_8")):
        pair = pair_of(*names)
        (peak,) = [one for one in findings(block_values(figures(pair), Style(5))) if one["id"] == "figure:peak_memory"]
        assert [math.isnan(peak[side]) for side in SIDES] == [name.startswith("jax") for name in names]
        assert "value" not in peak and "delta" not in peak


def test_rows_in_json_have_the_words_and_changes_of_the_table() -> None:
    text = comparison_of("gpu").view("kernel_stats", by="kernel_name").to("json", rows=ALL_ROWS, every=True)
    table, *_ = [one for one in json.loads(text)["candidates"][0]["blocks"] if one["kind"] == "table"]
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in table["rows"]]
    assert {row["verdict"] for row in rows} >= {"likely faster", "removed", "added"}
    changes = sum(row["total_duration_us_per_step_delta"] for row in rows)
    sides = [
        sum(row[f"total_duration_us_per_step_{side}"] or 0.0 for row in rows) for side in ("baseline", "candidate")
    ]
    assert changes == pytest.approx(sides[1] - sides[0])
    assert {column["unit"] for column in table["columns"] if column["name"].endswith("_ratio")} == {""}


def test_the_command_that_shows_more_has_the_options(tfcompare) -> None:
    runs = [str(KNOWN_TRUTH / name) for name in ("matmuls_10", "matmuls_20")]
    options = ["--steps", "2:10", "--per", "run"]
    _, out, _ = tfcompare("view", "overview", *runs, *options, "--format", "json")
    (candidate,) = json.loads(out)["candidates"]
    more = next(findings(candidate["blocks"]))["more"].split()
    assert more[:3] == ["tfcompare", "view", "timeline"]
    assert more[3:5] == runs and sorted(more[5:]) == sorted(options)
    assert tfcompare(*more[1:])[0] == 0
    assert tfcompare("view", "overview", *runs, "--limit", "-1")[0] == 2


def test_json_names_the_slowest_host_and_where_to_see_more() -> None:
    shown = comparison_of("workers").view("overview").to("json", words=["a", "b"])
    (candidate,) = json.loads(shown)["candidates"]
    (sentence,) = [one for one in candidate["blocks"] if "worker1" in one.get("text", "") and one.get("more")]
    assert sentence["more"] == "tfcompare view hosts a b"
    (candidate,) = json.loads(comparison_of("workers").view("hosts").to("json"))["candidates"]
    found = {one["id"]: one for one in findings(candidate["blocks"])}
    assert list(found) == ["host:worker1", "host:worker2", "host:worker0"]
    assert found["host:worker1"]["delta"] == pytest.approx(6_300, rel=0.02)


def test_an_unknown_view_or_format_is_refused() -> None:
    comparison = comparison_of("cpu")
    with pytest.raises(Unknown, match="unknown view 'pie'; must be one of: 'overview', "):
        comparison.view("pie")
    with pytest.raises(Unknown, match="unknown format 'pdf'"):
        comparison.view("memory").to("pdf")


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
