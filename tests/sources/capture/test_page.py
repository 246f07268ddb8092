"""The page that records: who may use it, and what it says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import SAMPLE_RUNS, SAMPLES
from tests.sources.capture.workers import free_ports
from tfcompare import settings
from tfcompare.settings import Settings, app_folder
from tfcompare.sources.capture.addresses import Address, LeftOut
from tfcompare.sources.capture.recording import Recorded, Request
from tfcompare.sources.remote.places import RemotePath
from tfcompare.ui.frame import own_captures
from tfcompare.ui.frame.search import rescan

HERE = {"Host": "localhost:8501"}
PROXY = {"Host": "localhost:8501", "X-Forwarded-For": "127.0.0.1"}
FOREIGN = {"Host": "profiles.example.com"}


class Asking:
    """The headers that the browser sends from now on."""

    headers = HERE


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Asking:
    asking = Asking()

    class Context:
        timezone = "UTC"

        @property
        def headers(self) -> Context:
            return self

        def to_dict(self) -> dict[str, str]:
            return asking.headers

    monkeypatch.setattr("streamlit.context", Context())
    return asking


@pytest.fixture
def page(tmp_path: Path, browser: Asking) -> Iterator[AppTest]:  # noqa: ARG001
    with settings.override(Settings(places=(SAMPLES / "autoencoder",), data_folder=tmp_path / "data")):
        yield AppTest.from_file(str(app_folder() / "pages" / "11_Capture.py"), default_timeout=90)


def said(page: AppTest) -> str:
    assert not page.exception
    return "\n".join(e.value for e in (*page.error, *page.info, *page.warning, *page.success)).replace("\\", "")


def button_of(page: AppTest, label: str):
    return next(button for button in page.main.button if button.label == label)


def press(page: AppTest, label: str) -> AppTest:
    return button_of(page, label).click().run()


def wait_until_told(page: AppTest) -> str:
    """What the page says in the end of a capture in the background."""
    until = time.monotonic() + 90
    while not said(page) and time.monotonic() < until:
        page.run()
    return said(page)


def test_from_elsewhere_the_page_says_why_not_and_nothing_else(page: AppTest, browser: Asking) -> None:
    for browser.headers in (PROXY, FOREIGN, {}):
        page.run()
        assert "only in a browser on the machine that serves this page" in said(page)
        assert "tfcompare serve --allow-capture" in said(page)
        assert not (page.main.text_input or page.main.button or page.main.markdown)


def test_the_button_asks_once_more(page: AppTest, browser: Asking, tmp_path: Path, monkeypatch) -> None:
    started: list[object] = []
    monkeypatch.setattr("tfcompare.ui.pages.capture.BackgroundRecording", lambda *words: started.append(words))
    button = button_of(page.run(), "Capture")
    browser.headers = PROXY
    button.click().run()
    assert started == []
    assert "only in a browser on the machine" in said(page)
    assert not (tmp_path / "data" / "captures").exists()


def test_whoever_started_the_server_can_let_everybody_record(page: AppTest, browser: Asking, tmp_path: Path) -> None:
    browser.headers = PROXY
    with settings.override(Settings(places=(SAMPLES,), data_folder=tmp_path, allow_capture=True)):
        assert button_of(page.run(), "Capture")
    assert said(page) == ""


def test_what_is_asked_for_and_where_captures_go_is_said_before(page: AppTest, tmp_path: Path) -> None:
    page.run()
    address = page.text_input(key="address")
    assert address.value == "localhost:6009"
    by_label = {widget.label: widget.value for widget in (*page.main.selectbox, *page.main.number_input)}
    assert by_label == {
        "Duration (ms)": 2000,
        "Host tracer": 2,
        "Device tracer": 1,
        "Python tracer": 0,
        "Retries": 3,
        "Delay (ms)": 0,
    }
    assert all(widget.help for widget in (*page.main.selectbox, *page.main.number_input, *page.main.text_input))
    assert all(form in address.help for form in ("`host:port`", "`dns:name:port`", "`tpu:name`"))
    assert "tf.profiler.experimental.server.start(6009)" in page.main.markdown[0].value
    assert page.main.caption[0].value == f"Captures are stored in `{tmp_path / 'data' / 'captures'}`"


def test_what_has_to_be_installed_is_said_in_place_of_the_form(page: AppTest, monkeypatch) -> None:
    monkeypatch.setattr("tfcompare.ui.pages.capture.is_installed", lambda: False)
    page.run()
    assert not page.exception
    assert "pip install 'xprof" in page.warning[0].value.replace("\\", "")
    assert not [button for button in page.button if button.label == "Capture"]


def test_a_link_fills_the_form_and_slips_are_told_and_nothing_is_recorded(page: AppTest, tmp_path: Path) -> None:
    page.query_params.update({"address": "worker:1,worker", "duration": "750"})
    page.run()
    assert page.text_input(key="address").value == "worker:1,worker"
    assert page.number_input(key="duration").value == 750
    press(page, "Capture")
    assert "worker: has no port; expected host:port" in said(page)
    page.text_input(key="address").set_value("worker:1")
    page.text_input(key="tfcompare.capture.name").set_value("../elsewhere")
    press(page, "Capture")
    assert "'../elsewhere' cannot be the name of a run" in said(page)
    assert not (tmp_path / "data").exists()


def test_an_address_that_does_not_answer_is_told(page: AppTest) -> None:
    address = f"localhost:{free_ports(1)[0]}"
    page.run().text_input(key="address").set_value(address)
    press(page, "Capture")
    assert f"nothing was recorded: {address} has no profiler server listening" in wait_until_told(page)
    assert not button_of(page, "Capture").disabled


def test_the_result_of_each_address_is_shown(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def record(request: Request, logdir: Path, name: str, **_: object) -> Recorded:
        run = logdir / name / "plugins" / "profile" / STAMPS[0]
        run.mkdir(parents=True)
        target, tpu = request.addresses
        assert isinstance(target, Address)
        profile = next(SAMPLE_RUNS["filters_16_8_again"].rglob("*.xplane.pb")).read_bytes()
        (run / target.file_name).write_bytes(profile)
        return Recorded(run, {target: len(profile)}, (LeftOut(tpu, "has *no* network"),))

    monkeypatch.setattr("tfcompare.sources.capture.recording.record", record)
    page.run().text_input(key="address").set_value("worker:1,tpu:zone-a/t")
    press(page, "Capture")
    assert "Not in the run: 1 of 2 addresses" in wait_until_told(page)
    table = page.main.table[0].value
    assert table["Result"].to_dict() == {
        r"worker\:1": "captured: 22 steps, 1.58 MB",
        r"tpu\:zone-a/t": r"has \*no\* network",
    }
    assert f"/capture/plugins/profile/{STAMPS[0]}`" in page.main.caption[-1].value


STAMPS = ("2026_11_21_18_43_09", "2026_11_21_18_50_00")


@pytest.fixture
def captured(page: AppTest, tmp_path: Path) -> list[Path]:
    """Two runs that were recorded here under one name. (`page` reads its settings first.)"""
    del page
    profile = next(SAMPLE_RUNS["filters_16_8_again"].rglob("*.xplane.pb"))
    runs = [tmp_path / "data" / "captures" / "before" / "plugins" / "profile" / stamp for stamp in STAMPS]
    for run in runs:
        run.mkdir(parents=True)
        (run / "localhost_6009.xplane.pb").write_bytes(profile.read_bytes())
    rescan()
    return runs


def listed_captures(page: AppTest) -> list[str]:
    return [name for name in page.sidebar.selectbox[0].options if name.startswith("captures/")]


def delete_buttons(page: AppTest) -> list[str]:
    return [button.label for button in page.main.button if button.label in ("Delete", "Delete for good", "Keep")]


def test_a_captured_run_is_deleted_after_a_question_and_no_longer_chosen(page: AppTest, captured: list[Path]) -> None:
    ids = [f"captures/before/plugins/profile/{stamp}" for stamp in STAMPS]
    page.query_params["baseline"], page.query_params["candidate"] = ids
    page.run()
    assert page.main.subheader[0].value == "Captured here"
    assert len(listed_captures(page)) == len(delete_buttons(page)) == 2
    told = [text.value for text in page.main.markdown if text.value.startswith("`captures/before/")]
    assert [text.partition(", ")[2] for text in told] == ["1.58 MB"] * 2
    press(page, "Delete")
    assert delete_buttons(page) == ["Delete for good", "Keep", "Delete"]
    press(page, "Keep")
    assert delete_buttons(page) == ["Delete", "Delete"]
    press(press(page, "Delete"), "Delete for good")
    assert [run.exists() for run in captured] == [False, True]
    assert said(page) == ""
    assert page.query_params["candidate"] == ids[1]
    assert "baseline" not in page.query_params
    press(press(page, "Delete"), "Delete for good")
    assert delete_buttons(page) == []
    assert list(captured[0].parents[3].iterdir()) == [], "no empty folders are left"


def test_captures_are_listed_and_deleted_by_those_who_may_record(page, browser, captured) -> None:
    press(page.run(), "Delete")
    browser.headers = PROXY
    press(page, "Delete for good")
    assert all(run.exists() for run in captured)
    assert listed_captures(page) == delete_buttons(page) == []
    assert "only in a browser on the machine" in said(page)


def test_only_what_was_captured_here_can_be_deleted(captured: list[Path], tmp_path: Path) -> None:
    here = Settings(data_folder=tmp_path / "data")
    assert own_captures.is_captured(here, captured[0])
    own = own_captures.folder(here)
    for path in (
        *(own, own / "before", captured[0].parent, captured[0] / "x", own / "x" / captured[0].relative_to(own)),
        *(SAMPLE_RUNS["filters_16_8"], tmp_path / "logs" / "plugins" / "profile" / STAMPS[0], RemotePath("s3:", "x")),
    ):
        assert not own_captures.is_captured(here, path), path


def test_one_that_cannot_be_deleted_says_why(page: AppTest, captured: list[Path], monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tfcompare.sources.abandoned_folders.delete", refuse)
    press(press(page.run(), "Delete"), "Delete for good")
    assert said(page) == f"`captures/before/{STAMPS[0]}` cannot be deleted: Permission denied."
    assert all(run.exists() for run in captured)
