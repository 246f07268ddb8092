"""Names that are Markdown, HTML or formulas stand as text on every page; one bad run leaves the others usable.

Numbers that no profiler writes, and profiles without ops, take down no page and no command.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT
from tests.ui.hostile_profile import EVIL, hostile
from tests.xspace_builder import event, line, plane, space
from tfcompare import load, settings
from tfcompare.errors import TfcompareError
from tfcompare.settings import Settings
from tfcompare.views.csv_files import spreadsheet_csv

AUTOLINK = re.compile(r"(https?://|www(?=\.))[-.\w]+", re.IGNORECASE)
"""What GitHub's Markdown, which Streamlit shows, makes a link of in any text that is no code."""
PAGES = sorted(path.name for path in (ROOT / "pages").glob("[1-7]_*.py"))

TIMELINE = {"span": "0:2", "range": "0:2000", "find": "evil"}
"""All panels of the timeline."""
HOST = "[w](http:evil.example)<img src=x>"


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Path]:
    """A logdir with two good runs of hostile names, and one that breaks off in the middle."""
    for name, data in (("=a", hostile(1)), ("<b>b", hostile(2)), ("broken", hostile(1)[:-300])):
        folder = tmp_path / "logs" / "plugins" / "profile" / name
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb").write_bytes(data)
    with settings.override(Settings(places=(tmp_path / "logs",))):
        yield tmp_path / "logs" / "plugins" / "profile"


def opened(page: str, **address: str) -> AppTest:
    app = AppTest.from_file(str(ROOT / page), default_timeout=90)
    app.query_params |= {"baseline": "logs/plugins/profile/=a", "candidate": "logs/plugins/profile/<b>b"} | address
    app.run()
    assert not app.exception
    return app


def markdown_of(app: AppTest) -> list[str]:
    kinds = (app.markdown, app.caption, app.info, app.warning, app.error, app.subheader, app.title, app.success)
    return [element.value for kind in kinds for element in kind]


def figures_of(app: AppTest) -> list[str]:
    return [element.proto.spec for element in app.get("plotly_chart")]


def check(app: AppTest) -> None:
    """Nothing on the page is live."""
    for text in markdown_of(app):
        assert not live_parts(text), text
    for figure in figures_of(app):
        assert not [text for text in strings_of(json.loads(figure)) if ("<img" in text or "<script" in text)]


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("page", [f"pages/{name}" for name in PAGES])
def test_names_are_text(page: str) -> None:
    app = opened(page, **(TIMELINE if "Timeline" in page else {}))
    check(app)
    if "Timeline" in page:
        cells = [str(cell) for cell in app.table[-1].value.to_numpy().ravel()]
        assert any("evil" in text for text in markdown_of(app)) and any("evil" in cell for cell in cells)
        assert not list(filter(live_parts, cells))
    assert any("evil" in text for text in [*markdown_of(app), *figures_of(app), *map(str, tables_of(app))]), page


def live_parts(text: str) -> list[str]:
    """Images and links to where the names point, and HTML, that some Markdown would show."""
    found = [token for block in MarkdownIt().parse(text) for token in [block, *(block.children or [])]]
    return [
        token.type
        for token in found
        if "html" in token.type
        or (token.type == "text" and AUTOLINK.search(token.content))
        or "evil" in str(token.attrs.get("src", "")) + str(token.attrs.get("href", ""))
    ]


def tables_of(app: AppTest) -> list[object]:
    return [table.value.to_dict("list") for table in app.dataframe]


def strings_of(value: object) -> Iterator[str]:
    """All but the ids of nodes, which are not shown."""
    if isinstance(value, dict):
        value = [inner for key, inner in value.items() if key not in ("ids", "parents")]
    if isinstance(value, list):
        for one in value:
            yield from strings_of(one)
    elif isinstance(value, str):
        yield value


def test_a_broken_run_leaves_the_others_usable(places: Path) -> None:
    """The pages above show the others, too."""
    home = opened("app.py")
    runs = home.dataframe[0].value.to_dict("list")
    assert len(runs["name"]) == 3
    (broken,) = (i for i, name in enumerate(runs["name"]) if "broken" in str(name))
    assert "expected a field of" in str(runs["remarks"][broken]) and "breaks off at byte" in str(
        runs["remarks"][broken]
    )
    assert runs["baseline"][broken] == ""
    assert "2.0× slower" in "\n".join(markdown_of(home))
    with pytest.raises(TfcompareError, match="breaks off"):
        load(places / "broken")


def test_a_run_in_a_folder_whose_name_is_not_utf_8_is_listed_and_linked_by_an_escaped_name(tmp_path: Path) -> None:
    logs = Path(os.fsdecode(os.fsencode(tmp_path) + b"/logs\xfe"))
    for name, scale in ((b"a\xff", 1), (b"b\x1b[31m", 2)):
        folder = logs / "plugins" / "profile" / os.fsdecode(name)
        folder.mkdir(parents=True)
        (folder / os.fsdecode(b"vm\xfd.xplane.pb")).write_bytes(hostile(scale))
    pair = {"baseline": r"logs\xfe/plugins/profile/a\xff", "candidate": r"logs\xfe/plugins/profile/b\x1b[31m"}
    with settings.override(Settings(places=(logs,))):
        home = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90).run()
        assert not home.exception and not home.error
        assert home.dataframe[0].value["name"].tolist() == [r"b\x1b[31m", r"a\xff"]
        assert {name: home.query_params[name] for name in pair} == pair
        link = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90)
        link.query_params |= pair
        link.run()
        assert not link.exception and not link.error
        assert "2.0× slower" in "\n".join(markdown_of(link))


def test_cells_that_a_spreadsheet_would_run_are_quoted(places: Path) -> None:
    run = load(places / "=a")
    for name in ("op_stats", "kernel_stats", "tf_data", "memory_peak", "memory_timeline", "run_info"):
        cells = spreadsheet_csv(run.table(name)).decode("utf-8-sig")
        assert "evil" in cells or name == "run_info"
        assert ",=" not in cells and ',"=' not in cells and not cells.startswith("="), name
    kernels = opened("pages/3_Kernel_stats.py")
    names = [
        cell for table in tables_of(kernels) for column in table.values() for cell in column if isinstance(cell, str)
    ]
    assert any(cell.startswith("'=cmd") for cell in names)
    assert not any(cell.startswith("=") for cell in names)


def test_names_of_hosts_are_text(tmp_path: Path) -> None:
    pair = {"baseline": "logs/plugins/profile/=a", "candidate": "logs/plugins/profile/<b>b"}
    for run, slow_us in zip(pair.values(), (0, 3000), strict=True):
        (tmp_path / run).mkdir(parents=True)
        for number in range(3):
            (tmp_path / run / f"{HOST}{number}.xplane.pb").write_bytes(evil_worker(slow_us if number == 1 else 0))
    with settings.override(Settings(places=(tmp_path / "logs",))):
        hosts = opened("pages/9_Hosts.py")
        assert any("### Slowest host: " in text and "evil" in text for text in markdown_of(hosts))
        check(hosts)
        beside = {"timeline_host": f"{HOST}0 (B)", "timeline_beside": f"{HOST}1 (B)", "range": "-500:0"}
        timeline = opened("pages/7_Timeline.py", **beside)
        (one,) = [e for e in timeline.get("bidi_component") if e.proto.component_name == "tfcompare.timeline"]
        jump = json.loads(one.proto.mixed.json)["drawing"]["jumps"][0]["id"]
        timeline.query_params["span"] = f"0:{jump}"
        timeline.run()
    assert any("reaches `sum`" in text for text in markdown_of(timeline))
    check(timeline)
    assert not list(filter(live_parts, map(str, timeline.table[-1].value.columns)))


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


STEPS = [event("train", 2000 * i, 900, _r=1, step_num=i) for i in range(12)]


def with_number(number: float) -> bytes:
    """Steps with an op and allocations, of which a stat is `number`."""
    memory = {"allocator_name": "gpu", "addr": 1, "bytes_allocated": 100, "bytes_available": 0}
    memory |= {"fragmentation": number, "peak_bytes_in_use": number, "allocation_bytes": number}
    allocations = [event("MemoryAllocation", 2000 * i + 600, 0, **memory) for i in range(12)]
    ops = [event("a/b:mul", 2000 * i + 10, 100, flops=number, bytes_accessed=number) for i in range(12)]
    return space(plane("/host:CPU", line("t", *STEPS, *ops, *allocations, id=1)), hostnames=["h"])


def shown(page: str, folder: Path, data: bytes) -> AppTest:
    for name in ("a", "b"):
        (folder / "plugins" / "profile" / name).mkdir(parents=True)
        (folder / "plugins" / "profile" / name / "h.xplane.pb").write_bytes(data)
    with settings.override(Settings(places=(folder,))):
        return AppTest.from_file(str(ROOT / "pages" / page), default_timeout=90).run()


@pytest.mark.parametrize(
    ("page", "number"),
    [
        ("1_Overview.py", math.nan),
        ("4_Memory.py", 1e308),
        ("4_Memory.py", math.inf),
        *(pytest.param("1_Overview.py", number, marks=pytest.mark.thorough) for number in (1e308, -1e308, math.inf)),
        *(pytest.param("4_Memory.py", number, marks=pytest.mark.thorough) for number in (-1e308, math.nan)),
    ],
)
def test_a_page_shows_any_number(tmp_path: Path, page: str, number: float) -> None:
    assert not shown(page, tmp_path, with_number(number)).exception


def test_steps_without_any_op_have_a_page_of_ops(tmp_path: Path) -> None:
    page = shown("2_Op_stats.py", tmp_path, space(plane("/host:CPU", line("t", *STEPS)), hostnames=["h"]))
    assert not page.exception
    assert "No op took any time here." in [info.value for info in page.info]


@pytest.mark.parametrize("number", [1e308, math.inf, math.nan])
def test_a_command_prints_any_number(tfcompare, tmp_path: Path, number: float) -> None:
    (tmp_path / "h.xplane.pb").write_bytes(with_number(number))
    for table in ("memory_summary", "memory_timeline"):
        for format in ("table", "csv", "json"):
            status, out, _ = tfcompare("show", str(tmp_path), table, "--format", format)
            assert status == 0 and out
            assert format != "json" or json.loads(out)
