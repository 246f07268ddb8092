"""The fixture `profile_check`, by itself and in sessions of pytest: with a stand-in for the profilers, thoroughly with
TensorFlow.

The sessions are processes started here and not by pytest's `pytester`, which unloads the modules that a test has
loaded: numba cannot be loaded twice.
"""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from tests.profiles import ROOT, run_path
from tests.pytest_plugin.recorder import Recorder, stand_in_for
from tfcompare import load
from tfcompare.pytest_plugin import DEFAULT_BASELINES
from tfcompare.pytest_plugin.baselines import Baseline
from tfcompare.pytest_plugin.profile_check import Profile, ProfileCheck

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

SLOWER = SNIPPET.replace("training_step(profile_check)", "slower(profile_check, monkeypatch)").replace(
    "    train_step(batch)  # warm up",
    "    monkeypatch.setenv('SLOW_S', os.environ.get('LATER_S', '0'))\n    train_step(batch)  # warm up",
)
NOT_RUN = """
import pytest

@pytest.mark.parametrize("path", ["a/b"])
def test_not_run(profile_check, path):
    with profile_check("step_time>+10%"):
        raise AssertionError("the block has run")
"""
STEP_TIME = "step_time>+10%"
WRONG_CALLS: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    (("step_tme>+5%",), {}, "unknown metric 'step_tme'; .*did you mean 'step_time'[?]"),
    (("step_time",), {}, "'step_time' is no condition; expected METRIC OP PERCENT% "),
    (([],), {}, "profile_check: fail_if names no condition, "),
    (("step_time>5%",), {"framework": "torch"}, "unknown framework 'torch'; must be one of: "),
]


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
    program = framework + SNIPPET + SLOWER
    written = session(program, "--profile-update", "-n", "1", "--profile-baselines", "given")
    assert written.outcomes == "2 passed", written.text
    baseline, of_slower = (baseline_of(tmp_path / "given", f"test_{name}") for name in ("training_step", "slower"))
    written.has_lines("*= tfcompare =*", f"test_it.py::test_training_step: baseline written, {baseline}")
    assert load(baseline).info.step_count == 30
    Baseline(baseline).add(recording(tmp_path / "another", steps=30))

    monkeypatch.setenv("LATER_S", SLOWDOWN_S)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntfcompare_baselines = given\n", encoding="utf-8")
    later = session(program + NOT_RUN, "-rP")
    assert later.outcomes == "2 failed, 1 passed", later.text
    later.has_lines("*_ test_training_step _*", "*Captured tfcompare call*", "this run vs the baseline: passed (*")
    later.has_lines("*_ test_training_step _*", "*2 and 1 captures*")
    later.has_lines(
        "*_ test_slower _*",
        "this run vs the baseline: FAILED (1 failed)",
        "FAILED *step_time>+10% *",
        "step_time>+10%: 95 % confidence interval *",
        "+* ms per step = *",
    )
    missing = baseline_of(tmp_path / "given", "test_not_run[a/b]")
    how = "pytest --profile-update 'test_it.py::test_not_run[[]a/b]'"
    later.has_lines("*_ test_not_run[[]a/b] _*", f"no baseline at {missing}; to write it: {how}")
    assert "the block has run" not in later.text and "another exception" not in later.text
    assert "profile_check.py" not in later.text, "no traceback into the plugin"
    # pytest repeats the whole message in its summary where the variable CI is set
    (path,) = set(re.findall(rf"^What changed: tfcompare diff {of_slower} (\S+)$", later.text, re.MULTILINE))
    assert load(path).info.step_time_ms_median > 1000 * float(SLOWDOWN_S), "it is still there"


def recording(logdir: Path, *ops: str, steps: int) -> Path:
    """A logdir with a profile of so many steps, of these ops."""
    recorder = Recorder(*ops)
    recorder.start(str(logdir))
    for i in range(steps):
        recorder.step("profile_check", step_num=i, _r=1)
    recorder.stop()
    return logdir


@dataclass
class Test:
    """A test that asks for the fixture, without a session around it."""

    __test__ = False

    baseline: Baseline
    folder: Path
    shown: list[str] = field(default_factory=list)
    summary: list[str] = field(default_factory=list)

    def asks(self, *, updates: bool = False, adds: bool = False) -> ProfileCheck:
        """The fixture."""
        candidate = Path(tempfile.mkdtemp(dir=self.folder))
        return ProfileCheck("t.py::t", self.baseline, candidate, updates, adds, self.shown.append, self.summary.append)

    def fails(self, *words: object, steps: int = 0, **options: object) -> str:
        """Why it fails if its block has so many steps."""
        with pytest.raises(pytest.fail.Exception) as caught, self.asks()(*words, **options) as profile:  # type: ignore[arg-type]
            for i in range(steps):
                profile.step(i)
        assert not caught.value.pytrace and caught.value.__cause__ is None
        return str(caught.value)


@pytest.fixture
def test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Test:
    """Neither framework counts as imported; there is a baseline of 12 steps."""
    for framework in ("tensorflow", "jax"):
        monkeypatch.setitem(sys.modules, framework, None)
    made = Test(Baseline(tmp_path / "baseline"), tmp_path)
    made.baseline.replace(recording(tmp_path / "recorded", steps=12))
    return made


@pytest.mark.parametrize(("words", "options", "sentence"), WRONG_CALLS)
def test_wrong_calls_cost_one_sentence(
    test: Test, words: tuple[Any, ...], options: dict[str, Any], sentence: str
) -> None:
    stand_in_for("tensorflow")
    assert re.match(sentence, test.fails(*words, **options))


def test_the_framework_is_the_one_that_is_imported(test: Test) -> None:
    end = "; say which, as in framework='jax'"
    assert test.fails(STEP_TIME).endswith(f"of tensorflow or of jax? neither is imported{end}")
    stand_in_for("jax")
    with test.asks(adds=True)(STEP_TIME) as profile:
        for i in range(12):
            profile.step(i)
    assert test.summary == [f"t.py::t: baseline extended, {test.baseline.folder}"]
    assert [run.info.step_count for run in map(load, sorted(test.baseline.folder.iterdir()))] == [12, 12]
    stand_in_for("tensorflow")
    assert test.fails(STEP_TIME).endswith(f"of tensorflow or of jax? both are imported{end}")


def test_an_error_in_the_block_is_the_test_s_own_and_nothing_is_stored(test: Test) -> None:
    stand_in_for("tensorflow")
    with pytest.raises(KeyError, match="mine"), test.asks(adds=True)(STEP_TIME):
        raise KeyError("mine")
    assert (test.summary, len(list(test.baseline.folder.iterdir()))) == ([], 1)


def test_a_test_profiles_one_block(test: Test) -> None:
    stand_in_for("tensorflow")
    asked = test.asks(updates=True)
    with asked(STEP_TIME):
        pass
    (line,) = test.summary[:1]
    assert line.startswith("t.py::t: the block marks no steps, so times cannot be judged and ")
    with (
        pytest.raises(pytest.fail.Exception, match="a test has one baseline, so it profiles one block; "),
        asked(STEP_TIME),
    ):
        pass


@pytest.mark.parametrize(
    ("steps", "options", "reason"),
    [
        (5, {}, "5 steps, 9 needed on each side; record 11 steps or more"),
        (5, {"strict": True}, "5 steps, 9 needed on each side; record 11 steps or more"),
        (0, {}, "no step markers in the baseline and the candidate; "),
    ],
)
def test_what_cannot_be_judged_fails_and_says_how_to_record_more(
    test: Test, tmp_path: Path, steps: int, options: dict[str, bool], reason: str
) -> None:
    stand_in_for("tensorflow")
    test.baseline.replace(recording(tmp_path / "as_many", steps=steps))
    said = test.fails(STEP_TIME, steps=steps, **options).splitlines()
    assert said[0] == "this run vs the baseline: NOT JUDGED (1 untested)"
    assert [line for line in said if line.startswith(f"NOT JUDGED: {STEP_TIME}: {reason}")]
    again = "then write the baseline anew: pytest --profile-update t.py::t"
    assert f"Mark each step by `with profile.step(i):`, {again}" in said


def test_each_kind_of_step_is_judged_and_the_op_that_changed_is_named(
    test: Test, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(profile: Profile) -> None:
        for i in range(30):
            with profile.step(i, "evaluate" if i % 2 else "train"):
                pass

    stand_in_for("tensorflow")
    with test.asks(updates=True)(STEP_TIME) as profile:
        run(profile)
    monkeypatch.setenv("SLOW_S", SLOWDOWN_S)
    with pytest.raises(pytest.fail.Exception) as caught, test.asks()(STEP_TIME) as profile:
        run(profile)
    said = str(caught.value)
    assert said.startswith("this run vs the baseline: FAILED (2 failed)")
    assert f"{STEP_TIME} (train)" in said and f"{STEP_TIME} (evaluate)" in said
    assert re.search(r"^\+.* per step = .*multiply", said, re.MULTILINE)


def test_of_another_program_nothing_is_judged_and_the_baseline_is_to_be_written_anew(
    test: Test, tmp_path: Path
) -> None:
    before = ("encode:Conv2D", "pool:MaxPool", "norm:FusedBatchNormV3", "flatten:Reshape", "act:Relu")
    after = ("embed:GatherV2", "attend:Softmax", "project:MatMul", "scale:Mul", "mask:SelectV2")
    stand_in_for("tensorflow", *after)
    test.baseline.replace(recording(tmp_path / "another", *before, steps=12))
    said = test.fails(STEP_TIME, steps=12).splitlines()
    assert said[0].startswith("this run vs the baseline: NOT JUDGED")
    assert f"NOT JUDGED: {STEP_TIME}: the programs are different: there is nothing to compare" in said
    again = "write the baseline anew: pytest --profile-update t.py::t"
    assert f"If the program is another one now, {again}" in said
    test.baseline.replace(recording(tmp_path / "same", *after, steps=12))
    with test.asks()(STEP_TIME) as block:
        for i in range(12):
            block.step(i)


def test_a_baseline_that_is_damaged_or_of_another_device(test: Test) -> None:
    stand_in_for("tensorflow")
    profile = next(run_path("gpu_filters_512_128").rglob("*.xplane.pb")).read_bytes()
    (file,) = test.baseline.folder.rglob("*.xplane.pb.gz")
    file.write_bytes(gzip.compress(profile[:1000]))
    again = "to write the baseline anew: pytest --profile-update t.py::t"
    said = test.fails(STEP_TIME, steps=12)
    assert re.fullmatch(rf"{re.escape(str(test.baseline.folder))}.*: not a readable profile: at byte .*; {again}", said)
    file.write_bytes(gzip.compress(profile))
    with test.asks()(STEP_TIME) as block:
        for i in range(12):
            block.step(i)
    assert "note: the runs differ in device type, which alone can change times" in test.shown[0].splitlines()


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
