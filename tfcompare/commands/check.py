"""Check conditions on two runs and fail if one is met, for CI.

Each of BASELINE and CANDIDATE is a profile file, a run folder, or a logdir that holds a single run, or several
captures of one program by their names (run-1, run-2, …); with --store, a run of that store. With --against-series, a
single run is compared with the last runs of its kind in a store, and the variation between these is measured. With
--baseline, the only argument is the candidate, and it is compared with what `tfcompare baseline set` wrote.

CONDITION is what must not happen: METRIC OP PERCENT% for the change from baseline to candidate, or METRIC OP VALUE for
the candidate.

  METRIC  compared exactly:
          occurrences:PATTERN   how often ops whose name or type matches run per step, such as occurrences:*Conv2D*
          kernel_launches       kernels launched per step
          flops                 FLOPs of compiled programs per step, those that recompute a value too
          peak_memory           the largest peak of any memory; peak_memory:MEMORY for one memory, such as GPU_0_bfc
          memory_growth         bytes that a memory holds more after each step: the slope over the included steps
          with an interval:
          device_time           time per step in which devices compute, communicate or copy among themselves
          kernel:PATTERN        time per step of all kernels whose name matches
          op:PATTERN            self time per step of all ops whose name or type matches, such as op:*Conv2D*
          rate:PATTERN          FLOP/s of these ops by their self time; bytes/s if they move data rather than compute
          step_time             the mean of the included steps, without the time between them
          step_time_median      their median; step_time_p95 the time that 95 % of them do not exceed
          throughput            steps per second of the whole loop, with the time between steps
          time_between_steps    time per step from the end of a step to the start of the next
          mfu                   FLOPs of compiled programs per step by what the device could do in its time, such as 0.4
          hbm_share             the same of the bytes that they move and the bandwidth of the device's memory
          input_latency         the mean latency of calls to the slowest tf.data pipeline
  OP      >  >=  <  <=
  VALUE   a time in ns, us, µs, ms or s; bytes in B, kB, MB, GB, KiB, MiB or GiB; counts, FLOPs, rates
          and shares as a plain number

Where each step of one side does n times the work of one of the other, such as with steps_per_execution, conditions are
judged per iteration (a step ÷ n), and a note says so. Where steps are of several kinds, as of training and evaluation,
step_time, step_time_median, step_time_p95 and device_time are judged in each kind that both runs have.

A time fails only if its whole 95 % confidence interval meets the condition. It is unclear if only the estimate does,
and untested if there are too few steps or no step markers. The output states the number of captures, the smallest
detectable change and, if a condition is unclear, what shows more and how many captures would detect the change in
question. A condition is missing if neither run has its subject, such as an op of that name; this is bad input, reported
after the other conditions.

The last lines say what was not decided: NOT JUDGED with what to record, UNCLEAR with the smallest detectable change.

Exit status: 0 passed (also if a condition is unclear), 1 a condition failed (with --strict also if one is unclear),
2 bad input or not judged: a condition is untested or missing, and none failed, or the runs are of different programs.
Without --fail-if nothing is judged: 0.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare.commands.baseline import add_baseline, check_options, checked_with_file
from tfcompare.commands.report import write
from tfcompare.commands.shared.options import add_host, add_judging, add_steps, add_store, question
from tfcompare.commands.shared.output import at_least_1, note
from tfcompare.commands.shared.progress import Reading, answered, notes
from tfcompare.errors import NoRuns, TfcompareError
from tfcompare.render.check_output import as_checked, as_json, as_markdown, as_text
from tfcompare.sources.remote.places import shown
from tfcompare.text import some_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfcompare.compare.check.conditions import Condition, Findings
    from tfcompare.comparison import Comparison
    from tfcompare.loading import Captures, Question
    from tfcompare.run import Run
    from tfcompare.store.stored_run import StoredRun

SUMMARY = "check conditions on two runs and fail if one is met, for CI"
EXAMPLES = """examples (logs/before and logs/after hold run-1, run-2, run-3):
  tfcompare check logs/before logs/after --strict --fail-if 'step_time>+5%' --fail-if 'peak_memory>+10%'
  tfcompare check logs/before logs/after --strict --fail-if 'op:*Conv2D*>+5%' --format markdown
  tfcompare check logs/tonight --against-series store --fail-if 'step_time>+5%'
  tfcompare check --baseline main logs/after --fail-if 'step_time>+5%'
  tfcompare check --baseline main logs/after --fail-if 'step_time>+5%' --accept 'a third layer' --until 2027-01-31
  tfcompare check logs/a logs/b --baseline-repeat logs/a2 logs/a3 --candidate-repeat logs/b2 logs/b3"""

FORMATS = {"text": as_text, "json": as_json, "markdown": as_markdown}
STATUSES = {"no conditions": 0, "passed": 0, "unclear": 0, "failed": 1, "not judged": 2}
"""The exit status of each overall result."""
_FAIL_IF = (
    "what must not happen; can be given several times (default: print the verdicts on step time and peak memory, "
    "without failing)"
)
_FORMAT = (
    "text: for reading; json: full precision, for programs; markdown: for a comment on a pull request "
    "(default: %(default)s)"
)
_AGAINST_SERIES = (
    "compare a single run, given as the only argument, with the last runs of its program in this store: on the same "
    "device, and with the same `program` in their metadata or else the same folders' names, apart from dates, commits "
    "and counters"
)
_SERIES_TAG = (
    "only runs with this tag, such as branch=main; can be given several times. If the run's folders are of no program "
    "in the store, all runs with these tags count, which must be of one program"
)
USUAL_RUNS = 10
_MOST_NAMED = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("baseline", metavar="BASELINE", help="the run to compare with")
    meaning = "the run to test; with --against-series or --baseline it is the only argument"
    parser.add_argument("candidate", metavar="CANDIDATE", nargs="?", help=meaning)
    parser.add_argument("--fail-if", metavar="CONDITION", action="append", default=[], help=_FAIL_IF)
    meaning = "also fail if a condition is unclear (untested is exit status 2, with and without --strict)"
    parser.add_argument("--strict", action="store_true", help=meaning)
    parser.add_argument("--format", choices=tuple(FORMATS), default="text", help=_FORMAT)
    meaning = "also write a report to FILE (.html, .md or .json), passed or not; can be given several times"
    parser.add_argument("--report", metavar="FILE", type=Path, action="append", default=[], help=meaning)
    add_host(parser)
    parser.add_argument("--against-series", metavar="STORE", help=_AGAINST_SERIES)
    parser.add_argument("--series-tag", metavar="TAG", action="append", default=[], help=_SERIES_TAG)
    meaning = "how many of them (default: %(default)s)"
    parser.add_argument("--last", metavar="N", type=at_least_1, default=USUAL_RUNS, help=meaning)
    add_baseline(parser)
    add_judging(parser)
    add_store(parser)
    add_steps(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the results; returns the exit status of the overall result."""
    from tfcompare.compare.check.conditions import parse_condition

    conditions = [parse_condition(text) for text in arguments.fail_if]
    comparison, findings = _checked(arguments, conditions)
    baseline, candidate = comparison.baseline, comparison.candidates[0]
    judgement = findings.judge(strict=arguments.strict)
    names = (baseline.name, candidate.name)
    if arguments.baseline_name is not None:
        names = (f"{arguments.baseline_name} in {arguments.baseline_file}", candidate.name)
    if arguments.against_series is not None:
        earlier = sorted(comparison.sides[0].runs, key=lambda run: run.found.recorded, reverse=True)
        named = some_of([run.name for run in earlier], _MOST_NAMED)
        names = (f"the last {len(earlier):,} runs: {named}", candidate.name)
    elif names[0] == names[1]:
        names = (shown(arguments.baseline), shown(arguments.candidate))
    sys.stdout.write(FORMATS[arguments.format](findings, names, judgement))
    for file in arguments.report:
        from tfcompare.render.report import form_of, report

        write(report(comparison, form_of(file), checked=as_checked(findings, names, judgement)), file)
    sys.stdout.flush()
    return STATUSES[judgement.outcome]


def _checked(arguments: argparse.Namespace, conditions: Sequence[Condition]) -> tuple[Comparison, Findings]:
    """The comparison of baseline and candidate, and the findings; prints its notes. Raises as what loads them."""
    from tfcompare.compare.check.conditions import check
    from tfcompare.loading import compared

    is_alone = arguments.against_series is not None or arguments.baseline_name is not None
    if (arguments.candidate is None) != is_alone:
        takes = "BASELINE and CANDIDATE, or a single run with --against-series STORE or --baseline NAME"
        raise TfcompareError(f"check takes {takes} (see `tfcompare check --help`)")
    check_options(arguments)
    if arguments.baseline_name is not None:
        return checked_with_file(arguments, conditions)
    if arguments.against_series is None:
        comparison = answered(question(arguments, arguments.baseline, arguments.candidate))
    else:
        comparison, remarks = compared(*load_series(arguments))
        notes(remarks)
    return comparison, check(comparison, conditions)


def load_series(arguments: argparse.Namespace) -> tuple[Question, list[Captures]]:
    """(the question about the candidate; the last run of the series with those before it as its replicates, and the
    candidate with its own). Notes what is left out.

    Raises `NoRuns` if the store has no run of its kind.
    """
    from tfcompare.loading import read, runs_below, sides

    reading, more = Reading(), tuple(arguments.candidate_repeat)
    asked = replace(question(arguments, arguments.baseline), store=None, repeats=(more,), is_series=True)
    (own,), remarks = sides(asked, reading)
    notes(remarks)
    candidate = own[0]
    kind = _of_its_kind(candidate, arguments)
    start = candidate.info.start_time
    earlier = [run for run in kind if run.content_id != candidate.content_id and run.recorded < start]
    loaded: list[Run] = []
    for run in reversed(earlier):
        if len(loaded) == arguments.last:
            break
        try:
            loaded.append(read(run, asked.steps, progress=reading))
        except TfcompareError as error:
            note(f"note: left out: {error}")
    if not loaded:
        raise NoRuns(
            f"{shown(arguments.against_series)}: has no earlier run of the kind of {candidate.name}; give a tag "
            "that its runs have with --series-tag"
        )
    if arguments.baseline_repeat:
        given, remarks = runs_below(replace(asked, places=tuple(arguments.baseline_repeat)), reading)
        notes(remarks)
        loaded += given
    return asked, [tuple(loaded), own]


def _of_its_kind(candidate: Run, arguments: argparse.Namespace) -> list[StoredRun]:
    """The stored runs of the candidate's program, with all tags. Raises `NoRuns` if the tags leave several programs."""
    from tfcompare.loading import stored_runs
    from tfcompare.sources.programs import device_words, programs_of, same_program
    from tfcompare.views.run_listing import device_text

    info, tags = candidate.info, set(arguments.series_tag)
    device = device_words(device_text(info.device_type, info.device_count), info.device_name)
    runs, problems = stored_runs(arguments.against_series)
    notes(problems)
    stored = [run for run in runs if run.is_readable]
    programs = programs_of(stored)
    tagged = [run for run in stored if tags <= set(run.metadata.texts) and programs[run.id].device == device]
    if (program := same_program(candidate.found, device, programs.values())) is not None:
        return [run for run in tagged if programs[run.id] == program]
    if not tags:
        return []
    if len(several := sorted({programs[run.id].text for run in tagged})) > 1:
        raise NoRuns(
            f"{shown(arguments.against_series)}: its runs with {', '.join(sorted(tags))} are of {len(several):,} "
            f"programs: {some_of(several, _MOST_NAMED)}; give a tag that only those of {candidate.name} have"
        )
    return tagged
