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
from tfcompare.sources.capture import Address, LeftOut, Recorded, Request
from tfcompare.sources.remote.places import RemotePath
from tfcompare.ui.frame.access import own_captures
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
    with settings.override(Settings(places=(SAMPLES / "autoencoder",), data=tmp_path / "data")):
        yield AppTest.from_file(str(app_folder() / "pages" / "11_Capture.py"), default_timeout=90)


def said(page: AppTest) -> str:
    assert not page.exception
    return "\n".join(e.value for e in (*page.error, *page.info, *page.warning, *page.success)).replace("\\", "")


def record_button(page: AppTest):
    return next(button for button in page.button if button.label == "Capture")


@pytest.mark.parametrize("headers", [PROXY, FOREIGN, {}])
def test_from_elsewhere_the_page_says_why_not_and_nothing_else(page: AppTest, browser: Asking, headers) -> None:
    browser.headers = headers
    page.run()
    assert "only in a browser on the machine that serves this page" in said(page)
    assert "tfcompare serve --allow-capture" in said(page)
    assert not page.main.text_input
    assert not page.main.button
    assert not page.main.markdown


@pytest.mark.parametrize("headers", [PROXY, FOREIGN])
def test_the_button_asks_once_more(page: AppTest, browser: Asking, tmp_path: Path, headers, monkeypatch) -> None:
    started: list[object] = []
    monkeypatch.setattr("tfcompare.ui.pages.capture.BackgroundRecording", lambda *words: started.append(words))
    page.run()
    button = record_button(page)
    browser.headers = headers
    button.click().run()
    assert started == []
    assert "only in a browser on the machine" in said(page)
    assert not (tmp_path / "data" / "captures").exists()


def test_whoever_started_the_server_can_let_everybody_record(page: AppTest, browser: Asking, tmp_path: Path) -> None:
    browser.headers = PROXY
    with settings.override(Settings(places=(SAMPLES,), data=tmp_path, allow_capture=True)):
        page.run()
    assert record_button(page)
    assert said(page) == ""


def test_what_is_asked_for_at_first(page: AppTest) -> None:
    page.run()
    assert page.text_input(key="address").value == "localhost:6009"
    assert page.number_input(key="duration").value == 2000
    by_label = {widget.label: widget.value for widget in (*page.main.selectbox, *page.main.number_input)}
    assert by_label == {
        "Duration (ms)": 2000, "Host tracer": 2, "Device tracer": 1, "Python tracer": 0, "Retries": 3, "Delay (ms)": 0,
    }  # fmt: skip
    assert all(widget.help for widget in (*page.main.selectbox, *page.main.number_input, *page.main.text_input))
    assert "tf.profiler.experimental.server.start(6009)" in page.main.markdown[0].value


def test_a_link_fills_the_form_and_records_nothing(page: AppTest, tmp_path: Path) -> None:
    page.query_params["address"] = "worker:1,worker:2"
    page.query_params["duration"] = "750"
    page.run()
    assert page.text_input(key="address").value == "worker:1,worker:2"
    assert page.number_input(key="duration").value == 750
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("address", "localhost", "localhost: has no port; expected host:port"),
        ("address", "http://localhost:6009", "is no scheme of a profiler service"),
        ("address", "tpu:--help", "tpu:--help: is no name of a TPU; expected tpu:NAME"),
        ("tfcompare.capture.name", "../elsewhere", "'../elsewhere' cannot be the name of a run"),
    ],
)
def test_slips_are_told(page: AppTest, field: str, value: str, message: str, tmp_path: Path) -> None:
    page.run()
    page.text_input(key=field).set_value(value)
    record_button(page).click().run()
    assert message in said(page)
    assert not (tmp_path / "data").exists()


def test_an_address_that_does_not_answer_is_told(page: AppTest) -> None:
    page.run()
    address = f"localhost:{free_ports(1)[0]}"
    page.text_input(key="address").set_value(address)
    record_button(page).click().run()
    until = time.monotonic() + 30
    while not said(page) and time.monotonic() < until:
        page.run()
    assert f"nothing was recorded: {address} has no profiler server listening" in said(page)
    assert not record_button(page).disabled


def test_where_captures_are_stored_and_which_addresses_there_are_is_said_before(page: AppTest, tmp_path: Path) -> None:
    page.run()
    assert [caption.value for caption in page.main.caption] == [
        f"Captures are stored in `{tmp_path / 'data' / 'captures'}`"
    ]
    told = page.text_input(key="address").help or ""
    assert all(form in told for form in ("`host:port`", "`dns:name:port`", "`tpu:name`"))


def test_the_result_of_each_address_is_shown(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    def record(request: Request, logdir: Path, name: str, **_: object) -> Recorded:
        run = logdir / name / "plugins" / "profile" / STAMPS[0]
        run.mkdir(parents=True)
        target, tpu = request.addresses
        assert isinstance(target, Address)
        profile = next(SAMPLE_RUNS["filters_16_8_again"].rglob("*.xplane.pb")).read_bytes()
        (run / target.file_name).write_bytes(profile)
        return Recorded(run, {target: len(profile)}, (LeftOut(tpu, "has *no* network"),))

    monkeypatch.setattr("tfcompare.sources.capture.background.record", record)
    page.run()
    page.text_input(key="address").set_value("worker:1,tpu:zone-a/t")
    record_button(page).click().run()
    until = time.monotonic() + 90
    while not page.success and not page.exception and time.monotonic() < until:
        page.run()
    assert "Not in the run: 1 of 2 addresses" in said(page)
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


def delete_buttons(page: AppTest) -> list[str]:
    return [button.label for button in page.main.button if button.label in ("Delete", "Delete for good", "Keep")]


def press(page: AppTest, label: str) -> AppTest:
    return next(button for button in page.main.button if button.label == label).click().run()


@pytest.mark.parametrize(("headers", "count"), [(HERE, 2), (PROXY, 0)])
def test_captures_are_listed_for_those_who_may_record(
    page: AppTest, browser: Asking, captured: list[Path], headers, count: int
) -> None:
    browser.headers = headers
    page.run()
    listed = [name for name in page.sidebar.selectbox[0].options if name.startswith("captures…")]
    assert (len(captured), len(listed), len(delete_buttons(page))) == (2, count, count)


def test_a_captured_run_is_deleted_after_a_question_and_no_longer_chosen(page: AppTest, captured: list[Path]) -> None:
    ids = [f"captures/before/plugins/profile/{stamp}" for stamp in STAMPS]
    page.query_params["baseline"], page.query_params["candidate"] = ids
    page.run()
    assert page.main.subheader[0].value == "Captured here"
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


def test_to_delete_is_asked_once_more(page: AppTest, browser: Asking, captured: list[Path]) -> None:
    press(page.run(), "Delete")
    browser.headers = PROXY
    press(page, "Delete for good")
    assert all(run.exists() for run in captured)
    assert "only in a browser on the machine" in said(page)


def test_only_what_was_captured_here_can_be_deleted(page: AppTest, captured: list[Path], tmp_path: Path) -> None:
    page.run()
    here = Settings(data=tmp_path / "data")
    assert own_captures.is_captured(here, captured[0])
    own = own_captures.folder(here)
    for path in (
        own, own / "before", captured[0].parent, captured[0] / "x", own / "x" / captured[0].relative_to(own),
        SAMPLE_RUNS["filters_16_8"], tmp_path / "logs" / "plugins" / "profile" / STAMPS[0], RemotePath("s3:", "x"),
    ):  # fmt: skip
        assert not own_captures.is_captured(here, path), path


def test_one_that_cannot_be_deleted_says_why(page: AppTest, captured: list[Path], monkeypatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tfcompare.sources.abandoned_folders.delete", refuse)
    press(press(page.run(), "Delete"), "Delete for good")
    assert said(page) == f"`captures/before/{STAMPS[0]}` cannot be deleted: Permission denied."
    assert all(run.exists() for run in captured)
