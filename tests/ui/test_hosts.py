"""The Hosts page, run by Streamlit without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import CORPUS, ROOT, SAMPLES, run_path
from tests.ui.hostile_profile import EVIL
from tests.ui.page_texts import texts
from tests.ui.test_hostile_names import figures_of, is_markup, live_parts, markdown_of, strings_of
from tests.xspace_builder import event, line, plane, space
from tfcompare import settings
from tfcompare.settings import Settings

BALANCED, SLOW = "sample_logs/workers/balanced", "sample_logs/workers/slow_input"


@pytest.fixture
def page() -> Iterator[AppTest]:
    with settings.override(Settings(places=(SAMPLES, *([CORPUS] if CORPUS.exists() else [])))):
        yield AppTest.from_file(str(ROOT / "pages" / "9_Hosts.py"), default_timeout=90)


def run_id(logdir: str) -> str:
    (run,) = (ROOT / logdir / "plugins" / "profile").iterdir()
    return f"{logdir}/plugins/profile/{run.name}"


def opened(page: AppTest, *runs: str) -> AppTest:
    for role, name in zip(("baseline", "candidate"), runs, strict=False):
        page.query_params[role] = name
    page.run()
    assert not page.exception
    return page


def test_a_pair_begins_with_the_verdict(page: AppTest) -> None:
    opened(page, run_id(BALANCED), run_id(SLOW))
    assert "### Slowest host: `worker1` in " in texts(page)
    assert "**B:** `worker1` in " in texts(page)
    rows = page.dataframe[-1].value
    assert len(rows) > 20


def test_the_time_in_the_address_is_shown(page: AppTest) -> None:
    page.query_params["metric"] = "Input"
    opened(page, run_id(BALANCED), run_id(SLOW))
    assert "Input of each step" in [element.value for element in page.subheader]


@pytest.mark.skipif(not CORPUS.exists(), reason="the recorded profiles are not on this machine")
def test_devices_in_the_address_are_compared(page: AppTest) -> None:
    page.query_params["by"] = "devices"
    page.query_params["metric"] = "Device compute"
    opened(page, f"corpus/{run_path('tf_gpu').relative_to(CORPUS)}")
    assert "Where each device's time goes" in [element.value for element in page.subheader]
    assert "**Device compute per step, by device**" in texts(page)


def test_links_lead_to_the_slowest_host_first(page: AppTest) -> None:
    opened(page, run_id(BALANCED), run_id(SLOW))
    (choice,) = [box for box in page.selectbox if box.key == "one_host"]
    assert choice.value == "worker1"
    assert "Show worker1 beside worker" in texts(page)
    links = [element.value for element in page.main.markdown]
    assert "Input pipeline" in links
    assert "Kernel stats" not in links, "the runs have none"


def test_one_host_with_one_device_says_so(page: AppTest) -> None:
    opened(page, run_id("sample_logs/autoencoder/filters_16_8"))
    said = texts(page)
    assert (
        "The runs have one host and at most one device. Capture all workers of a program into one run: on the" in said
    )


def test_names_are_text(tmp_path: Path) -> None:
    host = "[w](http:evil.example)<img src=x>"
    for name, slow_us in (("=a", 0), ("<b>b", 3000)):
        folder = tmp_path / "logs" / "plugins" / "profile" / name
        folder.mkdir(parents=True)
        for number in range(3):
            (folder / f"{host}{number}.xplane.pb").write_bytes(evil_worker(slow_us if number == 1 else 0))
    with settings.override(Settings(places=(tmp_path / "logs",))):
        page = AppTest.from_file(str(ROOT / "pages" / "9_Hosts.py"), default_timeout=90)
        opened(page, "logs/plugins/profile/=a", "logs/plugins/profile/<b>b")
    assert any("### Slowest host: " in text and "evil" in text for text in markdown_of(page))
    for text in markdown_of(page):
        assert not live_parts(text), text
    for figure in figures_of(page):
        assert not [text for text in strings_of(json.loads(figure)) if is_markup(text)]


def evil_worker(slow_us: float) -> bytes:
    events = []
    for number in range(12):
        start, waits = 10_000 * number, 10_000 * number + 4000 + slow_us + number % 3
        events += [
            event("train", start, 10_000, step_num=number, _r=1),
            event("layer:MatMul", start, waits - start),
            event(EVIL, start, waits - start),
            event("sum:CollectiveReduceV2", waits, start + 10_000 - waits),
        ]
    return space(plane("/host:CPU", line("python", *events)))
