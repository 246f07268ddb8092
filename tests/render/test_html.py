"""One file that needs nothing else, in which names are text."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.profiles import compared_runs
from tests.render.documents import hostile_comparison, payload_of
from tests.views.flat import flat
from tfcompare.charts.library import plotly_js
from tfcompare.render.html import as_html
from tfcompare.render.inline import inline
from tfcompare.render.payload import table_json
from tfcompare.report.contents import contents
from tfcompare.report.making import report
from tfcompare.views.blocks import Table

CPU = ("filters_512_128", "filters_16_8")
GPU = ("filters_512_128_simulated", "filters_16_8_simulated")
LARGEST = 3_000_000


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


def script_of(document: str) -> str:
    """The text of its own script."""
    found = re.search(r'<script type="module">(.*?)</script>', document, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def document() -> str:
    return report(compared_runs(*CPU))


@pytest.mark.parametrize("runs", [CPU, pytest.param(GPU, marks=pytest.mark.thorough)])
def test_it_is_small_and_names_nothing_elsewhere(runs: tuple[str, str], request: pytest.FixtureRequest) -> None:
    document = request.getfixturevalue("document") if runs == CPU else report(compared_runs(*runs))
    assert len(document.encode()) <= LARGEST
    tags = tags_of(document)
    assert [(tag, name) for tag, found in tags for name in found if name in ("src", "srcset", "data")] == []
    links = [(tag, found["href"] or "") for tag, found in tags if "href" in found]
    assert {tag for tag, _ in links} == {"a"}
    assert all(link.startswith("https://www.tensorflow.org/") for _, link in links)


def test_the_policy_allows_its_own_scripts_only(document: str) -> None:
    (policy,) = [f["content"] or "" for tag, f in tags_of(document) if f.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    allowed = re.findall(r"'sha256-([^']+)'", policy)
    texts = (script_of(document), plotly_js())
    assert allowed == [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts]
    assert "script-src 'sha256-" in policy and "unsafe-eval" not in policy


def test_scripts_do_not_declare_a_name_twice(document: str) -> None:
    declared = r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)"
    names = re.findall(declared, script_of(document), re.MULTILINE)
    assert len(names) > 30
    assert sorted(names) == sorted(set(names))


def test_hostile_names_are_text(tmp_path: Path) -> None:
    comparison = hostile_comparison(tmp_path)
    found = report(comparison)
    tags = tags_of(found)
    assert len([tag for tag, _ in tags if tag == "script"]) == 3
    assert not {"img", "iframe", "object", "embed", "b", "i"} & {tag for tag, _ in tags}
    assert not [name for _, attributes in tags for name in attributes if name.startswith("on")]
    assert not [f for _, f in tags if "evil.test" in str(f.get("href"))]
    assert "alert(1)" in found
    cells = [text for block in payload_of(found) if block["kind"] == "table" for text in block["columns"][0]["texts"]]
    assert any("<script>" in cell for cell in cells)


@pytest.mark.parametrize(("markdown", "html"), [
    ("`a<b` takes **2 ms**", "<code>a&lt;b</code> takes <strong>2 ms</strong>"),
    ("<script>x</script>", "&lt;script&gt;x&lt;/script&gt;"),
    ("[guide](javascript:alert(1))", "[guide](javascript:alert(1))"),
    (r"0\.5 \<b\>", "0.5 &lt;b&gt;"),
])  # fmt: skip
def test_markdown_becomes_html_without_markup_of_its_own(markdown: str, html: str) -> None:
    assert inline(markdown) == html


def test_cells_are_as_in_the_app_and_csv_values_in_full_precision() -> None:
    comparison = compared_runs(*CPU)
    (table,) = [
        block for block in flat(contents(comparison).sections) if isinstance(block, Table) and block.name == "op_stats"
    ]
    columns = {column["csv"]: column for column in table_json(table)["columns"]}
    times = columns["self_time_us_per_step_baseline"]
    assert times["heading"] == "Self time (µs/step)" and times["label"] == "Baseline"
    assert times["values"] == table.rows["self_time_us_per_step_baseline"].tolist()
    assert times["texts"][0] == "131,304.9"
    assert columns["self_time_us_per_step_delta"]["texts"][0] == "−130,021.9"
    assert columns["verdict"]["texts"][0] == "▼ likely faster" and columns["verdict"]["tones"][0] == "likely-better"


def test_a_report_is_the_same_each_time_but_for_its_date(document: str) -> None:
    date = re.compile(r"on \d{4}-\d\d-\d\d \d\d:\d\d UTC")
    assert date.sub("", as_html(contents(compared_runs(*CPU)))) == date.sub("", document)
