"""One file that needs nothing else, in which names are text."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import partial
from html.parser import HTMLParser

import pytest
from plotly.offline import get_plotlyjs

from tests.profiles import compared_runs
from tests.render.documents import hostile_comparison, payload_of
from tests.render.test_notebook_cells import lines
from tests.views.flat import pair_of, shown
from tfcompare.comparison import Comparison, compare
from tfcompare.render.document import Report
from tfcompare.render.html import as_html
from tfcompare.render.inline import inline
from tfcompare.render.markdown import as_text
from tfcompare.render.payload import table_json
from tfcompare.render.report import contents, report
from tfcompare.views import chart_style as style
from tfcompare.views.blocks import Chart, Section, Table
from tfcompare.views.registry import view

CPU = ("filters_512_128", "filters_16_8")
GPU = ("gpu_filters_512_128", "gpu_filters_16_8")
LARGEST = 3_000_000
"""`test_report` of `tests/browser` asserts it of the report that it reads."""


class Elements(HTMLParser):
    """The tags and attributes of a document."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def tags_of(document: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = Elements()
    parser.feed(document)
    return parser.tags


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Of two runs in which every name is hostile."""
    return hostile_comparison(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def content(comparison: Comparison) -> Report:
    return contents(comparison)


@pytest.fixture(scope="module")
def document(content: Report) -> str:
    return as_html(content)


@pytest.mark.thorough
@pytest.mark.parametrize("runs", [CPU, GPU])
def test_it_is_small(runs: tuple[str, str]) -> None:
    assert len(report(compared_runs(*runs)).encode()) <= LARGEST


def test_it_names_nothing_elsewhere(document: str) -> None:
    tags = tags_of(document)
    assert [(tag, name) for tag, found in tags for name in found if name in ("src", "srcset", "data")] == []
    links = [(tag, found["href"] or "") for tag, found in tags if "href" in found]
    assert {tag for tag, _ in links} == {"a"}
    assert all(link.startswith("https://www.tensorflow.org/") for _, link in links)


def test_the_policy_allows_its_own_scripts_only(document: str) -> None:
    (policy,) = [f["content"] or "" for tag, f in tags_of(document) if f.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    allowed = re.findall(r"'sha256-([^']+)'", policy)
    found = re.search(r'<script type="module">(.*?)</script>', document, re.DOTALL)
    assert found is not None
    texts = (found[1], get_plotlyjs())
    assert allowed == [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    assert "script-src 'sha256-" in policy and "unsafe-eval" not in policy


def test_hostile_names_are_text(document: str) -> None:
    tags = tags_of(document)
    assert len([tag for tag, _ in tags if tag == "script"]) == 3
    assert not {"img", "iframe", "object", "embed", "b", "i"} & {tag for tag, _ in tags}
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    assert not [f for _, f in tags if "evil.test" in str(f.get("href"))]
    assert "alert(1)" in document
    tables = [block for block in payload_of(document) if block["kind"] == "table"]
    assert any("<script>" in cell for table in tables for cell in table["columns"][0]["texts"])


def test_charts_have_a_figure_for_a_phone_with_its_own_data_only_where_that_differs() -> None:
    charts = [
        Chart(name, partial(style.figure, "Title", "word " * 40, height=300), draw_narrow=narrow)
        for name, narrow in (("same", None), ("other", partial(style.figure, "Other", height=200)))
    ]
    same, other = payload_of(as_html(Report("Title", [Section("Charts", charts, True)], "")))
    assert same["narrow"].keys() == {"layout"}
    assert same["narrow"]["layout"]["height"] > same["figure"]["layout"]["height"]
    assert other["narrow"].keys() == {"data", "layout"}
    assert other["narrow"]["layout"]["title"]["text"] == "Other"


def test_hostile_names_cannot_steer_markdown(content: Report) -> None:
    text = as_text(content)
    assert not re.search(r"(?<!\\)!\[i\]\(//evil", re.sub(r"`[^`]*`", "", text))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert rows
    assert not [line for line in rows if "<script>" in line]


def test_hostile_names_of_ops_hosts_devices_and_warnings_are_text_in_a_notebook(comparison: Comparison) -> None:
    for one in (compare(comparison.baseline), comparison):
        assert any("<img src=x>" in line for line in lines(one)), "shown as it is written"
        assert "](//evil.test)" in "".join(lines(one))
    assert any(line.startswith("Caveats (") for line in lines(comparison))


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("`a<b` takes **2 ms**", "<code>a&lt;b</code> takes <strong>2 ms</strong>"),
        ("<script>x</script>", "&lt;script&gt;x&lt;/script&gt;"),
        ("[guide](javascript:alert(1))", "[guide](javascript:alert(1))"),
        (r"0\.5 \<b\>", "0.5 &lt;b&gt;"),
    ],
)
def test_markdown_becomes_html_without_markup_of_its_own(markdown: str, html: str) -> None:
    assert inline(markdown) == html


def test_cells_are_as_in_the_app_and_csv_values_in_full_precision() -> None:
    table, *_ = shown(view("op_stats"), pair_of(*CPU), Table)
    columns = {column["csv"]: column for column in table_json(table)["columns"]}
    times = columns["self_time_us_per_step_baseline"]
    assert times["heading"] == "Self time (µs/step)" and times["label"] == "Baseline"
    assert times["values"] == table.rows["self_time_us_baseline"].tolist()
    assert times["texts"][0] == "131,304.9"
    assert columns["self_time_us_per_step_delta"]["texts"][0] == "−130,021.9"
    assert columns["verdict"]["texts"][0] == "▼ likely faster" and columns["verdict"]["tones"][0] == "likely-better"


def test_a_report_is_the_same_each_time_but_for_its_date(content: Report, document: str) -> None:
    date = re.compile(r"on \d{4}-\d\d-\d\d \d\d:\d\d UTC")
    assert date.sub("", as_html(content)) == date.sub("", document)
