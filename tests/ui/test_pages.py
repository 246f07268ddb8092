"""Each page shows the blocks of its view as the address says; what the blocks say is tested in `tests/views`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS
from tests.ui.pages import CPU, GPU, WORKERS, XLA, charts, opened, said, table
from tests.views.flat import flat, of_kind, pair_of, titles
from tfcompare.charts.pair import Pair
from tfcompare.markdown import as_markdown
from tfcompare.tools.card_texts import value_text
from tfcompare.tools.xla.xla_tree import node_key
from tfcompare.ui.widgets.blocks import MOST_ITEMS, NO_BREAK
from tfcompare.ui.widgets.tables import PAGE_ROWS
from tfcompare.views.blocks import Block, Cards, Details, Facts, Items, Judgements, Links, Table, Text, Verdict
from tfcompare.views.memory.memory_choice import EACH
from tfcompare.views.options import declared, options_with
from tfcompare.views.registry import view
from tfcompare.views.view import View

FILES = {
    "overview": "1_Overview", "op_stats": "2_Op_stats", "kernel_stats": "3_Kernel_stats", "memory": "4_Memory",
    "input_pipeline": "5_Input_pipeline", "tf_data": "6_tf_data", "xla": "8_XLA", "hosts": "9_Hosts",
}  # fmt: skip
CONVOLUTIONS = ("jax_conv_08", "jax_conv_legacy")
recorded = pytest.mark.skipif(not CORPUS.exists(), reason="the recorded profiles are not on this machine")
IN_THE_ADDRESS: list[Any] = [
    ("overview", CPU, {"steps_as": "part"}),
    ("op_stats", GPU, {"where": "Device", "filter": "conv", "idle": True, "per_occurrence": True,
                       "part": "kernel_launch_us", "shares": True}),
    ("op_stats", CPU, {"by": "scope"}),
    ("kernel_stats", GPU, {"by": "launch", "filter": "conv", "per_launch": True, "changes": "launches",
                           "shares": True}),
    ("memory", CPU, {"span": "run", "level": "free_bytes", "align": "time", "parts": True, "parts_by": "region"}),
    pytest.param("memory", CONVOLUTIONS, {"memory": EACH, "memory_candidate": "GPU_5_bfc"}, marks=recorded),
    ("input_pipeline", CPU, {"filter": "flatmap", "category": "reading on demand", "wait_as": "share"}),
    ("tf_data", WORKERS, {"tf_host": "worker2", "rank": 3}),
    ("xla", XLA, {"group": node_key("category", "jit_train_step\nconvolution"), "by_change": True}),
    ("hosts", WORKERS, {"metric": "input_us", "at_step": 7, "one_host": "worker0"}),
]  # fmt: skip


def address_of(of: View, pair: Pair, values: Mapping[str, Any]) -> dict[str, str]:
    """The address of the page of the view with these options."""
    options = options_with(of.options, pair, values)
    found = {}
    for one in declared(of.options):
        if one.name in values:
            value, offered = values[one.name], one.offered(pair, options)
            found[one.key] = offered[value] if isinstance(offered, Mapping) else str(value)
            found[one.key] = found[one.key].lower() if isinstance(value, bool) else found[one.key]
    return found


def first_row(blocks: Iterable[Block]) -> tuple[str, str, Details] | None:
    """The key in an address of the first table whose rows open, that of its first row that opens, and what opens."""
    for block in blocks:
        if isinstance(block, Table | Facts) and block.opens and block.opens.details:
            if isinstance(block, Facts):
                keys, name = [one.id for one in block.findings], f"{block.address}_row"
            else:
                assert block.opens.keys is not None
                keys, name = block.opens.keys(block.rows).tolist(), f"{block.address}row"
            for key in keys:
                if (details := block.opens.details(key)) is not None:
                    return name, key, details
    return None


def check(page: AppTest, blocks: list[Block]) -> None:
    """All of these blocks are on the page."""
    words = said(page)
    for text in [*of_kind(blocks, Text), *of_kind(blocks, Links)]:
        assert text.text in words
    for verdict in of_kind(blocks, Verdict):
        assert f"### {verdict.headline}" in words and " ".join(verdict.basis) in words
    for row in [row for block in of_kind(blocks, Judgements) for row in block.rows]:
        assert f"{as_markdown(row.name)} :" in words
    for line, _ in [item for block in of_kind(blocks, Items) for item in block.items[:MOST_ITEMS]]:
        assert line.replace(" %", f"{NO_BREAK}%") in words
    for facts in of_kind(blocks, Facts):
        assert facts.header[0] in words
    for figure in [figure for block in of_kind(blocks, Cards) for figure in block.figures]:
        assert (figure.label, value_text(figure, figure.candidate)) in [(one.label, one.value) for one in page.metric]
    frames = [table(page, position) for position in range(len(page.dataframe))]
    on_page = [(list(frame.columns), frame.iloc[:, 0].tolist()) for frame in frames]
    for block in of_kind(blocks, Table):
        if block.rows.empty:
            assert block.nothing in words
        else:
            names = [column.name for column in block.columns]
            assert (names, block.rows[names[0]].head(PAGE_ROWS).tolist()) in on_page
    assert set(titles(blocks)) <= set(charts(page))


@pytest.mark.parametrize(("name", "runs", "options"), IN_THE_ADDRESS)
def test_a_page_shows_its_view_with_the_options_and_the_row_of_its_address(
    name: str, runs: tuple[str, str], options: dict[str, Any]
) -> None:
    pair, of = pair_of(*runs), view(name)
    blocks = list(flat(of.blocks(pair, **options)))
    address, row = address_of(of, pair, options), first_row(blocks)
    page = opened(FILES[name], *runs, **address, **({row[0]: row[1]} if row else {}))
    check(page, blocks)
    values = options_with(of.options, pair, options)
    for one in declared(of.options):
        if one.name in options and not one.is_row:
            assert page.session_state[one.key] == getattr(values, one.name)
    if row:
        inside = list(flat(row[2].blocks))
        assert inside
        check(page, inside)


@pytest.mark.parametrize(
    ("name", "runs"),
    [
        ("op_stats", CPU), pytest.param("memory", CONVOLUTIONS, marks=recorded), ("tf_data", WORKERS),
        ("hosts", WORKERS),
    ],
)  # fmt: skip
def test_what_an_address_asks_for_and_there_is_not_is_named_and_the_view_is_shown_without_it(
    name: str, runs: tuple[str, str]
) -> None:
    pair, of = pair_of(*runs), view(name)
    options = options_with(of.options, pair, {})
    choices = [one for one in declared(of.options) if one.is_open(pair, options) and one.offered(pair, options)]
    page = opened(FILES[name], *runs, row="Host:Nothing:at/all", **{one.key: "999999" for one in choices})
    for one in choices:
        if isinstance(one.offered(pair, options), Mapping):
            assert f"{one.label}: there is no `999999` here." in said(page)
    check(page, list(flat(of.blocks(pair))))


def test_a_page_that_has_nothing_to_show_says_why_and_where_to_go() -> None:
    page = opened("3_Kernel_stats", *CPU)
    of, pair = view("kernel_stats"), pair_of(*CPU)
    assert [one.value for one in page.info] == [f"{of.why_not(pair)} {of.remedy}".strip()]
    check(page, list(flat(of.instead(pair))))
    assert "Show the ops instead" in said(page) and "Choose other runs" in said(page)
