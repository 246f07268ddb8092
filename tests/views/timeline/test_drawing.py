"""What is drawn: windows, shifts and stretched steps convert there and back, and all that is in a window is there."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.laws import law
from tests.tf_gpu_runs import FILTERS
from tests.views.timeline.cases import GPU_PAIR, KERNEL, aligned_pair, host_run, open_alone, open_pair, step, write_run
from tests.xspace_builder import PS_PER_US, event, line, plane
from tfcompare.compare.matching.kernel_names import kernel_label
from tfcompare.run import Run
from tfcompare.views.timeline.aligned import Aligned, align
from tfcompare.views.timeline.drawing import KINDS, LONG_NAME, ROWS_SHOWN, Axis, Viewport, drawing, found


def spans_of(aligned: Aligned, look: Viewport) -> pd.DataFrame:
    frame: pd.DataFrame = drawing(aligned, look)["spans"]
    names = drawing(aligned, look)["names"]
    return frame.assign(text=[names[i] for i in frame["name"]])


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Aligned:
    """Two steps at 1,000 µs, of 100 and 200 µs."""
    folder = tmp_path_factory.mktemp("tiny")
    ours = host_run(folder, "a", *step(3, 1_000, 100, event("x:MatMul", 10, 20), event("y:Relu", 50, 10)))
    theirs = host_run(folder, "b", *step(3, 1_000, 200, event("x:MatMul", 40, 40), event("z:Cast", 150, 10)))
    return align(open_pair(ours, theirs))


def placed(frame: pd.DataFrame) -> set[tuple[int, str, float, float]]:
    return set(zip(frame["side"], frame["text"], frame["start"].round(6), frame["duration"].round(6), strict=True))


def test_spans_are_drawn_where_they_ran_after_time_0(tiny: Aligned) -> None:
    assert placed(spans_of(tiny, Viewport())) == {
        *((0, "train", 0, 100), (0, "x:MatMul", 10, 20), (0, "y:Relu", 50, 10), (1, "train", 0, 200)),
        *((1, "x:MatMul", 40, 40), (1, "z:Cast", 150, 10)),
    }


def test_a_shift_moves_the_candidate_and_stretching_draws_its_step_as_long(tiny: Aligned) -> None:
    look = Viewport(window_us=(0, 1_000), shift_us=7.0, stretch=True)
    candidate = spans_of(tiny, look).query("side == 1")
    assert placed(candidate) == {(1, "train", 7, 100), (1, "x:MatMul", 27, 20), (1, "z:Cast", 82, 5)}
    steps = drawing(tiny, look)["steps"]
    assert steps == [[[3, 0.0, 100.0, 1]], [[3, 7.0, 100.0, 1]]]


def test_changes_and_statuses_are_seen_from_the_baseline_to_the_candidate(tiny: Aligned) -> None:
    frame = spans_of(tiny, Viewport()).set_index(["side", "text"])
    for side in (0, 1):
        assert frame.loc[(side, "x:MatMul"), "change"] == pytest.approx(1.0), "twice as long"
        assert frame.loc[(side, "x:MatMul"), "status"] == 1
    assert frame.loc[(0, "y:Relu"), "status"] == frame.loc[(1, "z:Cast"), "status"] == 2
    ours, theirs = frame.loc[(0, "x:MatMul")], frame.loc[(1, "x:MatMul")]
    assert (ours["partner"], theirs["partner"]) == (theirs["id"], ours["id"])


@law(40)
@given(st.integers(0, 10**15), st.floats(0.01, 100), st.floats(-1e6, 1e6), st.integers(-(10**12), 10**12))
def test_times_of_an_axis_convert_there_and_back(zero, scale, shift, time) -> None:
    axis = Axis(zero, scale, shift)
    there = axis.us(zero + time)
    assert axis.ps(there) == pytest.approx(zero + time, abs=1 + 1e-9 * abs(there) * PS_PER_US / scale + abs(shift))
    assert axis.ps(axis.us(zero)) == pytest.approx(zero, abs=1 + abs(shift))
    assert Axis(zero, 1.0, 0.0).us(zero + PS_PER_US) == 1.0


def test_lanes_show_their_first_rows_one_if_folded_and_all_if_opened(tmp_path: Path) -> None:
    nested = [event(f"level_{i}", i, 50 - 2 * i) for i in range(ROWS_SHOWN + 3)]
    other = line("pool/2", event("more", 5, 5), event("inside", 6, 2), id=2)
    run = write_run(tmp_path, "a", plane("/host:CPU", line("python", *nested, id=1), other))
    alone = align(open_alone(run))
    assert alone.lanes == [
        {"label": "python", "rows": [ROWS_SHOWN + 3], "idle": False},
        {"label": "pool", "rows": [2], "idle": False},
    ]

    def rows(look: Viewport) -> list[int]:
        return drawing(alone, look)["spans"].groupby("lane")["row"].nunique().tolist()

    assert rows(Viewport()) == [ROWS_SHOWN, 2]
    assert rows(Viewport(opened=frozenset({0}), folded=frozenset({1}))) == [ROWS_SHOWN + 3, 1]


def test_lanes_of_another_pair_that_were_folded_or_opened_do_no_harm() -> None:
    aligned = aligned_pair(*GPU_PAIR)
    usual = drawing(aligned, Viewport())["spans"]
    strange = Viewport(opened=frozenset({999, -400}), folded=frozenset({10**6}))
    pd.testing.assert_frame_equal(drawing(aligned, strange)["spans"], usual)


def test_a_lane_is_idle_if_nothing_takes_time_there_in_the_compared_steps(tmp_path: Path) -> None:
    def run(name: str, at_us: float) -> Run:
        op = event("x:MatMul", 10, 5)
        lines = [line("python", *step(1, 0, 100, op), *step(2, 100, 100, op), id=1)]
        lines += [line("early/2", event("work", 10, 20), event("mark", 130, 0), id=2)]
        lines += [line("until/3", event("work", 10, 90), id=3), line("late/4", event("work", at_us, 10), id=4)]
        return write_run(tmp_path, name, plane("/host:CPU", *lines))

    both = align(open_pair(run("a", 110), run("b", 250)), (2, 2))
    assert {lane["label"]: lane["idle"] for lane in both.lanes} == {
        "python": False,
        "early": True,
        "until": True,
        "late": False,
    }


def test_words_mark_the_spans_that_have_all_of_them_in_a_name_an_op_or_a_type(tmp_path: Path) -> None:
    events = [event("model/dense/MatMul:MatMul", 10, 5), event("model/Relu:Relu", 20, 5), event("Wait", 30, 5)]
    alone = align(open_alone(host_run(tmp_path, "a", *step(1, 0, 100, *events), *step(2, 200, 100, *events))), (1,))

    def marked(text: str) -> set[str]:
        frame = spans_of(alone, Viewport(find=text))
        return set(frame.loc[frame["marked"] == 1, "text"])

    assert marked("") == marked("  ") == set()
    assert marked("model") == {"model/dense/MatMul:MatMul", "model/Relu:Relu"}
    assert marked("matmul MODEL") == {"model/dense/MatMul:MatMul"}
    assert marked("model wait") == set()
    assert marked("wai") == {"Wait"}
    matches = found(alone, Viewport(find="model", shift_us=5))
    assert matches[["side", "start", "duration"]].to_numpy().tolist() == [[0, 10, 5], [0, 20, 5]], (
        "in the compared step"
    )
    assert [alone.timelines.sides[0].timeline.spans["name"].iloc[one] for one in matches["id"]] == [
        "model/dense/MatMul:MatMul",
        "model/Relu:Relu",
    ]
    assert len(found(alone, Viewport(find="no such"))) == 0


def test_a_kernel_is_found_by_its_op_and_joined_spans_stay_marked() -> None:
    aligned = aligned_pair(*FILTERS)
    frame = spans_of(aligned, Viewport(find="conv2d", width_px=200))
    assert (frame.loc[frame["marked"] == 1, "count"] > 1).any()
    timelines = aligned.timelines
    spans = timelines.sides[0].timeline.spans
    has = (
        spans[["name", "op_name", "op_type"]]
        .astype(str)
        .apply(lambda c: c.str.contains("conv2d", case=False))
        .any(axis=1)
    )
    here = has & (spans["start_ps"] >= aligned.zero_ps[0]) & (spans["start_ps"] < aligned.end_ps[0])
    assert here.sum() > 30
    assert (found(aligned, Viewport(find="conv2d"))["side"] == 0).sum() == here.sum()


def test_long_kernels_are_drawn_with_their_label_and_beside_their_op(tmp_path: Path) -> None:
    kernel = f"void ns::conv<ns::Tile<{', '.join(map(str, range(300)))}>>(float*)"
    events = [event(name, at, 5, KERNEL | {"tf_op": "x:Conv2D"}) for at, name in ((0, kernel), (10, "conv"))]
    host = line("python", event("a/b:MatMul", 0, 5), event("loop", 10, 5), id=1)
    run = write_run(tmp_path, "a", plane("/host:CPU", host), plane("/device:GPU:0", line("Stream #7", *events, id=7)))
    drawn = drawing(align(open_alone(run)), Viewport())
    names, spans = [*drawn["names"], ""], drawn["spans"]
    shown = {(names[name], names[op]) for name, op in zip(spans["name"], spans["op"], strict=True)}
    assert shown == {(kernel_label(kernel), "x"), ("conv", "x"), ("a/b:MatMul", ""), ("loop", "")}
    assert len(kernel_label(kernel)) < LONG_NAME < len(kernel)


def test_op_types_are_listed_by_colour_the_longest_first(tmp_path: Path) -> None:
    kinds = {kind: crc32(kind.encode()) % KINDS for kind in ("MatMul", "Relu", "Cast", "Mul", "Sub", "Softmax")}
    run = host_run(tmp_path, "a", *(event(f"op_{i}:{kind}", 20 * i, i + 1) for i, kind in enumerate(kinds)))
    expected = [[kind for kind in reversed(kinds) if kinds[kind] == colour] for colour in range(KINDS)]
    assert drawing(align(open_alone(run)), Viewport())["kinds"] == expected


@pytest.mark.parametrize("window", [(-1e15, 1e15), (9e14, 9.1e14), (5e3, 5e3 + 1e-9), (-1e15, -9e14)])
@pytest.mark.parametrize("stretch", [False, True])
def test_windows_far_away_or_without_length_are_drawn(window, stretch) -> None:
    drawn = drawing(aligned_pair("filters_512_128", "filters_16_8"), Viewport(window_us=window, stretch=stretch))
    everything = window == (-1e15, 1e15)
    assert (len(drawn["spans"]) > 0) == (everything or window[0] == 5e3)
    assert np.isfinite(drawn["spans"]["start"]).all()


def test_the_extents_are_from_the_first_start_to_the_last_end_of_each_side(tiny: Aligned) -> None:
    assert drawing(tiny, Viewport())["extents"] == [[0.0, 100.0], [0.0, 200.0]]
    assert drawing(tiny, Viewport(shift_us=-50.0))["extents"] == [[0.0, 100.0], [-50.0, 150.0]]
