"""Tables: named by the schema, formatted to be read, sorted where Python knows of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pandas.io.formats.style import Styler
from streamlit.testing.v1 import AppTest

from tests.views import chart_samples as samples
from tests.views.flat import pair_of
from tests.views.flat import shown as blocks_of
from tfcompare import schema
from tfcompare.compare.diff import SumsPer
from tfcompare.errors import Unknown
from tfcompare.ui.widgets import tables
from tfcompare.ui.widgets.table_layout import (
    LETTER_PIXELS,
    MARKER_PIXELS,
    NARROW_PAGE_PIXELS,
    PAGE_PIXELS,
    config,
    figures_first,
    layout,
    narrow_layout,
)
from tfcompare.ui.widgets.tables import FEWEST_PAGE_ROWS, PAGE_LETTERS, PAGE_ROWS, Order, _rows_on_page, shown, styled
from tfcompare.views import chart_style as style
from tfcompare.views.blocks import Table
from tfcompare.views.columns import decimals, distinct_names, innermost_first, shown_alone, single_run_columns
from tfcompare.views.csv_files import file_stem
from tfcompare.views.ops.figures import side_by_side
from tfcompare.views.registry import view

ROWS = side_by_side(samples.diff(), idle=True)
SAMPLE_DIGITS = [
    ([351234.5], 1),
    ([1234.5, 2.0], 2),
    ([12.5], 4),
    ([0.001234], 4),
    ([1.0, 2.0], 0),
    ([np.nan], 0),
    ([], 0),
]
PER_STEP = SumsPer("step", "step")
DEFAULT = [
    "op_name",
    "op_type",
    *(f"{samples.METRIC}_{r}" for r in ("baseline", "candidate", "delta", "ratio")),
    "status",
]


def columns_of(names: Iterable[str], table: schema.Table = schema.OP_STATS) -> list[tables.Shown]:
    return [shown(name, table, PER_STEP) for name in names]


def cells_of(
    rows: pd.DataFrame,
    names: Iterable[str] = (),
    table: schema.Table = schema.OP_STATS,
    readings: Mapping[str, str] | None = None,
) -> Styler:
    """The rows as they are shown, by default with all their columns."""
    columns = columns_of(names or rows.columns, table)
    return styled(rows, columns, layout(rows, columns), readings)


@pytest.mark.parametrize(
    ("per", "name", "heading", "label", "format_"),
    [
        ("step", "op_name", "", "Op", "text"),
        ("step", "op_name_candidate", "", "Op, candidate", "text"),
        ("step", "self_time_us_baseline", "Self time (µs/step)", "Baseline", "number"),
        ("run", "self_time_us_candidate", "Self time (µs)", "Candidate", "number"),
        ("device", "total_time_us_delta", "Total time (µs/device)", "Change", "change"),
        ("run", "self_time_us_ratio", "Self time (µs)", "Ratio", "ratio"),
        ("step", "occurrences_baseline", "Occurrences (per step)", "Baseline", "number"),
        ("run", "occurrences_candidate", "Occurrences", "Candidate", "number"),
        ("step", "is_eager_baseline", "Eager", "Baseline", "flag"),
        ("step", "self_share_candidate", "Share", "Candidate", "share"),
        ("step", "rank_baseline", "Rank", "Baseline", "number"),
        ("step", "status", "", "Status", "text"),
    ],
)
def test_a_column_is_named_by_what_the_schema_says(per, name, heading, label, format_):
    column = shown(name, schema.OP_STATS, SumsPer(per, per))
    assert (column.heading, column.label, column.format) == (heading, label, format_)
    assert column.help


def test_every_column_of_the_diff_can_be_shown_and_no_other():
    assert all(column.label for column in columns_of(ROWS.columns))
    with pytest.raises(Unknown):
        shown("nonsense_baseline", schema.OP_STATS)


def test_digits_follow_the_largest_number_and_are_the_same_under_one_heading():
    for values, digits in SAMPLE_DIGITS:
        assert decimals(pd.DataFrame({"a": values, "b": values})) == digits
    laid_out = layout(ROWS, columns_of(DEFAULT))
    assert len({laid_out.digits[name] for name in DEFAULT if name in laid_out.digits}) == 1


def test_bytes_are_shown_in_one_unit_that_fits_the_largest_and_their_ratio_is_not_scaled():
    rows = pd.DataFrame({"memory_id": ["GPU"], "peak_bytes_baseline": [2_000_000], "peak_bytes_delta": [-500]})
    rows["peak_bytes_ratio"] = [0.5]
    cells = cells_of(rows, table=schema.MEMORY_SUMMARY)
    assert [heading for heading, _ in cells.columns] == ["", "Peak (MB)", "Peak (MB)", "Peak (MB)"]
    assert cells.data.iloc[0].tolist() == ["GPU", 2.0, -0.0005, 0.5]
    laid_out = layout(rows, columns_of(rows.columns, schema.MEMORY_SUMMARY))
    assert laid_out.digits["peak_bytes_baseline"] == laid_out.digits["peak_bytes_delta"]
    assert rows["peak_bytes_baseline"].tolist() == [2_000_000], "the CSV keeps bytes"


def test_a_missing_size_stays_missing_and_a_column_of_nothing_is_in_bytes():
    rows = pd.DataFrame({"kind": ["peer", "set"], "size_bytes_candidate": pd.array([pd.NA, pd.NA], dtype="Int64")})
    cells = cells_of(rows, table=schema.COPIES)
    assert cells.columns[1][0] == "Size (B/step)"
    assert cells.iloc[:, 1].isna().all()


def test_a_point_in_time_is_a_number():
    column = shown("peak_time_us_baseline", schema.MEMORY_SUMMARY)
    assert (column.heading, column.label, column.format) == ("Peak at (µs)", "Baseline", "number")


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e2])
def test_the_columns_shown_first_fit_the_page(factor):
    rows = ROWS.assign(**{name: ROWS[name] * factor for name in DEFAULT if name.startswith(samples.METRIC)})
    columns = columns_of([*DEFAULT, "host_or_device"])
    assert sum(layout(rows, columns).pixels[c.name] for c in columns) + 40 <= PAGE_PIXELS


def test_what_was_judged_is_in_view_where_not_all_columns_are():
    rows = ROWS.assign(op_name="n" * 60, verdict="faster", evidence="single", array_shape="[128,32,32,512]" * 2)
    rows = rows.assign(work_ratio=1 / 512, work_in="FLOPs", time_per_work_ratio=7.24)
    names = ["op_name", *(f"{samples.METRIC}_{role}" for role in ("baseline", "candidate", "delta", "ratio"))]
    names += ["op_type", "verdict", "array_shape", "work_ratio", "work_in", "time_per_work_ratio"]
    pixels = layout(rows, columns_of(names)).pixels
    assert sum(pixels.values()) + 40 > PAGE_PIXELS
    assert sum(pixels[name] for name in names[: names.index("verdict") + 1]) + 40 == PAGE_PIXELS


def test_a_short_first_column_leaves_its_room_to_long_texts():
    rows = ROWS.assign(host_or_device="Host", op_name="n" * 120)
    names = ["host_or_device", "op_name", *(f"{samples.METRIC}_{role}" for role in ("baseline", "candidate", "delta"))]
    long_first = rows.assign(host_or_device="h" * 60)
    columns = [replace(column, letters=200) for column in columns_of(names)]
    short, long = (layout(each, columns).pixels["op_name"] for each in (rows, long_first))
    assert short > long
    assert sum(layout(rows, columns).pixels.values()) + 40 <= PAGE_PIXELS


def test_factors_of_a_change_are_fractions_on_the_page_and_numbers_below():
    rows = pd.DataFrame({"op_name": ["a", "b"], "work_ratio": [1 / 512, np.nan], "time_per_work_ratio": [7.24, 0.5]})
    cells = cells_of(rows)
    texts = re.findall(r'<td id="[^>]*>([^<]*)<', cells.to_html())
    assert texts == ["a", "1/512", "7.24×", "b", "–", "1/2"]
    assert cells.data["work_ratio"].iloc[0] == 1 / 512


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e2])
def test_a_narrow_page_shows_name_baseline_candidate_and_change(factor):
    rows = ROWS.assign(**{name: ROWS[name] * factor for name in DEFAULT if name.startswith(samples.METRIC)})
    columns = figures_first(columns_of(DEFAULT))
    assert [column.label for column in columns[:4]] == ["Op", "Baseline", "Candidate", "Change"]
    assert sorted(column.name for column in columns) == sorted(DEFAULT), "the rest is there when one scrolls"
    for sorted_by in (None, DEFAULT[2]):
        laid_out = narrow_layout(rows, columns, sorted_by)
        assert sum(laid_out.pixels[column.name] for column in columns[:4]) + 40 <= NARROW_PAGE_PIXELS
    assert [bool(config(column, laid_out, None)["pinned"]) for column in columns[:3]] == [True, False, False]
    assert not config(columns[0], layout(rows, columns), None)["pinned"]


def test_a_narrow_page_shows_the_figures_of_a_run_alone_first_after_the_step_of_a_row():
    columns = figures_first([shown_alone(name, schema.OP_STATS, PER_STEP) for name in single_run_columns(DEFAULT)])
    assert [column.label for column in columns] == ["Op", "Self time (µs/step)", "Op type"]
    assert config(columns[0], narrow_layout(ROWS, columns), None)["pinned"]
    names = ["host", "device", "step", "busy_us_baseline", "busy_us_candidate"]
    columns = figures_first(columns_of(names, schema.HOSTS))
    assert [column.name for column in columns] == ["host", *names[2:], "device"]
    columns = figures_first(columns_of(["op_name", "op_type", "host", f"{samples.METRIC}_baseline"]))
    assert [column.name for column in columns][1] == "host", "ops of several hosts have the same names"


def test_a_querys_columns_stay_in_its_order():
    columns = [tables.Shown(name, "", name, "", format_) for name, format_ in (("b", "text"), ("a", "number"))]
    assert figures_first(columns) == columns
    rows = pd.DataFrame({"b": ["x"], "a": [1.0]})
    assert narrow_layout(rows, columns) == layout(rows, columns)


def test_a_column_has_room_for_its_numbers_and_the_sign_of_its_order():
    columns = columns_of(DEFAULT)
    ratio = f"{samples.METRIC}_ratio"
    plain, by_ratio = layout(ROWS, columns), layout(ROWS, columns, ratio)
    assert by_ratio.pixels[ratio] >= plain.pixels[ratio]
    assert by_ratio.pixels[ratio] >= len("Ratio ▼") * LETTER_PIXELS
    huge = ROWS.assign(**{ratio: 123456.789})
    room = layout(huge, columns).pixels[ratio]
    assert room >= (len("123456789×") + 1) * LETTER_PIXELS, "comma and point are half as wide"


def test_names_that_would_read_alike_show_the_scope_in_which_they_differ():
    layers = ("decoder_outer", "encoder_outer", "decoder_inner", "encoder_inner")
    scopes = [turn.format(layer) for turn in ("jvp({})", "transpose(jvp({}))") for layer in layers]
    jax = [f"jit(step)/{scope}/conv_general_dilated" for scope in scopes]
    assert distinct_names([*jax, "jit(step)/jvp(image)/max"], 19) == [
        *(f"con… ‹ {turn}…{layer[:9]}" for turn in ("jv", "tr") for layer in layers),
        "max ‹ jvp(image) ‹ jit(step)",
    ]
    layers = [f"tape/{layer}/convolution/Conv2DBackprop" for layer in ("image", "encoder_inner")]
    assert distinct_names([f"{layer}{end}" for layer in layers for end in ("Filter", "Input")], 16) == [
        "…pFilter ‹ image",
        "…opInput ‹ image",
        "…ter ‹ encoder_…",
        "…put ‹ encoder_…",
    ]
    assert distinct_names(jax, 90) == [innermost_first(name) for name in jax]


def test_a_text_of_narrow_letters_is_whole_where_its_column_has_room():
    columns = columns_of(["host_or_device", f"{samples.METRIC}_baseline"])
    for text in ("(not named)", "Device"):
        rows = ROWS.head(1).assign(host_or_device=text)
        assert layout(rows, columns).letters(columns[0]) >= len(text)


@pytest.mark.parametrize(
    ("name", "displayed"),
    [
        ("model/dense/MatMul", "MatMul ‹ dense ‹ model"),
        ("Iterator::Root::Map", "Map ‹ Root ‹ Iterator"),
        ("Relu", "Relu"),
        ("%fusion.3 = f32[8]{0} fusion(/x)", "%fusion.3 = f32[8]{0} fusion(/x)"),
        ("", ""),
    ],
)
def test_names_are_displayed_innermost_part_first_and_their_cells_hold_them_whole(name, displayed):
    assert innermost_first(name) == displayed
    rows = ROWS.head(1).assign(op_name=[name])
    page = cells_of(rows, DEFAULT)
    assert page.data.iloc[0, 0] == name
    (label,) = re.findall(r'_col0" class="data row0 col0" >([^<]*)<', page.to_html())
    assert label == displayed


def test_a_row_of_one_side_shows_its_status_and_its_whole_value_as_change():
    diff = samples.diff(
        samples.op_stats(samples.SLOW, without="Prefetch"), samples.op_stats(samples.FAST, without="Mean")
    )
    rows = side_by_side(diff, idle=False)
    rows = rows[rows["status"] != "matched"].reset_index(drop=True)
    cells = cells_of(rows, [*DEFAULT, "verdict"]).data
    cells.columns = [name for _, name in cells.columns]
    whole = {"added": 2000.0, "removed": -200.0}
    assert dict(zip(cells["verdict"], cells[f"{samples.METRIC}_delta"], strict=True)) == whole
    assert dict(zip(rows["status"], rows[f"{samples.METRIC}_delta"], strict=True)) == whole, "in files as well"


def test_sorting_by_change_counts_a_missing_side_as_zero():
    diff = samples.diff(samples.op_stats(samples.SLOW, without="Prefetch"), samples.op_stats(samples.FAST))
    ordered = Order(f"{samples.METRIC}_delta", falling=True).of(side_by_side(diff, idle=False))
    assert ordered["status"].iloc[0] == "added"
    assert ordered[f"{samples.METRIC}_candidate"].iloc[0] == 2000.0
    assert ordered[f"{samples.METRIC}_delta"].iloc[-1] == ordered[f"{samples.METRIC}_delta"].min()
    by_ratio = Order(f"{samples.METRIC}_ratio", falling=True).of(side_by_side(diff, idle=False))
    assert by_ratio["status"].iloc[-1] == "added", "a missing ratio comes last"


def test_a_click_sorts_a_second_turns_round_a_third_gives_up():
    order = Order().after_click("self_time_us", first_falling=True)
    assert order == Order("self_time_us", falling=True)
    order = order.after_click("self_time_us", first_falling=True)
    assert order == Order("self_time_us", falling=False)
    assert order.after_click("self_time_us", first_falling=True) == Order()
    assert order.after_click("op_name", first_falling=False) == Order("op_name", falling=False)


def test_an_order_can_stand_in_an_address_and_what_names_no_column_sorts_nothing():
    for order in (Order(), Order("a", True), Order("a", False)):
        assert Order.from_text(order.to_text(), ["a", "b"]) == order
    for text in ("c", "-c", "-", "--a", "; drop table"):
        assert Order.from_text(text, ["a"]) == Order()


def test_missing_values_come_last_either_way_and_texts_are_sorted_as_they_are_read():
    frame = pd.DataFrame({"a": [2.0, np.nan, 3.0]})
    assert Order("a", True).of(frame)["a"].tolist()[:2] == [3.0, 2.0]
    assert Order("a", False).of(frame)["a"].tolist()[:2] == [2.0, 3.0]
    assert frame["a"].tolist()[0] == 2.0
    kernels = pd.DataFrame({"kernel": ["void zebra()", "middle", "void aardvark()"]})
    readings = {"void zebra()": "zebra", "void aardvark()": "aardvark"}
    ordered = Order("kernel", falling=False).of(kernels, readings)
    assert ordered["kernel"].tolist() == ["void aardvark()", "middle", "void zebra()"]


def colours(rows: pd.DataFrame, names: list[str], table: schema.Table = schema.OP_STATS) -> dict[str, int]:
    """How many cells have each colour."""
    html = cells_of(rows, names, table).to_html()
    found = re.findall(r"((?:#T\w+,? ?)+) \{\s*color: (#\w+)", html)
    return {colour: cells.count("#T") for cells, colour in found}


def test_a_change_has_a_colour_only_where_the_verdict_is_that_it_is_better_or_worse():
    names = [*DEFAULT, "occurrences_delta"]
    rows = ROWS.sort_values(f"{samples.METRIC}_delta", ignore_index=True)
    change = rows[f"{samples.METRIC}_delta"]
    for word in ("untested", "unclear", "same"):
        assert colours(rows.assign(verdict=word), names) == {}
    assert colours(rows.assign(verdict="faster"), names) == {style.BETTER: (change < 0).sum()}
    assert colours(rows.assign(verdict="slower"), names) == {style.WORSE: (change > 0).sum()}
    first = rows.assign(verdict=["faster"] + ["unclear"] * (len(rows) - 1))
    assert colours(first, names) == {style.BETTER: 1}
    assert "-116000" in cells_of(rows.assign(verdict="unclear"), names).to_html()


def test_a_claim_from_single_captures_is_likely_and_has_a_weaker_colour():
    rows = ROWS.assign(verdict="faster", evidence="single")
    assert set(colours(rows, DEFAULT)) == {style.LIKELY_BETTER}
    assert "likely faster" in cells_of(rows, [*DEFAULT, "verdict"]).to_html()


def test_a_change_that_no_verdict_is_on_has_no_colour_unless_it_is_of_bytes_which_are_exact():
    rows = ROWS.assign(verdict="faster")
    assert colours(rows, ["op_name", "total_time_us_delta"]) == {}
    assert colours(rows.drop(columns="verdict"), DEFAULT) == {}
    rows = pd.DataFrame({"memory_id": ["a", "b", "c"], "heap_bytes_delta": [-5.0, 5.0, 0.0]})
    assert colours(rows, ["memory_id", "heap_bytes_delta"], schema.MEMORY_SUMMARY) == {style.BETTER: 1, style.WORSE: 1}


def facts_with_shapes() -> None:
    """A page with the largest changes of ops whose names are longer than their column."""
    from tfcompare.ui.widgets.blocks import show_facts
    from tfcompare.views.blocks import Facts

    header = ["Largest changes", "Change", "A", "B", "Ratio", "95 % CI", "Verdict", "Shape"]
    figures = ["−130 ms", "131 ms", "1.28 ms", "0.00977×", "0.00601×–0.0159×", "= same"]
    names = [f"jit(step)/transpose(jvp(decoder_{which}))/conv_general_dilated" for which in ("outer", "inner")]
    show_facts(Facts(header, [[name, *figures, "[16,32,32,512] → [16,32,32,16]"] for name in names]), key="facts")


def test_shapes_and_intervals_leave_room_for_names_beside_them():
    page = AppTest.from_function(facts_with_shapes).run()
    assert not page.exception
    found = json.loads(page.dataframe[0].proto.columns)
    widths = [one["width"] for one in found.values() if "width" in one]
    assert widths[0] >= 200 and sum(widths) + 40 == PAGE_PIXELS


def test_long_names_of_changes_keep_what_tells_them_apart_and_verdicts_are_shown_as_they_are_written():
    page = AppTest.from_function(facts_with_shapes).run()
    styler = page.dataframe[0].proto.arrow_data.styler
    shown = pa.ipc.open_stream(styler.display_values).read_pandas()
    assert shown.iloc[:, 0].tolist() == [f"conv_genera… ‹ tr…ose(jvp(decoder_{which}" for which in ("outer", "inner")]
    assert set(shown.iloc[:, 6]) == {"= same"}
    assert set(page.dataframe[0].value["Verdict"]) == {"'= same"}, "the grid's own download writes its cells"


def test_of_different_programs_no_change_is_better_or_worse():
    rows = pd.DataFrame({"memory_id": ["a", "b"], "heap_bytes_delta": [-5.0, 5.0]})
    columns = columns_of(rows.columns, schema.MEMORY_SUMMARY)
    found = styled(rows, columns, layout(rows, columns), is_neutral=True)
    assert "color:" not in (found if isinstance(found, Styler) else found.style).to_html()


def test_names_in_the_grid_cannot_run_in_a_spreadsheet_either():
    """The grid's own download button writes its cells as they are."""
    rows = ROWS.head(1).assign(op_name="=cmd()")
    cells = cells_of(rows, ["op_name", "op_type"])
    assert cells.iloc[0, 0] == "'=cmd()"


@pytest.mark.parametrize(
    ("name", "stem"),
    [("op_stats a/b c", "op_stats_a_b_c"), ("../..", "tfcompare"), ("ünï", "ünï"), ("x" * 300, "x" * 120)],
)
def test_a_download_has_a_name_that_every_system_takes(name, stem):
    assert file_stem(name) == stem


def test_long_texts_are_cut_for_the_eye_and_kept_whole():
    name = "void ns::" + 60 * "x" + "<int>(float*)"
    rows = ROWS.head(2).assign(op_name=[name, "short"])
    cells = cells_of(rows, ["op_name", "op_type"], readings={name: "x<int>"})
    assert cells.data.iloc[:, 0].tolist() == [name, "short"]
    html = cells.to_html()
    assert "x<int>" in html.replace("&lt;", "<").replace("&gt;", ">")
    assert name not in html.replace("&lt;", "<").replace("&gt;", ">")


def test_a_number_that_tells_rows_apart_is_shown_as_one():
    column = shown("shared_memory_bytes", schema.KERNEL_STATS)
    assert (column.label, column.format, column.unit) == ("Shared memory (bytes)", "number", "bytes")
    rows = pd.DataFrame({"kernel_name": ["k"], "registers_per_thread": pd.array([32], dtype="Int64")})
    columns = columns_of(rows.columns, schema.KERNEL_STATS)
    assert layout(rows, columns).digits == {"registers_per_thread": 0}


@pytest.mark.parametrize(
    ("letters", "rows"), [(10, PAGE_ROWS), (2_000, PAGE_LETTERS // 2_000), (100_000, FEWEST_PAGE_ROWS)]
)
def test_a_page_of_long_texts_has_fewer_rows(letters: int, rows: int) -> None:
    frame = pd.DataFrame({"op_name": ["x" * letters] * 2, "rank_baseline": [1, 2]})
    columns = columns_of(frame)
    assert _rows_on_page(frame, columns) == rows
    assert _rows_on_page(frame.assign(op_name=pd.Series([None, None], dtype="str")), columns) == PAGE_ROWS


@pytest.mark.parametrize("by", ["kernel_name", "op_name", "kernel_and_op", "launch"])
def test_the_columns_of_kernel_stats_have_room_on_a_page(by: Any) -> None:
    """In a window of 1440 px, without scrolling sideways."""
    found = blocks_of(view("kernel_stats"), pair_of("h100_512_128", "h100_16_8"), Table, by=by)[0]
    assert sum(layout(found.rows, found.columns).pixels.values()) + MARKER_PIXELS <= PAGE_PIXELS
