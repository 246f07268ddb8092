"""The fixture `profile_check`: profiles a block of code, and checks it against a baseline."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from tfcompare.errors import TfcompareError, Unknown
from tfcompare.pytest_plugin.baselines import Baseline
from tfcompare.sources.machine_load import recorded_load
from tfcompare.text import close_matches, did_you_mean

if TYPE_CHECKING:
    from tfcompare.compare.check.conditions import Condition, Findings, Judgement

Framework = Literal["tensorflow", "jax"]
FRAMEWORKS: tuple[Framework, ...] = ("tensorflow", "jax")
STEP_NAME = "profile_check"


@dataclass
class ProfileCheck:
    """What the fixture `profile_check` returns; see there.

    `candidate`: the folder to record into, which need not exist. `show` adds a text to the test's report, `summarise` a
    line to the summary of the session.
    """

    test_id: str
    baseline: Baseline
    candidate: Path
    updates: bool
    adds: bool
    show: Callable[[str], None] = field(repr=False)
    summarise: Callable[[str], None] = field(repr=False)
    _is_used: bool = field(default=False, init=False, repr=False)

    @contextmanager
    def __call__(
        self,
        fail_if: str | Sequence[str],
        *,
        strict: bool = False,
        spread: float | None = None,
        framework: Framework | None = None,
    ) -> Iterator[Profile]:
        """Profiles its block; at the end of the block, fails the test if a condition is met or could not be judged.

        `fail_if`: conditions as in `tfcompare check --fail-if`, such as `step_time>+10%`. `strict`: also fail if one is
        unclear. `spread`: the standard deviation between captures of one program, as a share (default:
        measured if the baseline has 3 captures or more, else assumed by device). `framework`: whose profiler, if the
        process has imported both.
        """
        with _reported():
            conditions = self._prepared([fail_if] if isinstance(fail_if, str) else fail_if)
            if framework is None:
                framework = framework_of_process()
            elif framework not in FRAMEWORKS:
                raise Unknown("framework", framework, list(FRAMEWORKS))
        with recorded(framework, self.candidate) as profile:
            yield profile
        with _reported():
            if self.updates or self.adds:
                self._store(conditions)
                return
            findings = self._findings(conditions, spread)
        self._report(findings, findings.judge(strict=strict))

    def _prepared(self, texts: Sequence[str]) -> list[Condition]:
        """The conditions; raises `TfcompareError` before anything is recorded in vain."""
        from tfcompare.compare.check.conditions import parse_condition

        if not texts:
            raise TfcompareError("profile_check: fail_if names no condition, such as 'step_time>+10%'")
        if self._is_used:
            remedy = "a test has one baseline, so it profiles one block; parametrise it for several"
            raise TfcompareError(f"profile_check: {remedy}")
        self._is_used = True
        conditions = [parse_condition(text) for text in texts]
        if not (self.updates or self.adds or self.baseline.exists):
            raise TfcompareError(f"no baseline at {self.baseline.folder}; to write it: {self._how_to_write}")
        return conditions

    def _store(self, conditions: Sequence[Condition]) -> None:
        """Make the recorded block a baseline; says so if it has no steps to test times on."""
        from tfcompare.compare.check.conditions import NEED_NO_STEPS
        from tfcompare.loading import Question, sides

        (((recorded_run,),), _) = sides(Question((str(self.candidate),)))
        if not recorded_run.info.has_steps and any(one.metric not in NEED_NO_STEPS for one in conditions):
            self.summarise(
                f"{self.test_id}: the block marks no steps, so times cannot be judged and the test will fail; put each "
                "step inside `with profile.step(i):`"
            )
        store = self.baseline.replace if self.updates else self.baseline.add
        store(self.candidate)
        self.summarise(f"{self.test_id}: baseline {'written' if self.updates else 'extended'}, {self.baseline.folder}")

    def _findings(self, conditions: Sequence[Condition], spread: float | None) -> Findings:
        """The result of `check`; the candidate's process varies as those of the baseline do."""
        from tfcompare.commands.shared.progress import notes
        from tfcompare.compare.check.conditions import check
        from tfcompare.loading import Question, compared, sides

        question = Question((str(self.candidate),), spread=spread, is_series=True)
        try:
            (baseline,), of_baseline = sides(replace(question, places=(str(self.baseline.folder),)))
        except TfcompareError as error:
            raise TfcompareError(f"{error}; to write the baseline anew: {self._how_to_write}") from error
        (candidate,), of_candidate = sides(question)
        comparison, refused = compared(question, [baseline, candidate])
        notes([*of_baseline, *of_candidate, *refused])
        return check(comparison, conditions)

    def _report(self, findings: Findings, judgement: Judgement) -> None:
        from tfcompare.compare.stats.verdict import UNCLEAR, UNTESTED
        from tfcompare.render.check_output import interval, text_of_width

        text = text_of_width(findings, ("the baseline", "this run"), judgement, None)
        if findings.pair.are_unrelated:
            text += f"If the program is another one now, write the baseline anew: {self._how_to_write}\n"
        elif any(finding.outcome == UNTESTED for finding in findings.found):
            text += f"Mark each step by `with profile.step(i):`, then write the baseline anew: {self._how_to_write}\n"
        text += "".join(f"{line}\n" for line in _why_it_failed(findings))
        paths = shlex.join([str(self.baseline.folder), str(self.candidate)])
        text += f"What changed: tfcompare diff {paths}\n"
        if not judgement.is_passed:
            pytest.fail(text, pytrace=False)
        self.show(text)
        for finding in findings.found:
            if finding.outcome == UNCLEAR:
                between = f"95 % confidence interval {interval(finding)}"
                self.summarise(f"{self.test_id}: {finding.text} is unclear: {between} (details: pytest -rP)")

    @property
    def _how_to_write(self) -> str:
        return f"pytest --profile-update {shlex.quote(self.test_id)}"


def _why_it_failed(findings: Findings) -> Iterator[str]:
    """What the step's change consists of, with the op above all, if a condition failed; of a memory's, the op with
    most of it."""
    from tfcompare.render.inline import plain
    from tfcompare.views.steps.attribution import attribution_of

    failed = [one for one in findings.found if one.outcome == "failed"]
    if not failed:
        return
    if attribution_of(findings.pair).waterfall is not None:
        yield plain(attribution_of(findings.pair).sentence)
    if any(one.condition is not None and one.condition.metric.startswith("peak_memory") for one in failed):
        from tfcompare.views.memory.peak import largest_change  # imports Plotly

        yield from filter(None, [plain(largest_change(findings.pair))])


@contextmanager
def _reported() -> Iterator[None]:
    """Fails the test with the sentence of an error, without a traceback."""
    try:
        yield
    except Unknown as error:
        sentence = f"{error}{did_you_mean(close_matches(error.name, error.known))}"
    except TfcompareError as error:
        sentence = str(error)
    except OSError as error:
        sentence = f"{error.filename or 'profile_check'}: {error.strerror or error}"
    else:
        return
    raise pytest.fail.Exception(sentence, pytrace=False) from None


@dataclass(frozen=True)
class Profile:
    """The profile that is being recorded."""

    framework: Framework

    def step(self, number: int, kind: str = STEP_NAME) -> AbstractContextManager[Any]:
        """Marks its block as a step, of a `kind` such as `train` or `evaluate` where there are several: each is judged.

        Times are judged from 11 steps on: the first and last do not count, 9 of each kind must.
        """
        profiler = _profiler(self.framework)
        if self.framework == "jax":
            return profiler.StepTraceAnnotation(kind, step_num=number)  # type: ignore[no-any-return]
        return profiler.Trace(kind, step_num=number, _r=1)  # type: ignore[no-any-return]


@contextmanager
def recorded(framework: Framework, logdir: Path) -> Iterator[Profile]:
    """Records what runs in its block into `logdir`, and the load of the machine beside it.

    Raises what the profiler raises, such as when another profile is being recorded in this process.
    """
    one, is_jax = _profiler(framework), framework == "jax"
    start, stop = (one.start_trace, one.stop_trace) if is_jax else (one.start, one.stop)
    with recorded_load(logdir):
        start(str(logdir))
        try:
            yield Profile(framework)
        finally:
            stop()


def framework_of_process() -> Framework:
    """The framework that this process has imported.

    Raises `TfcompareError` if it has imported both, as TensorFlow does where JAX is installed, or neither.
    """
    imported = [name for name in FRAMEWORKS if sys.modules.get(name) is not None]
    if len(imported) == 1:
        return imported[0]
    found = "both are imported" if imported else "neither is imported"
    raise TfcompareError(
        f"profile_check: which profiler, that of tensorflow or of jax? {found}; say which, as in framework='jax'"
    )


def _profiler(framework: Framework) -> Any:
    profiler = import_module(framework).profiler
    return profiler if framework == "jax" else profiler.experimental
