"""The fixture `profile_check`, in sessions of pytest: with a stand-in for the profilers, thoroughly with TensorFlow.

They are processes started here and not by pytest's `pytester`, which unloads the modules that a test has loaded: numba
cannot be loaded twice.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.profiles import ROOT, SIMULATED_RUNS
from tests.pytest_plugin.recorder import Recorder
from tfcompare import load
from tfcompare.pytest_plugin import DEFAULT_BASELINES
from tfcompare.pytest_plugin.baselines import Baseline

IS_INSTALLED = any(found.value == "tfcompare.pytest_plugin" for found in entry_points(group="pytest11"))
"""Whether pytest loads the plugin by itself; not in an editable install that is older than the plugin."""

SECTION = (ROOT / "README.md").read_text(encoding="utf-8").partition("### In pytest\n")[2].partition("\n## ")[0]
(SNIPPET,) = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)

STAND_IN = """
import os
from tests.pytest_plugin.recorder import stand_in_for
stand_in_for("tensorflow")
batch = None

def train_step(batch):
    pass
"""
TENSORFLOW = """
import os, sys, time
sys.modules["jax"] = None  # which TensorFlow imports where it is installed
os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
import tensorflow as tf

batch = tf.ones((256, 256))

@tf.function
def multiply(x):
    return tf.reduce_sum(x @ x)

def train_step(batch):
    multiply(batch).numpy()
    time.sleep(0.01 + float(os.environ.get("SLOW_S", 0)))
"""
SLOWDOWN_S = "0.1"
"""Ten times the step: more than captures differ even on the busiest machine."""

FEW_STEPS = """
def test_few_steps(profile_check):
    with profile_check("step_time>+10%") as profile:
        for i in range(5):
            with profile.step(i):
                train_step(batch)
"""
SLOWER = SNIPPET.replace("training_step(profile_check)", "slower(profile_check, monkeypatch)").replace(
    "    train_step(batch)  # warm up",
    "    monkeypatch.setenv('SLOW_S', os.environ.get('LATER_S', '0'))\n    train_step(batch)  # warm up",
)
ENOUGH_STEPS = FEW_STEPS.replace("range(5)", "range(12)")
NO_STEPS = """
def test_no_steps(profile_check):
    with profile_check("step_time>+10%"):
        train_step(batch)
"""
STRICT = FEW_STEPS.replace("few_steps", "strict").replace('+10%"', '+10%", strict=True')
NOT_RUN = """
import pytest

@pytest.mark.parametrize("path", ["a/b"])
def test_not_run(profile_check, path):
    with profile_check("step_time>+10%"):
        raise AssertionError("the block has run")
"""
FAILS = NO_STEPS.replace("no_steps", "fails").replace("train_step(batch)", "raise KeyError('mine')")
TWICE = """
def test_twice(profile_check):
    for _ in range(2):
        with profile_check("step_time>+10%"):
            train_step(batch)
"""
BOTH = """
def test_both(profile_check):
    stand_in_for("jax")
    with profile_check("step_time>5%"): pass
"""

WRONG_CALLS = {
    "profile_check('step_tme>+5%')": "unknown metric 'step_tme'; *did you mean 'step_time'[?]",
    "profile_check('step_time')": "'step_time' is no condition; expected METRIC OP PERCENT% *",
    "profile_check([])": "profile_check: fail_if names no condition, *",
    "profile_check('step_time>5%', framework='torch')": "unknown framework 'torch'; must be one of: *",
    "profile_check('step_time>5%')": "*of tensorflow or of jax? neither is imported; say which, as in framework='jax'",
}


@dataclass(frozen=True)
class Ended:
    """A session of pytest: its exit status, its last line without the time, and what it printed."""

    status: int
    outcomes: str
    text: str

    def has_lines(self, *patterns: str) -> None:
        """Fails unless these lines were printed, in this order."""
        pytest.LineMatcher(self.text.splitlines()).fnmatch_lines(patterns)


Session = Callable[..., Ended]


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Runs pytest with the plugin on `program`, in a folder that stays the same within a test."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def run(program: str, *words: str) -> Ended:
        (tmp_path / "test_it.py").write_text(program, encoding="utf-8")
        plugin = () if IS_INSTALLED else ("-p", "tfcompare.pytest_plugin")
        more = ("-p", "no:cacheprovider", "--rootdir", str(tmp_path), "--basetemp", str(tmp_path / "temporary"))
        command = [sys.executable, "-m", "pytest", *plugin, *more, *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        outcomes = re.findall(r"^=+ (.*) in [\d.]+s(?: \(.*\))? =+$", done.stdout, re.MULTILINE)
        return Ended(done.returncode, outcomes[-1] if outcomes else "", done.stdout + done.stderr)

    return run


def baseline_of(folder: Path, test: str) -> Path:
    return Baseline.of_test(folder, f"test_it.py::{test}").folder


@pytest.mark.parametrize(
    "framework", [STAND_IN, pytest.param(TENSORFLOW, marks=pytest.mark.thorough)], ids=["stand-in", "tensorflow"]
)
def test_the_block_of_the_readme_passes_unchanged_and_fails_when_slower(
    framework: str, tmp_path: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = framework + SNIPPET + SLOWER + FEW_STEPS + STRICT + NO_STEPS
    where = ("--profile-baselines", "given")
    written = session(program, "--profile-update", "-n", "1", *where)
    assert written.outcomes == "5 passed", written.text
    baseline, of_slower = (baseline_of(tmp_path / "given", f"test_{name}") for name in ("training_step", "slower"))
    written.has_lines("*= tfcompare =*", f"test_it.py::test_training_step: baseline written, {baseline}")
    written.has_lines("test_it.py::test_no_steps: the block marks no steps, so times cannot be judged and *")
    assert load(baseline).info.step_count == 30
    another = Recorder()
    another.start(str(tmp_path / "another"))
    for i in range(30):
        another.step("profile_check", step_num=i, _r=1)
    another.stop()
    Baseline(baseline).add(tmp_path / "another")

    monkeypatch.setenv("LATER_S", SLOWDOWN_S)
    later = session(program, "-rP", *where)
    assert later.outcomes == "4 failed, 1 passed", later.text
    few = "NOT JUDGED: step_time>+10%: 5 steps, 9 needed on each side; record 11 steps or more"
    for test, reason in {
        "few_steps": few,
        "strict": few,
        "no_steps": "NOT JUDGED: step_time>+10%: no step markers in the baseline and the candidate; *",
    }.items():
        again = f"Mark each step by `with profile.step(i):`, then *: pytest --profile-update test_it.py::test_{test}"
        later.has_lines(f"*_ test_{test} _*", "this run vs the baseline: NOT JUDGED (1 untested)", reason, again)
    later.has_lines("*_ test_training_step _*", "*Captured tfcompare call*", "this run vs the baseline: passed (*")
    later.has_lines("*_ test_training_step _*", "*2 and 1 captures*")
    later.has_lines(
        "*_ test_slower _*",
        "this run vs the baseline: FAILED (1 failed)",
        "FAILED *step_time>+10% *",
        "step_time>+10%: 95 % confidence interval *",
    )
    assert "profile_check.py" not in later.text, "no traceback into the plugin"
    # pytest repeats the whole message in its summary where the variable CI is set
    (path,) = set(re.findall(rf"^What changed: tfcompare diff {of_slower} (\S+)$", later.text, re.MULTILINE))
    assert load(path).info.step_time_ms_median > 1000 * float(SLOWDOWN_S), "it is still there"


def test_a_baseline_that_is_missing_damaged_or_of_another_device(tmp_path: Path, session: Session) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ntfcompare_baselines = in/ini\n", encoding="utf-8")
    baselines = tmp_path / "in" / "ini"
    profile = next(SIMULATED_RUNS["filters_512_128_simulated"].rglob("*.xplane.pb")).read_bytes()
    for test, content in (("test_damaged", profile[:1000]), ("test_other", profile)):
        folder = baseline_of(baselines, test) / "run-1"
        folder.mkdir(parents=True)
        (folder / "vm.xplane.pb.gz").write_bytes(gzip.compress(content))
    damaged, other = FEW_STEPS.replace("few_steps", "damaged"), ENOUGH_STEPS.replace("few_steps", "other")
    result = session(STAND_IN.replace("tensorflow", "jax") + NOT_RUN + damaged + other, "-rP")
    assert result.outcomes == "2 failed, 1 passed", result.text
    again = "to write the baseline anew: pytest --profile-update test_it.py::test_damaged"
    result.has_lines(f"{baseline_of(baselines, 'test_damaged')}*: not a readable profile: at byte *; {again}")
    result.has_lines("*_ test_other _*", "note: the runs differ in device type, which alone can change times")
    missing = baseline_of(baselines, "test_not_run[a/b]")
    how = "pytest --profile-update 'test_it.py::test_not_run[[]a/b]'"
    result.has_lines("*_ test_not_run[[]a/b] _*", f"no baseline at {missing}; to write it: {how}")
    assert "the block has run" not in result.text
    assert "another exception" not in result.text


def test_wrong_calls_cost_one_sentence_and_errors_in_a_block_are_the_test_s_own(tmp_path, session: Session) -> None:
    tests = [f"def test_{i}(profile_check):\n    with {call}: pass\n" for i, call in enumerate(WRONG_CALLS)]
    begin = "def test_of_tensorflow(): stand_in_for('tensorflow')\n"
    program = STAND_IN.replace('stand_in_for("tensorflow")', "") + "\n".join(tests)
    result = session(program + begin + FAILS + FEW_STEPS + TWICE + BOTH, "--profile-add")
    assert result.outcomes == f"{len(tests) + 3} failed, 2 passed", result.text
    for i, sentence in enumerate(WRONG_CALLS.values()):
        result.has_lines(f"*_ test_{i} _*", sentence)
    result.has_lines("E *KeyError: 'mine'")
    baseline = baseline_of(tmp_path / DEFAULT_BASELINES, "test_few_steps")
    result.has_lines(f"test_it.py::test_few_steps: baseline extended, {baseline}")
    assert not baseline_of(tmp_path / DEFAULT_BASELINES, "test_fails").exists()
    result.has_lines("profile_check: a test has one baseline, so it profiles one block; *")
    result.has_lines("*of tensorflow or of jax? both are imported; say which, as in framework='jax'")
    assert "another exception" not in result.text


def test_update_and_add_contradict_each_other(session: Session) -> None:
    result = session("def test_it(): pass\n", "--profile-update", "--profile-add")
    assert result.status == pytest.ExitCode.USAGE_ERROR
    result.has_lines("*--profile-update and --profile-add: give one of them")


def test_a_session_that_does_not_use_it_imports_nothing_more(tmp_path: Path, session: Session) -> None:
    result = session(
        "import sys\n\ndef test_it():\n    assert 'tfcompare.pytest_plugin' in sys.modules\n"
        "    heavy = {'numpy', 'pandas', 'numba', 'scipy', 'pyarrow', 'tensorflow', 'jax', 'streamlit'}\n"
        "    assert not heavy & set(sys.modules)\n"
        "    assert 'tfcompare.pytest_plugin.profile_check' not in sys.modules\n"
    )
    assert result.outcomes == "1 passed", result.text
    assert "= tfcompare =" not in result.text
    assert not (tmp_path / DEFAULT_BASELINES).exists()
