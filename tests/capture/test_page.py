"""The page that records: who may use it, and what it says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.capture.workers import free_ports
from tests.profiles import SAMPLE_RUNS, SAMPLES
from tfcompare import settings
from tfcompare.settings import Settings, app_folder

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
        yield AppTest.from_file(str(app_folder() / "pages" / "7_Capture.py"), default_timeout=90)


def said(page: AppTest) -> str:
    assert not page.exception
    return "\n".join(e.value for e in (*page.error, *page.info, *page.warning, *page.success)).replace("\\", "")


def record_button(page: AppTest):
    return next(button for button in page.button if button.label == "Record")


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
    monkeypatch.setattr("tfcompare.ui.capture.BackgroundRecording", lambda *words: started.append(words))
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


@pytest.mark.parametrize(("headers", "names"), [(HERE, {"before", "filters_16_8"}), (PROXY, {"filters_16_8"})])
def test_captures_are_listed_for_those_who_may_record(
    page: AppTest, browser: Asking, tmp_path: Path, headers, names: set[str]
) -> None:
    folder = tmp_path / "captures" / "before" / "plugins" / "profile" / "2026_11_21_18_43_09"
    folder.mkdir(parents=True)
    profile = next(SAMPLE_RUNS["filters_16_8_again"].rglob("*.xplane.pb"))
    (folder / "localhost_6009.xplane.pb").write_bytes(profile.read_bytes())
    browser.headers = headers
    with settings.override(Settings(places=(SAMPLE_RUNS["filters_16_8"],), data=tmp_path)):
        page.run()
    assert {name.rpartition("/")[2] for name in page.sidebar.selectbox[0].options} == names
