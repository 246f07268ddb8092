"""A link leads to the page of the dashboard that shows the same."""

from __future__ import annotations

import json
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.mcp.agent import Agent, ask
from tests.profiles import ROOT, SAMPLES
from tfcompare.loading import Question
from tfcompare.mcp.links import page_address
from tfcompare.sources.logdir import find_runs
from tfcompare.sources.step_choice import step_choice
from tfcompare.ui.frame.selection import Selection, from_query, resolve_selection
from tfcompare.ui.frame.sidebar import page_files, page_title
from tfcompare.views import NAMES
from tfcompare.views.options import declared
from tfcompare.views.registry import view


def link(**arguments: object) -> str:
    async def script(agent: Agent) -> str:
        found = await agent.call("compare", **arguments)
        return json.dumps(found["link"])

    return json.loads(ask(script, link="http://localhost:8501")[0])


def test_the_dashboard_of_the_same_roots_selects_what_was_compared() -> None:
    baseline = "autoencoder_gpu/h100_512_128"  # three captures
    address = urlsplit(link(baseline=baseline, candidates=["autoencoder/filters_16_8"], view="op_stats", steps="5:15"))
    assert (address.netloc, address.path) == ("localhost:8501", "/Op_stats")
    found = resolve_selection(from_query(parse_qs(address.query), Selection()), find_runs(SAMPLES), lambda: ())
    assert (found.unknown, found.misplaced) == ((), ())
    runs = {run.id: run.path for run in find_runs(SAMPLES)}
    captures = {runs[run].relative_to(SAMPLES).parts[:2] for run in found.selection.side_of(found.selection.baseline)}
    assert captures == {("autoencoder_gpu", "h100_512_128")}
    assert len(found.selection.repeats) == 2
    assert [runs[run].parts[-4] for run in found.selection.candidates] == ["filters_16_8"]
    assert found.selection.steps.range == "5:15"


def test_choices_are_read_as_the_pages_write_them() -> None:
    steps = step_choice("train", "5:", kind="eval")
    question = Question(("a", "b"), steps=steps, per="run", host="worker 1")
    address = page_address("http://h/", "memory", question, [["a", "a2"], ["b"]], {})
    selection = from_query(parse_qs(urlsplit(address).query), Selection())
    assert selection.question == Question(
        ("a", "b"), repeats=(("a2",), ()), steps=steps, per="run", host="worker 1", pairs=((),)
    )


def test_options_have_the_labels_of_their_widgets() -> None:
    options = {"by": "op_type", "idle": True, "filter": "Conv2D & more", "part": "device_compute_us"}
    query = parse_qs(urlsplit(page_address("http://h", "op_stats", Question(("a",)), [["a"]], options)).query)
    declared_by = next(one for one in declared(view("op_stats").options) if one.name == "by")
    assert query[declared_by.key] == [declared_by.choices["op_type"]]
    assert (query["idle"], query["filter"]) == (["true"], ["Conv2D & more"])


@pytest.mark.parametrize("name", NAMES)
def test_each_page_has_the_address_that_its_file_gives_it(name: str) -> None:
    path = urlsplit(page_address("http://h", name, Question(("a",)), [["a"]], {})).path
    (file,) = (file for file in page_files() if page_title(file) == view(name).title)
    assert path == f"/{file.stem.partition('_')[2]}"
    assert file.parent == ROOT / "pages"


def test_without_a_page_there_is_no_link() -> None:
    async def script(agent: Agent) -> str:
        one_host = "workers/balanced/plugins/profile/2026_11_23_06_20_48/worker0.xplane.pb"
        assert (await agent.call("compare", baseline=one_host)).get("link") is None
        return ""

    ask(script)
    ask(script, link="http://localhost:8501")
