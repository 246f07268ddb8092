"""Two hosts beside each other on the timeline page, run by Streamlit without a browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT, SAMPLES
from tests.ui.page_texts import texts
from tests.ui.test_timeline import sent
from tfcompare import settings
from tfcompare.settings import Settings
from tfcompare.sources.logdir import find_runs
from tfcompare.views.links import ANOTHER_STEP

IDS = {run.path.parents[2].name: run.id for run in find_runs(SAMPLES)}
KEYS = ("timeline_host", "timeline_beside")


@pytest.fixture
def page() -> Iterator[AppTest]:
    with settings.override(Settings()):
        yield AppTest.from_file(str(ROOT / "pages" / "7_Timeline.py"), default_timeout=90)


def shown(page: AppTest, *runs: str, **view: str) -> AppTest:
    page.query_params |= dict(zip(("baseline", "candidate"), (IDS[run] for run in runs), strict=False)) | view
    page.run()
    assert not page.exception
    assert not page.error
    return page


def boxes(page: AppTest) -> dict[str, list[str]]:
    return {str(box.key): box.options for box in page.selectbox if box.key in KEYS}


def test_a_host_of_a_run_alone_is_shown_alone(page: AppTest) -> None:
    drawn = sent(shown(page, "slow_input"))["drawing"]
    assert (drawn["letters"], drawn["clock"]) == (["A"], None)
    assert boxes(page)["timeline_beside"] == ["no other host", "worker0", "worker2", ANOTHER_STEP]


def test_the_slow_host_reaches_the_collective_after_the_other_one_and_a_third_can_be_chosen(page: AppTest) -> None:
    given = sent(shown(page, "slow_input", timeline_host="worker0", timeline_beside="worker1", step_a="15"))
    assert "In step 4, `worker1` reaches `CollectiveReduceV2` **8.63 ms** after `worker0`." in texts(page)
    places = ["the collective", "+8.04 ms in Iterator::Root", "+8.00 ms in read"]
    assert [jump["text"] for jump in given["drawing"]["jumps"]] == places
    assert "Clock offset of `worker1`: +337 µs ± 890 µs (95 %)" in texts(page)
    drawn = given["drawing"]
    assert drawn["compared"] == [15, 15]
    assert (drawn["letters"], drawn["marks"]) == (["worker0", "worker1"], ["1", "2"])
    assert drawn["clock"]["error"] == pytest.approx(890, abs=1)
    assert drawn["jumps"][0]["text"] == "the collective"
    assert [box.key for box in page.selectbox if str(box.key).startswith("step")] == ["step_a"], "one step of both"
    assert "stretch" not in [one.key for one in page.toggle]

    jump = drawn["jumps"][0]
    shown(page, span=f"{jump['side']}:{jump['id']}")
    assert start_of_selected(page)[-1] == "+8.63 ms"
    assert sent(page)["drawing"]["details"]["header"] == ["", "worker0", "worker1", "Change"]
    assert "Steps, kernels and memory of this op" not in texts(page), "its page shows runs, not two hosts"

    shown(page, span="0:20", window="-9000:0", range="-500:0")
    page.selectbox(key="timeline_beside").select("worker2")
    given = sent(shown(page))
    assert given["drawing"]["compared"] == [15, 15], "the step stays, what was selected goes"
    assert given["drawing"]["letters"] == ["worker0", "worker2"]
    assert (given["drawing"]["selected"], given["state"]["view"], given["state"]["range"]) == ([], None, None)


def test_with_an_op_at_time_0_the_sentence_is_the_same_and_times_count_from_that_op(page: AppTest) -> None:
    view = {"timeline_host": "worker0", "timeline_beside": "worker2", "step_a": "15"}
    drawn = sent(shown(page, "balanced", **view))["drawing"]
    (sentence,) = [one.value for one in page.markdown if "In step 5" in one.value]
    assert abs(drawn["clock"]["late"]) < drawn["clock"]["error"]
    assert "it is unknown which of `worker0` and `worker2` reaches" in sentence
    assert [jump["text"] for jump in drawn["jumps"]] == ["the collective"], "nothing is lost"
    shown(page, span=f"0:{drawn['jumps'][0]['id']}")
    assert start_of_selected(page)[-1] == "< 710 µs", "within the clock error"
    page.selectbox(key="align").select("CollectiveReduceV2")
    shown(page)
    assert sentence in [one.value for one in page.markdown]
    assert "Aligned at the same op. Clock offset of `worker2`: " in texts(page)
    assert [cell.lstrip("+") for cell in start_of_selected(page)] == ["0 µs", "0 µs", "0 µs"]


def start_of_selected(page: AppTest) -> list[str]:
    """When the selected span and its partner start, and how far apart."""
    return next(cells for label, *cells in sent(page)["drawing"]["details"]["rows"] if label == "Start after time 0")


def test_hosts_of_the_candidate_are_aligned_too_and_have_its_letter(page: AppTest) -> None:
    view = {"timeline_host": "worker0 (B)", "timeline_beside": "worker1 (B)", "step_a": "15"}
    given = sent(shown(page, "balanced", "slow_input", **view))
    assert "In step 4, `worker1` reaches `CollectiveReduceV2` **8.63 ms** after `worker0`." in texts(page)
    assert given["drawing"]["sides"] == ["slow_input (worker0)", "slow_input (worker1)"]
    assert boxes(page)["timeline_beside"] == [
        *("same host of A", "worker1 (A)", "worker2 (A)", "worker1 (B)", "worker2 (B)", ANOTHER_STEP)
    ]


def test_hosts_of_two_runs_are_compared_step_by_step(page: AppTest) -> None:
    view = {"timeline_host": "worker0 (A)", "timeline_beside": "worker1 (B)"}
    given = sent(shown(page, "balanced", "slow_input", **view))["drawing"]
    assert (given["clock"], given["letters"]) == (None, ["worker0 (A)", "worker1 (B)"])
    assert "of `worker1 (B)` takes **" in texts(page)
    assert "Aligned at the end of the collective" not in texts(page)


def test_a_link_that_names_a_host_of_the_baseline_without_a_letter_still_shows_it(page: AppTest) -> None:
    shown(page, "balanced", "slow_input", timeline_host="worker1")
    assert page.selectbox(key="timeline_host").value == "worker1 (A)"
    assert sent(page)["drawing"]["letters"] == ["A", "B"]


def test_bad_hosts_in_a_link_stop_nothing(page: AppTest) -> None:
    for bad in ("worker0", "<b>", "worker1 (Z)"):
        shown(page, "slow_input", timeline_beside=bad, timeline_host="worker0")
        assert sent(page)["drawing"]["letters"] == ["A"], bad
