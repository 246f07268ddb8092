"""Numbers with their units, and names that may be meant."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfcompare import units
from tfcompare.text import close_matches, did_you_mean, middle_ellipsis


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (12.345, "12.3 µs"),
        (351_234, "351 ms"),
        (25_100, "25.1 ms"),
        (1_240_000, "1.24 s"),
        (999.96, "1.00 ms"),
        (0.5, "500 ns"),
        (0.000001, "0.00100 ns"),
        (1_234_567_890, "1,230 s"),
        (0, "0 µs"),
        (-12_345, "−12.3 ms"),
        (math.inf, "∞"),
        (math.nan, "–"),
        (None, "–"),
        (pd.NA, "–"),
    ],
)
def test_time(us, text):
    assert units.format_time_us(us) == text


def test_milliseconds_read_as_times():
    assert units.format_ms(351.0) == "351 ms"
    assert units.format_ms(0.0251) == "25.1 µs"
    assert units.format_ms(None) == "–"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (512, "512 B"), (-512, "−512 B"), (3_051_000, "3.05 MB"), (999_999, "1.00 MB"), (0.5, "0.500 B")],
)
def test_bytes(size, text):
    assert units.format_bytes(size) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (40, "40"), (1_234_567, "1,234,567"), (2.5, "2.50"), (1234.5, "1,234"), (-3, "−3"), (math.nan, "–")],
)
def test_count(count, text):
    assert units.format_count(count) == text


def test_ratios_and_percentages():
    assert units.format_ratio(1.2345) == "1.23×"
    assert units.format_ratio(0.0715) == "0.0715×"
    assert units.format_ratio(1234.5) == "1,234×"
    assert units.format_ratio(math.inf) == "∞"
    assert units.format_percent(0.1234) == "12.3 %"
    assert units.format_percent(-1.5) == "−150 %"
    assert units.format_percent_change(1.123) == "+12.3 %"
    assert units.format_percent_change(0.877) == "−12.3 %"
    assert units.format_percent_change(1.0) == "0 %"
    assert units.format_percent_change(math.inf) == "∞"
    assert [units.format_percent_change(ratio) for ratio in (4.999, 5.0, 89.0)] == ["+400 %", "5.00×", "89.0×"]
    assert [units.format_percent_change(end, 4.9) for end in (4.5, 5.5)] == ["+350 %", "+450 %"], "ends of an interval"
    assert units.format_percent_change(4.5, 5.0) == "4.50×"
    assert units.format_percent_change(None) == "–"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        *((1 / 512, "1/512"), (0.5, "1/2"), (1 / 27.13, "1/27.1"), (1 / 1234.5, "1/1,234"), (0.75, "0.750×")),
        *((1.0, "1.00×"), (7.241, "7.24×"), (0.0, "0×"), (math.inf, "∞"), (math.nan, "–")),
    ],
)
def test_a_small_factor_is_a_fraction(ratio: float, text: str) -> None:
    assert units.format_factor(ratio) == text


@pytest.mark.parametrize(
    ("baseline", "candidate", "ratio"),
    [
        *((2.0, 3.0, 1.5), (2.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 3.0, math.inf), (0.0, math.nan, math.nan)),
        (math.nan, 3.0, math.nan),
    ],
)
def test_a_ratio_is_known_where_the_baseline_is_0(baseline: float, candidate: float, ratio: float) -> None:
    assert units.ratio_of(baseline, candidate) == pytest.approx(ratio, nan_ok=True)


def test_values_and_deltas_by_the_unit_of_the_schema():
    assert units.format_value(1500, "µs") == "1.50 ms"
    assert units.format_value(1.5, "ms") == "1.50 ms"
    assert units.format_value(1500, "bytes") == "1.50 kB"
    assert units.format_value(1500, "") == "1,500"
    assert units.format_value(2, "warps") == "2 warps"
    assert units.format_delta(1500, "µs") == "+1.50 ms"
    assert units.format_delta(-1500, "bytes") == "−1.50 kB"
    assert units.format_delta(0, "µs") == "0 µs"
    assert [units.format_delta(us, "µs") for us in (-1e-6, 9e-6, 2e-5)] == ["0 µs", "0 µs", "+0.0200 ns"]
    assert units.format_delta(-1e-9, "ms") == "0 µs"
    assert units.format_delta(math.nan, "µs") == "–"


def test_bandwidth_is_in_bytes_a_second():
    assert units.format_value(21_370_000_000, "bytes/s") == "21.4 GB/s"
    assert units.format_value(None, "bytes/s") == "–"


def test_operations_and_their_rate_have_prefixes():
    assert units.format_value(163_577_856_000, "FLOP") == "164 GFLOP"
    assert units.format_value(1.307e15, "FLOP/s") == "1.31 PFLOP/s"
    assert units.format_value(0, "FLOP") == "0 FLOP"
    assert units.format_value(None, "FLOP/s") == "–"


@pytest.mark.parametrize(("largest", "unit"), [(0, "B"), (999, "B"), (-1000, "kB"), (5e6, "MB"), (1e20, "PB")])
def test_the_unit_of_several_sizes_is_the_largest_that_fits(largest, unit):
    assert units.scale([largest, math.nan], "bytes").unit == unit


def test_a_long_name_keeps_its_end():
    assert middle_ellipsis("model/dense/MatMul", 40) == "model/dense/MatMul"
    assert middle_ellipsis("gradient_tape/model/dense/MatMul/MatMul_1", 20) == "gradie…tMul/MatMul_1"


@given(st.text(), st.integers(1, 50))
def test_an_ellipsis_never_exceeds_its_width(name, width):
    assert len(middle_ellipsis(name, width)) <= width


@given(st.floats(1e-3, 1e12))
def test_a_time_keeps_three_digits(us):
    number, unit = units.format_time_us(us).split()
    factor = {"ns": 1e-3, "µs": 1.0, "ms": 1e3, "s": 1e6}[unit]
    assert float(number.replace(",", "")) * factor == pytest.approx(us, rel=5.1e-3)
    assert units.format_time_us(-us) == f"−{units.format_time_us(us)}"


@pytest.mark.parametrize("number", [1e308, -1e308, math.inf, -math.inf, math.nan, 5e-324, -0.0, 2.0**63])
def test_every_number_has_a_text(number: float) -> None:
    plain = (units.format_count, units.format_ratio, units.format_percent, units.format_percent_change, units.format_ms)
    texts = [one(number) for one in plain]
    for unit in ("µs", "ms", "bytes", "bytes/s", "FLOP", "FLOP/s", ""):
        texts += [units.format_value(number, unit), units.format_delta(number, unit)]
    assert all(texts) and not [text for text in texts if "inf" in text or "nan" in text]


def test_a_share_too_large_for_percents_is_infinite() -> None:
    assert (units.format_percent(1e308), units.format_percent(-1e308)) == ("∞ %", "−∞ %")


TABLES = ("op_stats", "op_steps", "steps", "Kernel_Stats")


@pytest.mark.parametrize(
    ("wanted", "most", "near"),
    [
        ("op_stat", 1, ["op_stats"]),
        ("op_stat", 2, ["op_stats", "op_steps"]),
        ("KERNEL_STATS", 1, ["Kernel_Stats"]),
        ("frobnicate", 3, []),
        ("", 3, []),
    ],
)
def test_the_nearest_comes_first_and_what_is_far_not_at_all(wanted: str, most: int, near: list[str]) -> None:
    assert close_matches(wanted, TABLES, most) == near


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ([], ""),
        (["a"], "; did you mean 'a'?"),
        (["a", "b"], "; did you mean 'a' or 'b'?"),
        (["a", "b", "c"], "; did you mean 'a', 'b' or 'c'?"),
    ],
)
def test_names_are_told_as_a_question(names: list[str], told: str) -> None:
    assert did_you_mean(names) == told
