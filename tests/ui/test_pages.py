"""Each page shows the blocks of its view as the address says; what the blocks say is tested in `tests/views`."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, ROOT, SAMPLES, loaded_run
from tests.tf_data_runs import STEPS, plain, write, zipped
from tests.ui.pages import CPU, GPU, WORKERS, XLA, charts, opened, pair_on, said, shown, table
from tests.views.flat import flat, of_kind, sections_below, titles
from tfcompare import load, settings
from tfcompare.compare.groups.kernel_groups import group_kernels
from tfcompare.compare.pair import Pair
from tfcompare.settings import Settings
from tfcompare.text import as_markdown
from tfcompare.ui.pages.live import kernel_address, memory_events_csv
from tfcompare.ui.widgets.blocks import MOST_ITEMS, NO_BREAK
from tfcompare.ui.widgets.tables import PAGE_ROWS
from tfcompare.units import format_ms, format_ratio
from tfcompare.views.blocks import (
    Block,
    Cards,
    Details,
    Facts,
    Items,
    Judgements,
    Links,
    Table,
    Text,
    Verdict,
)
from tfcompare.views.csv_files import spreadsheet_csv
from tfcompare.views.input.figures import on_waiting
from tfcompare.views.kernels.details import kernel_key
from tfcompare.views.key_figures import value_text
from tfcompare.views.memory.choice import EACH
from tfcompare.views.options import declared, options_with
from tfcompare.views.pair_words import DIFFERENT_PROGRAMS
from tfcompare.views.registry import view
from tfcompare.views.steps.headline import headline
from tfcompare.views.verdict_marks import word_of
from tfcompare.views.view import View
from tfcompare.views.xla.figures import node_key

FILES = {"overview": "1_Overview", "op_stats": "2_Op_stats", "kernel_stats": "3_Kernel_stats", "memory": "4_Memory"} | {
    "input_pipeline": "5_Input_pipeline",
    "tf_data": "6_tf_data",
    "xla": "8_XLA",
    "hosts": "9_Hosts",
}
CONVOLUTIONS = ("jax_conv_08", "jax_conv_legacy")
recorded = pytest.mark.skipif(not CORPUS.exists(), reason="the recorded profiles are not on this machine")
IN_THE_ADDRESS: list[Any] = [
    ("overview", CPU, {"steps_as": "part"}),
    (
        "op_stats",
        GPU,
        {
            "where": "Device",
            "filter": "conv",
            "idle": True,
            "per_occurrence": True,
            "part": "kernel_launch_us",
        },
    ),
    ("op_stats", CPU, {"by": "scope"}),
    (
        "kernel_stats",
        GPU,
        {"by": "launch", "filter": "conv", "per_launch": True, "changes": "launches", "shares": True},
    ),
    ("memory", CPU, {"span": "run", "level": "free_bytes", "align": "time", "parts": True, "parts_by": "region"}),
    pytest.param("memory", CONVOLUTIONS, {"memory": EACH, "memory_candidate": "GPU_5_bfc"}, marks=recorded),
    ("input_pipeline", CPU, {"filter": "flatmap", "category": "reading on demand", "wait_as": "share"}),
    ("tf_data", WORKERS, {"tf_host": "worker2", "rank": 3}),
    ("xla", XLA, {"group": node_key("category", "jit_train_step\nconvolution"), "by": "source"}),
    ("hosts", WORKERS, {"metric": "input_us", "at_step": 7, "one_host": "worker0"}),
]


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


def unfolded(blocks: Iterable[Block]) -> dict[str, str]:
    """The address that opens all sections which a page makes only when they are opened."""
    return {section.address: "true" for section in sections_below(blocks) if section.unfolds}


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
    helps = "\n".join(one.help for one in page.markdown)
    for verdict in of_kind(blocks, Verdict):
        assert verdict.headline in words and verdict.note in words
        assert all(one in helps for one in verdict.behind)
    for row in [row for block in of_kind(blocks, Judgements) for row in block.rows]:
        assert f"{as_markdown(row.name)} :" in words
    for line, _ in [item for block in of_kind(blocks, Items) for item in block.items[:MOST_ITEMS]]:
        assert line.replace(" %", f"{NO_BREAK}%") in words
    for facts in of_kind(blocks, Facts):
        assert facts.header[0] in words
    for block in of_kind(blocks, Cards):
        assert not block.others or block.facts.header[0] in words
    for figure in [figure for block in of_kind(blocks, Cards) for figure in block.first]:
        assert (figure.label, value_text(figure, figure.candidate)) in [(one.label, one.value) for one in page.metric]
    frames = [table(page, position) for position in range(len(page.dataframe))]
    on_page = [(list(frame.columns), frame.iloc[:, 0].tolist()) for frame in frames]
    for block in of_kind(blocks, Table):
        if block.rows.empty:
            assert block.nothing in words
        else:
            rows, columns = block.in_file(block.columns)
            names = [column.name for column in columns]
            assert (names, rows[names[0]].head(PAGE_ROWS).tolist()) in on_page
    assert set(titles(blocks)) <= set(charts(page))


@pytest.mark.parametrize(("name", "runs", "options"), IN_THE_ADDRESS)
def test_a_page_shows_its_view_with_the_options_and_the_row_of_its_address(
    name: str, runs: tuple[str, str], options: dict[str, Any]
) -> None:
    pair, of = pair_on(*runs), view(name)
    blocks = list(flat(of.blocks(pair, **options)))
    address, row = address_of(of, pair, options) | unfolded(of.blocks(pair, **options)), first_row(blocks)
    page = opened(FILES[name], *runs, **address, **({row[0]: row[1]} if row else {}))
    check(page, blocks)
    values = options_with(of.options, pair, options)
    for one in declared(of.options):
        if one.name in options and not one.is_in_address:
            assert page.session_state[one.key] == getattr(values, one.name)
    if row:
        inside = list(flat(row[2].blocks))
        assert inside
        check(page, inside)


@pytest.mark.parametrize(
    ("name", "runs"),
    [("op_stats", CPU), pytest.param("memory", CONVOLUTIONS, marks=recorded), ("tf_data", WORKERS), ("hosts", WORKERS)],
)
def test_what_an_address_asks_for_and_there_is_not_is_named_and_the_view_is_shown_without_it(
    name: str, runs: tuple[str, str]
) -> None:
    pair, of = pair_on(*runs), view(name)
    options = options_with(of.options, pair, {})
    choices = [one for one in declared(of.options) if one.is_open(pair, options) and one.offered(pair, options)]
    asked = {one.key: "999999" for one in choices} | unfolded(of.blocks(pair))
    page = opened(FILES[name], *runs, row="Host:Nothing:at/all", **asked)
    for one in choices:
        if isinstance(one.offered(pair, options), Mapping):
            assert f"{one.label}: there is no `999999` here." in said(page)
    check(page, list(flat(of.blocks(pair))))


def test_a_page_that_has_nothing_to_show_says_why_and_where_to_go() -> None:
    page = opened("3_Kernel_stats", *CPU)
    of, pair = view("kernel_stats"), pair_on(*CPU)
    assert [one.value for one in page.info] == [f"{of.why_not(pair)} {of.remedy}".strip()]
    check(page, list(flat(of.instead(pair))))
    assert "Show the ops instead" in said(page) and "Choose other runs" in said(page)


# --- the Overview: the guidance of the demo, and several candidates


def test_the_demo_goes_from_the_home_page_to_the_overview_once_which_says_what_to_look_at_until_it_is_hidden() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
    with settings.override(Settings(places=(SAMPLES / "autoencoder",), is_demo=True)):
        page.run()
        assert f"### :blue-badge[▼ likely faster] {headline(pair_on(*CPU), ('A', 'B')).text}" in said(page)
        (guidance,) = (one.value for one in page.caption if settings.DEMO_GUIDANCE[0] in one.value)
        assert all(sentence in guidance for sentence in settings.DEMO_GUIDANCE)
        next(button for button in page.button if button.label == "Hide").click().run()
        assert settings.DEMO_GUIDANCE[0] not in said(page)
        page.switch_page("app.py").run()
    assert not page.exception
    assert "Compare profile runs" in [title.value for title in page.title]


def test_the_first_screen_has_no_guidance_and_the_captures_behind_the_caveats() -> None:
    page = opened("1_Overview", *CPU)
    assert not page.warning, "nothing to warn of between two recordings on one machine"
    assert settings.DEMO_GUIDANCE[0] not in said(page)
    facts = page.table[0].value
    assert list(facts.columns) == ["A filters_512_128", "B filters_16_8", "Differs"]
    assert facts.loc["Device type"].tolist() == ["CPU", "CPU", ""]
    changes = page.dataframe[0].value
    assert changes["Verdict"].tolist() == ["▼ likely faster"] * 5
    assert changes[["A", "B", "Ratio"]].iloc[0].tolist() == ["131 ms", "1.28 ms", "0.00977×"]


def test_of_several_candidates_the_fastest_is_named_and_one_is_shown_in_detail() -> None:
    names = (*CPU, "filters_16_8_better_input")
    page = opened("1_Overview", *names, detail=f"C · {names[2]}")
    pair = pair_on(*names)
    (fastest, *_) = of_kind(view("overview").of_several(pair), Text)
    assert fastest.text in said(page) and "### `C` " in said(page) and "### `B` " not in said(page)
    step_time = pair.among.candidates[1].info.step_time_ms_mean
    assert {metric.label: metric.value for metric in page.metric}["Step time"] == format_ms(step_time)


# --- what only some pages have: whole names of kernels, and memories and pipelines that are chosen

KERNEL_TIME = "total_duration_us_per_step"


def test_kernels_are_added_up_and_a_chosen_one_shows_its_whole_name_and_its_launches() -> None:
    diff = pair_on(*GPU).diff("kernel_stats")
    groups = group_kernels(diff, "kernel_name")
    name = next(name for name in groups["kernel_name"] if name.startswith("loop_"))
    key = kernel_key(groups)[groups["kernel_name"] == name].iloc[0]
    page = opened("3_Kernel_stats", *GPU, by="kernel", row=key)
    frame = table(page)
    assert frame["kernel_name"].tolist() == groups["kernel_name"].tolist()
    times = [frame[f"{KERNEL_TIME}_{side}"].fillna(0) for side in ("baseline", "candidate")]
    change = (times[1] - times[0]).tolist()
    assert frame[f"{KERNEL_TIME}_delta"].tolist() == pytest.approx(change), "a missing side counts as 0 on the page"
    assert [code.value for code in page.code] == [name]
    (launches,) = (one for one in (table(page, n) for n in range(len(page.dataframe))) if "block_dim" in one)
    expected = diff[diff["kernel_name"] == name]
    assert len(launches) == len(expected)
    assert launches[f"{KERNEL_TIME}_candidate"].sum() == pytest.approx(expected["total_duration_us_candidate"].sum())


def test_kernels_are_parted_by_op() -> None:
    op = str(group_kernels(pair_on(*GPU).diff("kernel_stats"), "op_name")["op_name"].iloc[1])
    page = opened("3_Kernel_stats", *GPU, by="op", row=kernel_address((op,), ("op_name",), "matched"))

    def by_hand() -> set[str]:
        return {str(button.key) for button in page.button if str(button.key).startswith("by_hand")}

    assert by_hand() == {"by_hand_part"}
    page.button(key="by_hand_part").click()
    names = table(shown(page))["op_name"].tolist()
    assert op in names and f"{op} (candidate's)" in names
    assert {"by_hand_pair", "by_hand_undo_all"} <= by_hand()


@pytest.mark.parametrize("is_long", [False, True])
def test_the_file_of_a_timeline_of_memory_is_the_whole_table(is_long: bool) -> None:
    run = loaded_run("filters_16_8")
    data = memory_events_csv(run, None, is_long)
    assert (gzip.decompress(data) if is_long else data) == spreadsheet_csv(run.table("memory_timeline"))


@recorded
def test_memories_of_other_names_are_chosen_one_for_each_run() -> None:
    page = opened("4_Memory", "jax_elementwise", "jax_tpu", memory_candidate="2")
    assert page.selectbox(key="memory_baseline").value == "GPU_0_bfc"
    assert page.selectbox(key="memory_candidate").value == "2"
    assert DIFFERENT_PROGRAMS in said(page)
    assert set(table(page)["op_name"]) == {"unused preallocated device memory", "stack", "(no op named)"}


def test_verdicts_have_what_they_rest_on_as_help_and_a_filter_may_leave_no_row() -> None:
    page, pair = opened("5_Input_pipeline", *CPU), pair_on(*CPU)
    lines = {line.value.replace("\\", ""): line.help.replace("\\", "") for line in page.markdown if line.help}
    call = pair.slowest_call_verdict()
    assert call is not None
    verdicts = {"Input wait": on_waiting(pair), "Mean tf.data call (Host:0)": call.verdict}
    for name, verdict in verdicts.items():
        badge = f":gray-badge[{word_of(verdict)} {format_ratio(verdict.ratio)}]"
        line = f"{name} {badge} 95 % CI {format_ratio(verdict.low)}–{format_ratio(verdict.high)}"
        assert lines[line] == f"{verdict.reason}."
    page.text_input(key="filter").set_value("no such op")
    assert "Clear it to see all" in said(shown(page))


def test_pipelines_are_chosen_by_name_and_the_longest_call_comes_first(tmp_path: Path) -> None:
    page = AppTest.from_file(str(ROOT / "pages" / "6_tf_data.py"), default_timeout=90)
    for role, name in (("baseline", "a"), ("candidate", "b")):
        write(tmp_path / name, [(zipped(i, 0)[0], plain(i)[0]) for i in range(STEPS)])
        page.query_params[role] = f"{tmp_path.name}/{name}/plugins/profile/2026_01_02_03_04_05"
    longest = load(tmp_path / "a").table("tf_data_pipelines").sort_values("max_latency_us")["pipeline"].tolist()
    page.query_params["pipeline"] = longest[0]
    with settings.override(Settings(places=(tmp_path,))):
        page.run()
        assert not page.exception
        assert page.selectbox(key="pipeline").options == longest[::-1]
        assert said(page).count(f"`{longest[0]}`: slowest of ") == 2
        page.number_input(key="rank").set_value(3).run()
    assert [title.partition(":")[0] for title in charts(page)] == ["Execution 3"] * 2
