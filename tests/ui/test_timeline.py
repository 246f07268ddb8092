"""The timeline page, run by Streamlit without a browser."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, GPU_RUNS, ROOT, SAMPLES, loaded_run, run_path
from tests.tf_gpu_runs import FILTERS
from tests.views.timeline.cases import GPU_PAIR, aligned_pair, open_alone
from tests.xspace_builder import PS_PER_US, line, plane, space
from tfcompare import settings
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.units import format_percent, format_time_us
from tfcompare.views.links import ANOTHER_STEP, numbers_in
from tfcompare.views.timeline import words as sentences
from tfcompare.views.timeline.aligned import align
from tfcompare.views.timeline.drawing import Viewport
from tfcompare.views.timeline.losses import losses
from tfcompare.views.timeline.selection import drawn_selection

IDS = {run.path.parents[2].name: run.id for run in find_runs(SAMPLES)}
IDS |= {path.parent.name: IDS[path.name] for path in GPU_RUNS.values()}
CPU_PAIR = ("filters_512_128", "filters_16_8")


@pytest.fixture
def page() -> Iterator[AppTest]:
    with settings.override(Settings()):
        yield chosen(*CPU_PAIR)


def chosen(baseline: str, *candidates: str) -> AppTest:
    made = AppTest.from_file(str(ROOT / "pages" / "7_Timeline.py"), default_timeout=90)
    made.query_params["baseline"], made.query_params["repeat"] = IDS[baseline], ""
    if candidates:
        made.query_params["candidate"] = [IDS[name] for name in candidates]
    return made


def shown(page: AppTest) -> AppTest:
    page.run()
    assert not page.exception
    return page


def of_corpus(baseline: str, candidate: str, **view: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "7_Timeline.py"), default_timeout=90)
    for role, name in (("baseline", baseline), ("candidate", candidate)):
        page.query_params[role] = f"corpus/{run_path(name).relative_to(CORPUS)}"
    page.query_params |= view
    with settings.override(Settings(places=(CORPUS,))):
        return shown(page)


def sent(page: AppTest) -> dict[str, Any]:
    """What the component is given, but for its columns."""
    (one,) = [e for e in page.get("bidi_component") if e.proto.component_name == "tfcompare.timeline"]
    found: dict[str, Any] = json.loads(one.proto.mixed.json)
    return found


def texts(page: AppTest) -> str:
    kinds = (page.markdown, page.info, page.caption, page.error, page.warning)
    return "\n".join(element.value for kind in kinds for element in kind)


def columns(page: AppTest) -> set[str]:
    return {name[-1] if isinstance(name, tuple) else name for frame in page.dataframe for name in frame.value.columns}


def test_the_typical_steps_are_compared_until_others_are_chosen(page: AppTest) -> None:
    shown(page)
    assert "Step 4 of B takes **10.9 ms**, step 6 of A **213 ms** (−202 ms)." in texts(page)
    assert sent(page)["drawing"]["jumps"][0]["text"].startswith("−130 ms in ")
    assert sent(page)["drawing"]["details"]["hint"].startswith("Click a span to see its times")
    assert not [box for box in page.selectbox if str(box.key).startswith("timeline_")], "a host each"
    drawing = sent(page)["drawing"]
    assert drawing["sides"] == list(CPU_PAIR)
    assert (drawing["letters"], drawing["compared"]) == (["A", "B"], [10, 8])
    assert drawing["selected"] == []
    assert sent(page)["state"]["view"] is None

    page.query_params["window"] = "100:900"
    assert sent(shown(page))["state"]["view"] == [100, 900]
    press(page, "Next step")
    assert sent(page)["drawing"]["compared"] == [11, 9]
    assert (page.query_params["step_a"], page.query_params["step_b"]) == ("11", "9")
    assert (sent(page)["state"]["view"], "window" in page.query_params) == (None, False), "that of other steps"
    press(page, "Previous step")
    assert sent(page)["drawing"]["compared"] == [10, 8]
    press(page, "The longest step of each run")
    lengths = [box.options for box in page.selectbox if box.key in ("step_a", "step_b")]
    for side, options in enumerate(lengths):
        times = {text.partition(" · ")[0]: float(text.partition(" · ")[2].split()[0]) for text in options}
        assert times[str(position_of_compared(page, side))] == max(times.values())
    page.query_params |= {"step_a": "26", "step_b": "26"}
    press(page, "Next step")
    assert sent(page)["drawing"]["compared"] == [26, 26], "there is none after the last"


def position_of_compared(page: AppTest, side: int) -> int:
    drawing = sent(page)["drawing"]
    return next(place for number, _, _, place in drawing["steps"][side] if number == drawing["compared"][side])


def press(page: AppTest, what: str) -> None:
    """Press the button with that help."""
    next(button for button in page.button if button.help == what).click()
    shown(page)


def test_a_gpu_stands_above_the_threads_and_places_of_the_sentence_have_buttons() -> None:
    with settings.override(Settings()):
        page = shown(chosen(*GPU_PAIR))
    drawn = sent(page)["drawing"]
    on_device = [lane["label"].startswith("GPU:0 ") for lane in drawn["lanes"]]
    assert on_device == sorted(on_device, reverse=True)
    assert any(on_device)
    assert not all(on_device)
    aligned = aligned_pair(*GPU_PAIR)
    places = losses(aligned)
    assert [jump["id"] for jump in drawn["jumps"]] == [one.span for one in places]
    for jump, place in zip(drawn["jumps"], places, strict=True):
        low, high = jump["window"]
        assert (place.unmatched or place.op_name) in jump["title"]
        for one in drawn_selection(aligned, Viewport(), jump["side"], jump["id"]):
            assert low < one["start"] < one["start"] + one["duration"] < high


def test_a_run_alone_has_one_side_and_no_comparison() -> None:
    with settings.override(Settings()):
        page = chosen(CPU_PAIR[1])
        page.query_params["range"] = "0:5000"
        shown(page)
    drawing = sent(page)["drawing"]
    assert (drawing["letters"], drawing["compared"], len(drawing["colours"])) == (["A"], [8], 1)
    assert [box.label for box in page.selectbox if box.key == "step_a"] == ["Step"]
    assert "Longest on the host: `Iterator::Root::BatchV2::Map" in texts(page)
    assert not [toggle for toggle in page.toggle if toggle.key == "stretch"]
    assert "wall_time_us_baseline" in columns(page)
    assert not {"wall_time_us_candidate", "wall_time_us_delta"} & columns(page)


@pytest.mark.parametrize(
    ("name", "place", "longest"), [(CPU_PAIR[1], "host", "Iterator::Root::BatchV2::Map"), (GPU_PAIR[0], "device", None)]
)
def test_a_run_alone_has_its_longest_ops_and_when_none_runs_in_a_sentence(name, place, longest) -> None:
    aligned = align(open_alone(loaded_run(name)))
    spans = aligned.timelines.sides[0].timeline.spans
    on_host = np.array([pair.is_on_host for pair in aligned.timelines.lanes])[aligned.timelines.lane_numbers[0]]
    begin, end = aligned.begin_ps[0], aligned.end_ps[0]
    is_op = (aligned.timelines.op_rows(0) >= 0) & (on_host[spans["lane"]] == (place == "host"))
    start = spans["start_ps"][is_op].clip(begin, end).sort_values()
    until = (spans["start_ps"] + spans["duration_ps"])[start.index].clip(begin, end).cummax()
    idle = (start - until.shift(fill_value=begin)).clip(lower=0).sum() + end - until.iloc[-1]
    sentence = sentences.alone(aligned)
    assert sentence.startswith(f"Step {aligned.positions[0]} takes **{format_time_us((end - begin) / PS_PER_US)}**. ")
    assert f"Longest on the {place}: `{longest or ''}" in sentence
    assert sentence.endswith(f"; for {format_percent(idle / (end - begin))} of it, no op runs there.")


def test_runs_without_steps_are_aligned_at_an_op() -> None:
    page = of_corpus("jax_conv_08", "jax_tpu")
    assert "Not both runs have step times, so time 0 is the start of the same op, and" in texts(page)
    assert sent(page)["drawing"]["compared"] == []
    assert not [box for box in page.selectbox if box.key in ("step_a", "step_b")]


def test_a_candidate_is_chosen_of_several_and_keeps_its_letter_and_colour(page: AppTest) -> None:
    page.query_params["candidate"] = [IDS["filters_16_8"], IDS["filters_16_8_better_input"]]
    first = sent(shown(page))["drawing"]
    assert first["letters"] == ["A", "B"]
    page.segmented_control(key="detail").set_value(IDS["filters_16_8_better_input"])
    second = sent(shown(page))["drawing"]
    assert second["letters"] == ["A", "C"]
    assert second["sides"] == ["filters_512_128", "filters_16_8_better_input"]
    assert second["colours"][0] == first["colours"][0]
    assert second["colours"][1] != first["colours"][1]


def test_a_link_restores_steps_window_selection_range_and_search(page: AppTest) -> None:
    page.query_params |= {
        "step_a": "14",
        "step_b": "20",
        "window": "100:900.5",
        "shift": "25",
        "span": "0:5000",
        "range": "200:700",
        "find": "conv2d",
        "colour": "type",
        "idle_lanes": "true",
        "stretch": "true",
    }
    shown(page)
    data = sent(page)
    assert data["drawing"]["compared"] == [14, 20]
    state = data["state"]
    assert (state["view"], state["range"], state["shift"]) == ([100, 900.5], [200, 700], 25)
    assert (state["colour"], state["all"]) == ("type", True)
    assert [place["id"] for place in data["drawing"]["selected"] if place["side"] == 0] == [5000]
    assert data["drawing"]["find"] == "conv2d"
    assert data["drawing"]["said"].startswith("A: ")
    ranged = data["drawing"]["ranged"]
    assert (ranged["title"], ranged["range"]) == ("500 µs from 200 µs to 700 µs", [200, 700])
    assert ranged["about"].startswith("Ops cover ")
    assert {"wall_time_us_baseline", "wall_time_us_candidate", "wall_time_us_delta"} <= columns(page)
    assert page.toggle(key="stretch").value is True
    expected = {"window": "100:900.5", "shift": "25", "span": "0:5000", "range": "200:700", "colour": "type"}
    assert expected.items() <= data["address"].items(), "the address that the component writes is the one that was read"


def test_a_selected_span_is_shown_with_its_partner_its_op_and_its_launch() -> None:
    with settings.override(Settings()):
        page = chosen(*GPU_PAIR)
        page.query_params["span"] = f"0:{kernel_of_the_typical_step()}"
        shown(page)
    lanes = [lane["label"] for lane in sent(page)["drawing"]["lanes"]]
    shown_details = sent(page)["drawing"]["details"]
    assert shown_details["header"] == ["", "A", "B", "Change"]
    cells = {label: texts for label, *texts in shown_details["rows"]}
    assert {"Start after time 0", "Duration", "Self time", "Launched by", "Starts after its launch", "Step"} <= set(
        cells
    )
    aligned = aligned_pair(*GPU_PAIR)
    steps = [f"{place} (number {step})" for place, step in zip(aligned.positions, aligned.steps, strict=True)]
    assert cells["Step"][:2] == steps
    assert cells["Lane"][0] in lanes
    assert "over all steps" in shown_details["about"]
    assert "B takes " in shown_details["about"]


def kernel_of_the_typical_step() -> int:
    """The position of the longest matched kernel."""
    aligned = aligned_pair(*GPU_PAIR)
    spans, pairs = aligned.timelines.sides[0].timeline.spans, aligned.pairs
    assert pairs is not None
    is_it = (spans["step"] == aligned.steps[0]) & (spans["launch"] >= 0) & (pairs.partner[0] >= 0)
    return int(spans["duration_ps"][is_it].idxmax())


def test_the_sentence_is_of_the_whole_step_wherever_time_0_is() -> None:
    aligned = aligned_pair(*GPU_PAIR)
    assert sentences.lengths(aligned, ["A", "B"]) == (
        "Step 6 of B takes **7.41 ms**, step 4 of A **30.4 ms** (−23.0 ms)."
    )
    usual = [(one.op_name, one.is_wait, one.lost_us) for one in losses(aligned)]
    for op in aligned.timelines.ops_by_time.index[1:20:6]:
        moved = align(aligned.timelines, aligned.steps, int(op))
        assert sentences.lengths(moved, ["A", "B"]) == sentences.lengths(aligned, ["A", "B"])
        assert [(one.op_name, one.is_wait, one.lost_us) for one in losses(moved)] == usual


def test_of_an_op_on_device_and_host_time_0_is_that_on_the_device() -> None:
    aligned = aligned_pair(*FILTERS)
    timelines = aligned.timelines
    row = timelines.ops_by_time.iloc[0]
    assert row["host_or_device"] == "Device"
    assert (timelines.op_stats["op_name"] == row["op_name"]).sum() > 1
    with settings.override(Settings(places=(run_path(next(iter(FILTERS))).parent,))):
        page = AppTest.from_file(str(ROOT / "pages" / "7_Timeline.py"), default_timeout=90)
        page.query_params["baseline"], page.query_params["candidate"] = FILTERS
        page.query_params["align"] = row["op_name"]
        shown(page)
    expected = align(timelines, aligned.steps, int(row.name))
    start = {step[0]: step[1] for step in sent(page)["drawing"]["steps"][0]}[aligned.steps[0]]
    begin = timelines.sides[0].steps.set_index("step")["start_ps"][aligned.steps[0]]
    assert start == pytest.approx((begin - expected.zero_ps[0]) / 1e6)


BAD = [
    *("", "x", "1", "1:2:3", "nan:1", "inf:1", "-1:-5", "5:5", "1e14:2e14", "-9e14:9e14", "0:1e-12", "9" * 400),
    *("0:99999999", "7:0", "<b>:1", "0:0\0", "nan", "-inf", "1e14"),
]


@pytest.mark.parametrize("turn", range(2))
def test_bad_values_in_a_link_stop_nothing(page: AppTest, turn: int) -> None:
    keys = ("window", "range", "span", "shift", "step_a", "step_b", "align", "stretch", "find", "colour", "idle_lanes")
    page.query_params |= {key: BAD[(number + 9 * turn) % len(BAD)] for number, key in enumerate(keys)}
    shown(page)
    assert not page.error
    assert sent(page)["drawing"]["sides"] == list(CPU_PAIR)


@pytest.mark.parametrize("bad", BAD)
def test_bad_numbers_in_a_link_are_none_or_can_be_drawn(bad: str) -> None:
    for count in (1, 2):
        numbers = numbers_in(bad, count)
        assert numbers is None or (len(numbers) == count and max(map(abs, numbers)) < 1e15), numbers


def test_profiles_without_events_say_so(tmp_path: Path) -> None:
    for name in "ab":
        folder = tmp_path / "logs" / "plugins" / "profile" / name
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(space(plane("/host:CPU", line(name, id=1)), hostnames=["vm"]))
    page = AppTest.from_file(str(ROOT / "pages" / "7_Timeline.py"), default_timeout=90)
    page.query_params |= {"baseline": "logs/plugins/profile/a", "candidate": "logs/plugins/profile/b"}
    with settings.override(Settings(places=(tmp_path / "logs",))):
        shown(page)
    assert "The profile holds no events." in texts(page)


def test_the_view_of_other_runs_is_forgotten_but_not_that_of_a_link(page: AppTest) -> None:
    view = {"window": "100:900", "span": "0:5000", "range": "200:700", "step_a": "14", "step_b": "20"}
    page.query_params |= view
    shown(page)
    page.query_params |= {"baseline": IDS[CPU_PAIR[1]], "candidate": IDS[CPU_PAIR[0]]}
    given = sent(shown(page))
    assert not view.keys() & page.query_params.keys()
    assert (given["state"]["view"], given["state"]["range"], given["drawing"]["selected"]) == (None, None, [])
    assert given["drawing"]["compared"] == [8, 10]
    page.query_params |= {
        "baseline": IDS[CPU_PAIR[0]],
        "candidate": IDS[CPU_PAIR[1]],
        "window": "100:901",
        "step_a": "15",
    }
    given = sent(shown(page))
    assert (given["state"]["view"], given["drawing"]["compared"]) == ([100, 901], [15, 8])


def test_a_link_to_a_kernel_selects_it_and_its_heading_is_its_op(page: AppTest) -> None:
    spans = aligned_pair(*GPU_PAIR).timelines.sides[0].timeline.spans
    name = str(spans["name"].iloc[kernel_of_the_typical_step()])
    with settings.override(Settings()):
        page = chosen(*GPU_PAIR)
        page.query_params["kernel"] = name
        shown(page)
    (selected, _) = sent(page)["drawing"]["selected"]
    span = spans.iloc[selected["id"]]
    assert span["name"] == name
    shown_details = sent(page)["drawing"]["details"]
    assert shown_details["title"] == span["op_name"]
    assert name in [text for _, text in shown_details["names"]], "whole"
    assert sent(page)["drawing"]["find"] == ""


@pytest.mark.thorough  # of a kernel with a shorter one above
def test_a_kernel_with_a_long_name_is_shown_whole_once() -> None:
    name = max(loaded_run("tf_gpu").table("kernel_stats")["kernel_name"], key=len)
    assert len(name) > 800
    page = of_corpus("tf_gpu", "tf_gpu", kernel=name, host="all")
    shown_details = sent(page)["drawing"]["details"]
    assert [text for _, text in shown_details.pop("names")] == [name]
    assert name[:200] not in json.dumps(shown_details)


def test_a_link_to_what_does_not_run_in_the_step_says_so(page: AppTest) -> None:
    for parameter in ("op", "kernel"):
        page.query_params |= {parameter: f"no_{parameter}", "find": "no such op"}
        shown(page)
        assert f"`no_{parameter}` does not start in the compared step." in texts(page)
        assert sent(page)["drawing"]["selected"] == []
        del page.query_params[parameter]


def test_a_link_to_a_moment_shows_and_marks_it(page: AppTest) -> None:
    page.query_params["at"] = "1:60886.291:436.371"
    state = sent(shown(page))["state"]
    begin, end = state["range"]
    assert end - begin == pytest.approx(436.371)
    assert state["view"] == pytest.approx([begin - 436.371, end + 436.371])
    assert "Ops cover" in sent(page)["drawing"]["ranged"]["about"]
    compared = sent(page)["drawing"]["compared"]
    assert (compared[0] == 10, compared[1] == 8) == (True, False)
    assert f"Step {position_of_compared(page, 1)} of B takes **" in texts(page)
    assert "**, the typical step of A (6) **213 ms** (" in texts(page)


def test_a_link_to_an_op_selects_it_and_shows_both_sides(page: AppTest) -> None:
    page.query_params["op"] = "autoencoder_1/image_1/convolution"
    given = sent(shown(page))
    assert [one["side"] for one in given["drawing"]["selected"]] == [0, 1]
    low, high = given["state"]["view"]
    assert all(low < one["start"] < one["start"] + one["duration"] < high for one in given["drawing"]["selected"])
    assert given["drawing"]["details"]["title"] == "autoencoder_1/image_1/convolution"
    assert given["drawing"]["details"]["about"].startswith("Conv2D · over all steps")


def test_a_slow_step_is_beside_a_usual_one_of_its_run(page: AppTest) -> None:
    """As the Overview links to it; runs of one host have the choice of hosts only then."""
    where = {"timeline_host": "localhost (B)", "timeline_beside": ANOTHER_STEP, "step_a": "20", "step_b": "6"}
    page.query_params |= where
    drawn = sent(shown(page))["drawing"]
    assert drawn["compared"] == [20, 6]
    assert drawn["letters"] == ["B", "B again"]
    assert "Step 2 of `B again` takes **" in texts(page) and ", step 16 of `B` **" in texts(page)
    page.selectbox(key="timeline_beside").select_index(0)
    assert sent(shown(page))["drawing"]["letters"] == ["A", "B"]


def test_a_timeline_whose_profile_has_gone_is_a_sentence_and_the_other_pages_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TFCOMPARE_STORE", "off")
    shutil.copytree(run_path("filters_16_8"), tmp_path / "logs" / "plugins" / "profile" / "mine")
    (found,) = find_runs(tmp_path / "logs")
    with settings.override(Settings(places=(tmp_path / "logs",))):
        kernels, overview, timeline = (
            AppTest.from_file(str(ROOT / "pages" / name), default_timeout=90)
            for name in ("3_Kernel_stats.py", "1_Overview.py", "7_Timeline.py")
        )
        for made in (kernels, overview, timeline):
            made.query_params["baseline"] = found.id
        shown(kernels)
        found.files[0].path.unlink()
        assert ["cannot be opened" in error.value for error in shown(timeline).error] == [True]
        assert any(text.value.startswith("No timeline: ") for text in shown(overview).caption)
        assert "What to try next" in [title.value for title in overview.subheader]
