"""What every page begins with: the selection from address or session, loading, and pages that have nothing to show."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLE_RUNS, SAMPLES, run_path
from tests.store.runs_in_stores import copied, put
from tests.ui.found_runs import found
from tests.ui.sidebar_widgets import named, names
from tfcompare import settings
from tfcompare.comparison import compare
from tfcompare.run import Run, load
from tfcompare.settings import Settings
from tfcompare.sources.logdir import FoundRun, find_runs
from tfcompare.ui.frame.loading import reading_sentence
from tfcompare.ui.frame.shell import why_not

PAGE = """
import streamlit as st
from tfcompare import ui

view = ui.setup("A page", needs="pair")
st.session_state["seen"] = (
    view.comparison.baseline.name, tuple(run.name for run in view.comparison.candidates), view.per, view.host,
    view.comparison.per,
)
"""

AUTOENCODER = SAMPLES / "autoencoder"
IDS = {run.name: run.id for run in find_runs(AUTOENCODER)}


@pytest.fixture
def page(tmp_path: Path) -> Iterator[AppTest]:
    """A page that only says what it was given, on the recorded samples."""
    script = tmp_path / "page.py"
    script.write_text(PAGE, encoding="utf-8")
    with settings.override(Settings(places=(AUTOENCODER,))):
        yield AppTest.from_file(str(script), default_timeout=90)


def seen(page: AppTest) -> tuple[object, ...]:
    assert not page.exception
    return page.session_state["seen"]


def showing(page: AppTest, *places: Path) -> AppTest:
    with settings.override(Settings(places=places)):
        return page.run()


def chips(page: AppTest) -> list[tuple[str, str]]:
    """The colour and text of each chip in the page's header."""
    texts = [element.value.replace("\\", "") for element in page.main.markdown]
    return [match.groups() for text in texts if (match := re.fullmatch(r":(\w+)-badge\[(.*)\]", text))]


def per(page: AppTest) -> str:
    """The unit and the steps that the header names."""
    return next(caption.value for caption in page.caption if caption.value.startswith("per "))


def caveats(page: AppTest) -> str:
    """What the header's button unfolds."""
    return "\n".join(element.value for element in page.main.markdown if element.value.startswith("- "))


def said(page: AppTest) -> str:
    return "\n".join(element.value for element in (*page.error, *page.info)).replace("\\", "")


def test_without_a_choice_the_samples_pair_is_compared_and_told(page: AppTest) -> None:
    assert seen(page.run()) == ("filters_512_128", ("filters_16_8",), "step", None, "step")
    assert chips(page) == [("gray", "**A** filters_512_128"), ("violet", "**B** filters_16_8")]
    assert "per step" in [caption.value for caption in page.caption]
    assert page.query_params["baseline"] == IDS["filters_512_128"]
    assert page.query_params["candidate"] == IDS["filters_16_8"]
    assert page.title[0].value == "A page"
    assert "tfcompare.step_marker" not in names(page.selectbox), "these runs mark their steps"
    named(page.segmented_control, "tfcompare.per").set_value("run").run()
    assert (seen(page)[2], page.query_params["per"]) == ("run", "run")
    named(page.segmented_control, "tfcompare.per").set_value("step").run()
    assert "per" not in page.query_params


def test_a_deep_link_is_followed(page: AppTest) -> None:
    page.query_params["baseline"] = IDS["filters_16_8"]
    page.query_params["candidate"] = [IDS["filters_16_8_again"], IDS["filters_512_128"]]
    page.query_params["per"] = "run"
    page.query_params["mine"] = "kept"
    expected = ("filters_16_8", ("filters_16_8_again", "filters_512_128"), "run", None, "run")
    assert seen(page.run()) == expected
    assert page.query_params["mine"] == "kept", "what pages keep in the address is theirs"
    page.query_params.clear()  # as a click in the sidebar does
    assert seen(page.run()) == expected


def test_an_unknown_run_is_named(page: AppTest) -> None:
    page.query_params["baseline"] = IDS["filters_16_8"]
    page.query_params["candidate"] = "gone/plugins/profile/x"
    page.run()
    assert "There is no run `gone/plugins/profile/x` here" in said(page)
    assert seen(page)[:2] == ("filters_16_8", ("filters_16_8",)), "the baseline is shown alone"


def test_a_link_to_runs_that_are_gone_shows_no_others_however_often_the_page_is_drawn(
    page: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked: list[dict[str, object]] = []
    monkeypatch.setattr("streamlit.page_link", lambda *_, query_params, **__: linked.append(query_params))
    page.query_params["baseline"], page.query_params["candidate"] = "gone", "gone too"
    for _ in range(2):
        page.run()
        (only,) = (*page.error, *page.info)
        assert only.value.startswith("There is no run `gone` or `gone too` here. ")
    named(page.segmented_control, "tfcompare.per").set_value("run").run()
    assert "There is no run `gone` or `gone too` here" in said(page), "another unit does not choose other runs"
    assert linked and all((to["baseline"], to["candidate"]) == (["gone"], ["gone too"]) for to in linked)
    named(page.selectbox, "tfcompare.baseline").set_value(IDS["filters_16_8"]).run()
    assert "There is no run" not in said(page)
    assert seen(page)[0] == "filters_16_8"


def test_candidates_that_cannot_be_read_cost_a_sentence_each(page: AppTest, tmp_path: Path) -> None:
    damaged = bytearray(next(SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")).read_bytes())
    damaged[2000:60000] = b"\xff" * 58000
    for name, data in (("empty", b""), ("damaged", damaged)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vm.xplane.pb").write_bytes(data)
    good = (SAMPLE_RUNS["filters_512_128"], SAMPLE_RUNS["filters_16_8"])
    places = (*good, tmp_path / "empty", tmp_path / "damaged")
    ids = {run.path: run.id for run in find_runs(*places)}
    baseline, candidate, *broken = (next(ids[path] for path in ids if path.is_relative_to(one)) for one in places)
    page.query_params["baseline"] = baseline
    page.query_params["candidate"] = [*broken, candidate]
    showing(page, Path("/no/such/place"), *places)
    assert seen(page)[:2] == ("filters_512_128", ("filters_16_8",))
    assert said(page).count("is empty (0 bytes)") == 1
    assert said(page).count("not a readable profile") == 1


@pytest.mark.parametrize("is_empty", [True, False])
def test_without_runs_the_page_says_why_and_what_to_do(page: AppTest, tmp_path: Path, is_empty: bool) -> None:
    place = tmp_path / "logs" if is_empty else tmp_path / "missing"
    if is_empty:
        place.mkdir()
    showing(page, place)
    assert not page.exception
    assert "There is no run to show" in said(page)
    assert ("no profile run here" if is_empty else "there is no such file or folder") in said(page)
    assert "on the home page" in said(page)


def test_one_run_alone_is_shown(page: AppTest) -> None:
    page.query_params["baseline"] = IDS["filters_16_8"]
    assert seen(page.run())[:2] == ("filters_16_8", ("filters_16_8",))
    assert chips(page) == [("gray", "filters_16_8")]
    assert not page.info
    assert not page.warning


def test_pages_that_have_nothing_to_show_are_dimmed_and_say_why() -> None:
    on_cpu, on_gpu = (load(run_path(name)) for name in ("filters_16_8", "gpu_filters_16_8"))
    xla = {
        "XLA": "No compiled XLA programs and no compilations were captured.",
        "Hosts": "The runs have one host and at most one device.",
    }
    of_cpu = why_not(compare(on_cpu, on_cpu))
    assert of_cpu.pop("Kernel stats").startswith("No kernels. `filters_16_8` ran without GPU events: on the CPU only")
    assert of_cpu == xla
    assert why_not(compare(on_cpu, on_gpu)) == xla
    tpus = load(run_path("jax_tpu"))
    on_tpus = why_not(compare(tpus, tpus))
    assert "tf.data" in on_tpus and "XLA" not in on_tpus
    assert "Hosts" not in why_not(compare(on_cpu, load(run_path("workers_balanced"))))


def test_hosts_can_be_chosen_where_there_are_several(page: AppTest) -> None:
    places = (run_path("workers_slow_input"), SAMPLE_RUNS["filters_16_8"])
    page.query_params["baseline"], page.query_params["candidate"] = "slow_input", "filters_16_8"
    showing(page, *places)
    hosts = named(page.selectbox, "tfcompare.host").options
    assert hosts == ["all hosts", "worker0", "worker1", "worker2"]
    page.query_params["host"] = "no-such-host"
    showing(page, *places)
    assert "All hosts are shown instead" in said(page)
    assert seen(page)[3] is None


def of_jax(page: AppTest, *names: str, **query: str) -> AppTest:
    """The page on runs that mark no steps."""
    paths = [run_path(name) for name in names]
    ids = [next(found.id for found in find_runs(*paths) if found.path == path) for path in paths]
    page.query_params["baseline"], page.query_params["candidate"] = ids[0], ids[1:]
    for name, value in query.items():
        page.query_params[name] = value
    return showing(page, *paths)


MARKER = "PjitFunction(forward_3d_conv)"


def test_runs_without_steps_get_them_from_a_host_event_that_is_chosen(page: AppTest) -> None:
    of_jax(page, "jax_conv_legacy", "jax_conv_08")
    assert seen(page)[4] == "device"
    assert "Shown per device, since step times are missing." in [caption.value for caption in page.caption]
    choice = named(page.selectbox, "tfcompare.step_marker")
    assert (choice.value, choice.options[0]) == (None, MARKER)
    with settings.override(Settings(places=(run_path("jax_conv_legacy"), run_path("jax_conv_08")))):
        choice.set_value("PJRT_LoadedExecutable_Execute").run()
    assert seen(page)[4] == "step"
    assert "Figures are per run" not in caveats(page)
    assert any("; steps that begin with `PJRT_LoadedExecutable_Execute`" in caption.value for caption in page.caption)
    of_jax(page, "jax_conv_legacy", "jax_conv_08", step_marker=MARKER)  # a link to another
    assert (seen(page)[4], page.query_params["step_marker"]) == ("step", MARKER)
    assert named(page.selectbox, "tfcompare.step_marker").value == MARKER
    assert not page.warning


def test_a_run_without_the_event_keeps_its_own_steps_and_that_is_told(page: AppTest) -> None:
    of_jax(page, "jax_tpu", "jax_conv_08", step_marker=MARKER)
    assert seen(page)[4] == "step"
    (warning,) = page.warning
    told = "`tpu_inference_2` cannot be shown with steps that begin with `PjitFunction(forward"
    assert warning.value.startswith(told)
    assert "; steps that begin with `PjitFunction" in per(page)
    of_jax(page, "jax_tpu", "jax_conv_08", step_marker="no such *event*" + "x" * 100_000)
    assert seen(page)[4] == "device"
    told = "`tpu_inference_2` and `jax_conv_minimal_08` cannot be shown with steps that begin with `no such *event*"
    assert told in page.warning[0].value
    assert len(page.warning[0].value) < 500
    assert "begin with" not in per(page)
    assert "Figures are per device, not per step" in caveats(page)


def test_runs_of_a_store_whose_profiles_are_gone_keep_their_own_steps(page: AppTest, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    for name in ("jax_conv_legacy", "jax_conv_08"):
        copied(name, logs)
    put([logs], tmp_path / "store")
    shutil.rmtree(logs)
    page.query_params["step_marker"] = MARKER
    with settings.override(Settings(store_url=str(tmp_path / "store"))):
        page.run()
    assert seen(page)[4] == "device"
    assert "or the profile is not at hand" in page.warning[0].value
    assert named(page.selectbox, "tfcompare.step_marker").value == MARKER


def test_a_bad_setting_is_told(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_current", None)
    monkeypatch.setattr("sys.argv", ["app.py", "--rot"])
    page.run()
    assert not page.exception
    assert "unrecognized arguments: --rot" in said(page)


def test_reading_shows_progress_and_ends_with_the_page(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    said_meanwhile: list[str] = []
    is_said = Event()

    def late(found: FoundRun, **steps: Any) -> Run:
        assert is_said.wait(90)
        return load(found, **steps)

    def record(_: object, value: float, text: str) -> None:
        said_meanwhile.append(f"{value:.2f} {text}")
        is_said.set()

    monkeypatch.setattr("tfcompare.loading.load", late)
    monkeypatch.setattr("streamlit.delta_generator.DeltaGenerator.progress", record)
    places = (SAMPLE_RUNS["filters_512_128"], SAMPLE_RUNS["filters_16_8"])
    with settings.override(Settings(places=places, cache_bytes=54_321)):  # a size of its own: a cache of its own
        page.run()
    assert seen(page)[0] == "filters_512_128"
    assert said_meanwhile[0].startswith("0.00 Reading run 1 of 2: ")


def test_progress_is_told_in_words() -> None:
    assert reading_sentence(found("a"), 3, 5) == "Reading run 4 of 5: a (10 B)"


def test_a_page_that_runs_out_of_memory_ends_with_one_sentence(tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(
        'from tfcompare import ui\nwith ui.page("A page", needs="runs"):\n    raise MemoryError\n', encoding="utf-8"
    )
    with settings.override(Settings(places=(AUTOENCODER,))):
        page = AppTest.from_file(str(script), default_timeout=90).run()
    assert not page.exception
    assert [error.value for error in page.error] == [
        "This page takes more memory than the server has free. Choose fewer runs, or a range of steps."
    ]
