"""README and docs: links lead somewhere, commands are ones, and each way to record a run in docs/recording.md works."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from urllib.parse import unquote

import pytest

from docs import reference
from tests.profiles import ROOT
from tests.screenshots.pictures import MOST_BYTES, PICTURES
from tfcompare import cli, load, schema
from tfcompare.errors import TfcompareError
from tfcompare.run import Run
from tfcompare.sources.capture.addresses import parse_addresses
from tfcompare.ui.frame.sidebar import IN_TENSORBOARD
from tfcompare.views.advice import RULES
from tfcompare.views.advice.worth_trying import SUGGESTIONS
from tfcompare.views.registry import views

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    found: set[str] = set()
    for heading in headings:
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = base = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        number = 0
        while name in found:
            number += 1
            name = f"{base}-{number}"
        found.add(name)
    return found


def links(path: Path) -> Iterator[str]:
    for _, target in _LINK.findall(_FENCE.sub("", path.read_text(encoding="utf-8"))):
        if not re.match(r"[a-z]+:", target):
            yield unquote(target)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for target in links(page):
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        assert path.exists(), target
        assert path.is_relative_to(ROOT), target
        assert not anchor or anchor in anchors(path), target


def test_the_table_of_contents_has_every_page() -> None:
    linked = {target.partition("#")[0] for target in links(ROOT / "docs" / "index.md")}
    assert {page.name for page in PAGES[2:]} - {"index.md"} <= linked


def test_the_house_has_a_floor_for_each_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    drawn = re.findall(
        r'<text class="layer"[^>]*>(.*?)</text>', (ROOT / "docs" / "house.svg").read_text(encoding="utf-8")
    )
    assert [floor.split(" · ") for floor in drawn] == [layer.split(" | ") for layer in contracts[0]["layers"]]


def test_pictures_are_those_that_are_made_and_small() -> None:
    there = {path.stem: path.stat().st_size for path in (ROOT / "docs" / "pictures").glob("*")}
    assert set(there) == {picture.name for picture in PICTURES}
    assert max(there.values()) <= MOST_BYTES
    shown = {Path(target).stem for page in PAGES for target in links(page) if target.endswith(".png")}
    assert shown == set(there)


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="argparse words its help differently in other versions")
def test_the_command_line_page_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", reference.WIDTH)
    assert (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8") == reference.command_line(), "`make docs`"


def test_the_page_of_tables_is_up_to_date() -> None:
    assert (ROOT / "docs" / "tables.md").read_text(encoding="utf-8") == reference.tables(), "`make docs`"


def test_the_settings_on_the_page_of_deploying_are_up_to_date() -> None:
    assert (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8") == reference.deploy(), "`make docs`"


def commands() -> Iterator[tuple[str, tuple[str, ...]]]:
    """(page, arguments) of every call of tfcompare in a block of shell commands or in a job."""
    for page in PAGES:
        for language, block in _FENCE.findall(page.read_text(encoding="utf-8")):
            lines = block.replace("\\\n", " ").splitlines() if language in ("sh", "yaml", "groovy") else []
            for line in lines:
                if re.match(r" *tfcompare ", line):
                    words = shlex.shlex(line, posix=True, punctuation_chars=True)
                    words.whitespace_split = True
                    yield page.name, tuple(takewhile(lambda word: not re.fullmatch(r"[|>;&]+", word), words))[1:]


@pytest.mark.parametrize(("page", "arguments"), list(commands()))
def test_commands_are_understood(page: str, arguments: tuple[str, ...]) -> None:
    try:
        cli.parser().parse_args(list(arguments))
    except SystemExit as done:
        assert not done.code, (page, arguments)
    except TfcompareError as error:
        pytest.fail(f"{page}: {arguments}: {error}")


def test_every_kind_of_page_has_commands() -> None:
    assert {"README.md", "ci.md", "getting-started.md", "many-runs.md", "remote.md"} <= {page for page, _ in commands()}


def test_what_tensorboard_has_is_where_it_is_said_to_be() -> None:
    """Columns are there, and every page is named."""
    text = (ROOT / "docs" / "from-tensorboard.md").read_text(encoding="utf-8")
    places = re.findall(r"`([a-z_]+)\.([a-z0-9_]+)`", text)
    assert len(places) > 50
    for table, column in places:
        assert column in schema.table(table).column_names, f"{table}.{column}"
    assert {view.title for view in views()} <= set(re.findall(r"\[([^\]]+)\]\(pages\.md#", text))
    tools = dict(re.findall(r"^\| ([^|]+) \| \[([^\]]+)\]\(pages\.md#", text, re.MULTILINE))
    assert {page: tool for tool, page in tools.items()} == IN_TENSORBOARD, "the hints in the sidebar"


def test_advice_of_the_guide_has_rules_and_suggestions_that_exist() -> None:
    """Each piece has a place, and each suggestion is there for a piece."""
    text = (ROOT / "docs" / "from-tensorboard.md").read_text(encoding="utf-8")
    section = text.partition("## Advice of the guide\n")[2].partition("\n## ")[0]
    rows = [
        line.split("|")[1:-1]
        for line in re.findall(r"^\| (?:Input|Threads|Device|Loop|Model|Symptom): .*$", section, re.MULTILINE)
    ]
    assert len(rows) == 37
    rules, suggestions = ({name for row in rows for name in re.findall(r"`([^`]+)`", row[i])} for i in (1, 2))
    assert rules <= set(RULES)
    assert suggestions == set(SUGGESTIONS)
    assert all(re.search(r"`|\]\(", " ".join(row[1:])) for row in rows)


PAGE = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = re.findall(r"^tfcompare (capture .*?)(?: +#.*)?$", PAGE, re.MULTILINE)

PROGRAM = """
import os, sys
os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
import keras
import tensorflow as tf

inputs = tf.random.normal((1024, 128))
dataset = tf.data.Dataset.from_tensor_slices((inputs, inputs)).batch(16)
batches = iter(dataset.repeat())
model = keras.Sequential([keras.Input((128,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(128)])
model.compile("sgd", "mse")

@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(batch[0]) - batch[1]))
    for weight, gradient in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
        weight.assign_sub(0.1 * gradient)

train_step(next(batches))
for path in sys.argv[1:]:
    exec(compile(open(path).read(), path, "exec"))
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the snippets record, run one after the other in one program; the last starts a profiler server."""
    folder = tmp_path_factory.mktemp("recording")
    paths = []
    for number, snippet in enumerate(SNIPPETS):
        paths.append(folder / f"snippet_{number}.py")
        paths[-1].write_text(snippet, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, paths)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder / "logs"


def test_there_is_a_snippet_for_each_way() -> None:
    assert len(SNIPPETS) == 4
    assert all(compile(snippet, "docs/recording.md", "exec") for snippet in SNIPPETS)
    assert [re.findall(r'"logs/(\w+)"', snippet) for snippet in SNIPPETS] == [["keras"], ["loop"], ["block"], []]


def recorded(logs: Path, name: str) -> Run:
    run = load(logs / name)
    assert run.table("op_stats")["op_type"].str.contains("MatMul").any(), "it trains"
    return run


@pytest.mark.thorough
def test_each_way_records_what_the_page_says(logs: Path) -> None:
    keras, loop, block = (recorded(logs, name) for name in ("keras", "loop", "block"))
    assert keras.info.has_steps
    assert keras.info.step_count == pytest.approx(31, abs=1), "the batches that were asked for"
    assert loop.info.has_steps
    assert list(loop.steps["step"]) == list(range(30)), "marks in a loop become steps"
    assert not block.info.has_steps
    assert block.info.step_count == 1, "without marks the whole profile is one step"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_are_understood(command: str) -> None:
    assert len(COMMANDS) == 5
    chosen = cli.parser().parse_args(command.split())
    assert chosen.addresses[-1].startswith("tpu:") or chosen.addresses[-1].endswith(":6009")
    assert parse_addresses(chosen.addresses)
    assert chosen.logdir.startswith("logs")
