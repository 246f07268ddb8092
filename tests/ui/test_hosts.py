"""The Hosts page: names of hosts and ops are text, and links to pages that have something to show."""

from __future__ import annotations

import json
from pathlib import Path

from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT
from tests.ui.hostile_profile import EVIL
from tests.ui.pages import WORKERS, opened, said
from tests.ui.test_hostile_names import figures_of, is_markup, live_parts, markdown_of, strings_of
from tests.xspace_builder import event, line, plane, space
from tfcompare import settings
from tfcompare.settings import Settings

FILE = "9_Hosts"


def test_links_lead_to_the_slowest_host_first() -> None:
    page = opened(FILE, *WORKERS)
    assert page.selectbox(key="one_host").value == "worker1"
    assert "Show worker1 beside worker" in said(page)
    links = [element.value for element in page.main.markdown]
    assert "Input pipeline" in links
    assert "Kernel stats" not in links, "the runs have none"


def test_names_are_text(tmp_path: Path) -> None:
    host = "[w](http:evil.example)<img src=x>"
    page = AppTest.from_file(str(ROOT / "pages" / f"{FILE}.py"), default_timeout=90)
    for role, name, slow_us in (("baseline", "=a", 0), ("candidate", "<b>b", 3000)):
        folder = tmp_path / "logs" / "plugins" / "profile" / name
        folder.mkdir(parents=True)
        for number in range(3):
            (folder / f"{host}{number}.xplane.pb").write_bytes(evil_worker(slow_us if number == 1 else 0))
        page.query_params[role] = f"logs/plugins/profile/{name}"
    with settings.override(Settings(places=(tmp_path / "logs",))):
        page.run()
    assert not page.exception
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
