"""The ways to record a run in docs/recording.md: each is run as it stands there, and tfcompare opens the result."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.profiles import ROOT
from tfcompare import cli, load
from tfcompare.run import Run
from tfcompare.sources.capture.addresses import parse_addresses

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
