"""What a notebook shows of runs and comparisons: the answer, in HTML that holds nothing but text and tables."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.profiles import compared_runs, loaded_run
from tests.report.example_notebook import PATH, code_cells, html_of, stored
from tests.xspace_builder import event, line, plane, space
from tfcompare import compare, load
from tfcompare.comparison import Comparison
from tfcompare.render import notebook
from tfcompare.run import Run

ELEMENTS = {
    *("bdi", "br", "caption", "code", "details", "div", "em", "li", "p", "strong", "style", "summary", "table"),
    *("tbody", "td", "th", "thead", "tr", "ul"),
}
BLOCKS = ("br", "caption", "details", "div", "li", "p", "summary", "table", "tr", "ul")
CANDIDATES = ("filters_16_8_again", "filters_16_8_better_input")
FORBIDDEN = ("url(", "@import", "http")


class Page(HTMLParser):
    """The lines of text that a browser shows, cells of a row separated by ` | `; fails for what may not be in it."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = self.style = ""
        self.feed(source)
        assert not self.open
        assert not any(word in self.style for word in FORBIDDEN)
        lines = (" ".join(line.strip(" |").split()) for line in self.text.splitlines())
        self.lines = [line for line in lines if line]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ELEMENTS
        assert {name for name, _ in attrs} <= {"class", "title", "open"}
        self.text += "\n" if tag in BLOCKS else " | " if tag in ("td", "th") else ""
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.text += "\n" if tag in BLOCKS else ""

    def handle_data(self, data: str) -> None:
        if self.open[-1] == "style":
            self.style += data
        else:
            self.text += data


def lines(shown: object) -> list[str]:
    return Page(shown._repr_html_()).lines


def recorded(folder: Path, name: str, data: bytes) -> Run:
    place = folder / "plugins" / "profile" / name
    place.mkdir(parents=True)
    (place / "vm.xplane.pb").write_bytes(data)
    return load(place)


@pytest.fixture(scope="module")
def several() -> Comparison:
    """Of the example notebook, too."""
    return compare(loaded_run("filters_16_8"), *map(loaded_run, CANDIDATES))


def heads(shown: list[str]) -> list[str]:
    """The lines above tables, less their columns, in order."""
    known = ("Key figures", "Where the time goes", "Why", "Average step", "Longest ops", "Largest changes")
    return [next(one for one in known if line.startswith(one)) for line in shown if line.startswith(known)]


def test_the_answers_stored_in_the_example_are_those_of_this_version(several: Comparison) -> None:
    """After a change: python -m tests.report.example_notebook"""
    shown = [html for cell in code_cells(stored()) for html in html_of(cell)]
    comparison = compared_runs("filters_512_128", "filters_16_8")
    assert shown == [one._repr_html_() for one in (compare(loaded_run("filters_16_8")), comparison, several)]
    assert PATH.stat().st_size < 200_000, "figures are not stored"


def test_a_run_shows_its_step_time_and_its_longest_ops() -> None:
    shown = lines(compare(loaded_run("filters_16_8")))
    assert shown[:4] == [
        "filters_16_8",
        "CPU · TensorFlow",
        "filters_16_8: 10.9 ms per step",
        "20 of 22 steps are included.",
    ]
    assert heads(shown) == ["Key figures", "Where the time goes", "Average step", "Longest ops"]
    assert "Input | 6.79 ms | 62.2 %" in shown
    assert shown[-5:-2] == [
        "Iterator::Root::BatchV2::Map | Dataset | 6.59 ms | 36.6 %",
        "DecodePng | DecodePng | 5.47 ms | 30.3 %",
        "gradient_tape/au…/convolution/Conv2DBackpropFilter | Conv2DBackpropFilter | 1.28 ms | 7.12 %",
    ]


def test_a_comparison_shows_the_answer_first() -> None:
    """Sentences and figures are those of the golden of the Overview (`tests/views/test_views.py`)."""
    shown = lines(compared_runs("filters_512_128", "filters_16_8"))
    assert shown[0].startswith("filters_16_8 is 20× faster than filters_512_128 (14×–26×, one capture each): ")
    assert shown[1].startswith(
        "▼ likely faster: 95 % confidence interval of the ratio between captures 0.0379×–0.0694×, "
    )
    assert shown[2].startswith("−202 ms per step = −201 ms host compute (above all ")
    assert heads(shown) == ["Key figures", "Why", "Average step", "Largest changes"]
    assert "Step time | 213 ms | 10.9 ms | −202 ms | 0.0513×" in shown
    assert shown[-8:-6] == [
        "Largest changes, self time per step | Change | Baseline | Candidate | Ratio | 95 % CI | Verdict | Shape",
        "gradient_tape/au…/convolution/Conv2DBackpropFilter | −130 ms | 131 ms | 1.28 ms | 0.00977× | "
        "0.00601×–0.0159× | ▼ likely faster | [3,3,512,3] → [3,3,16,3]",
    ]
    assert shown[-2] == "340 more ops changed."
    assert shown[-1].startswith("Peak memory −99.8 MB: above all ")


def test_each_of_several_candidates_unfolds_and_of_many_some_are_counted_only(
    several: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert several._repr_html_().count("<details><summary>") == 2
    shown = lines(several)
    assert [line.partition(",")[0] for line in shown].count("Largest changes") == 2
    answers = [line for line in shown if " vs " in line and "ms per step" in line]
    assert all(name in answer for name, answer in zip(CANDIDATES, answers, strict=True))
    monkeypatch.setattr(notebook, "MOST_CANDIDATES", 0)
    fewer = lines(several)
    assert not [line for line in fewer if line.startswith("Key figures")]
    assert fewer[0] == "2 more candidates are not shown."


def test_a_run_compared_with_itself_is_shown_alone() -> None:
    run = loaded_run("filters_16_8")
    assert lines(compare(run, run)) == lines(compare(run))


def test_a_capture_compared_with_a_copy_of_it_has_no_changes() -> None:
    run = loaded_run("filters_16_8")
    shown = lines(compare(run, replace(run, id="copy", name="copy")))
    assert shown[0] == "copy is the same capture as filters_16_8, byte for byte."
    assert "Step time | 10.9 ms | 10.9 ms | 0 µs | 1.00×" in shown
    assert shown[-1] == "No op changed its self time."


def test_runs_without_steps(tmp_path: Path) -> None:
    def unmarked(name: str, us: float) -> Run:
        return recorded(tmp_path, name, space(plane("/host:CPU", line("python", event("a/b:MatMul", 0, us), id=1))))

    ours, theirs = unmarked("a", 2000), unmarked("b", 3000)
    assert lines(compare(ours)) == [
        "a",
        "CPU",
        "No step markers, so there is no step time",
        "Record again with each step inside tf.profiler.experimental.Trace('train', step_num=step, _r=1), or choose "
        "the host event that begins each step (“Steps begin with” in the sidebar, --step-marker on the command line).",
        "Key figures | Run",
        "Host op time per run | 2.00 ms",
        "Longest ops on the host, self time per run | Type | Time | Share",
        "a/b | MatMul | 2.00 ms | 100 %",
        "The peak memory is unknown: no allocations were recorded.",
    ]
    shown = lines(compare(ours, theirs))
    assert shown[0] == "No step markers in a and b, so step times cannot be compared"
    assert "Host op time per run | 2.00 ms | 3.00 ms | +1.00 ms | 1.50×" in shown
    assert "a/b | +1.00 ms | 2.00 ms | 3.00 ms | 1.50× | – | – not tested" in shown


def test_a_profile_without_ops(tmp_path: Path) -> None:
    run = recorded(tmp_path, "a", space(plane("/host:CPU", line("python", event("idle", 0, 10), id=1))))
    assert "The profile has no ops." in lines(compare(run))


HOSTILE = (
    '"><img src=x onerror=alert(1)></bdi></div><script>alert(1)</script> **b** [a](javascript:b) ![i](http://x) ריצה'
)


def test_hostile_names_of_runs_are_text() -> None:
    name, text = f"{HOSTILE}\u202egnp.exe\x1b[31m\udcff", rf"{HOSTILE}\u202egnp.exe\x1b[31m\xff"
    run = replace(loaded_run("filters_16_8"), name=name, remarks=(f"remark on {name}",))
    shown = lines(compare(run))
    assert shown[0] == text
    assert f"remark on {text}" in shown
    comparison = compare(replace(loaded_run("filters_512_128"), name="n" * 5000), run)
    comparison._repr_html_().encode()
    assert lines(comparison)[0].startswith(f"{text} is 20× faster than {'n' * 5000}")


def test_nothing_has_a_colour_of_its_own() -> None:
    shown = compared_runs("filters_512_128", "filters_16_8")._repr_html_()
    assert not re.search(r"background|#[0-9a-f]{3}|rgb|color: (?!inherit)", shown)


def test_as_text_a_run_and_a_comparison_are_one_line() -> None:
    baseline, again, better, large = map(
        loaded_run, ("filters_16_8", "filters_16_8_again", "filters_16_8_better_input", "filters_512_128")
    )
    assert repr(baseline) == "<Run 'filters_16_8': 10.9 ms per step, 22 steps, CPU>"
    assert repr(replace(baseline, name="a\n\u202eb")).startswith(r"<Run 'a\n\u202eb': ")
    assert repr(compare(large, baseline)) == "<Comparison with 'filters_512_128': 'filters_16_8' likely faster>"
    assert repr(compare(baseline, baseline)) == "<Comparison of 'filters_16_8' with itself>"
    several = compare(baseline, again, better, large, replace(again, id="once more"))
    assert repr(several) == (
        "<Comparison with 'filters_16_8': 'filters_16_8_again' inconclusive, "
        "'filters_16_8_better_input' likely faster, 'filters_512_128' likely slower and 1 more>"
    )


def test_as_text_a_run_without_steps_says_so(tmp_path: Path) -> None:
    run = recorded(tmp_path, "a", space(plane("/host:CPU", line("python", event("a:MatMul", 0, 10), id=1))))
    assert repr(run) == "<Run 'a': no step markers, CPU>"
