"""Fail where a change made things worse, for CI: check conditions on two runs.

Each of BASELINE and CANDIDATE is a profile file, a run folder, or a logdir that holds a single run, or several captures
of one program by their names (run-1, run-2, …); with --store, a run of that store. CONDITION says what must not be:
METRIC OP PERCENT% (of the change from baseline to candidate) or METRIC OP VALUE (of the candidate).

  METRIC  step_time             the typical step
          time_between_steps    time per step that is in no step, from the first step to the last
          input_latency         the mean call of the slowest input pipeline of tf.data
          peak_memory           the largest peak; peak_memory:MEMORY that of one memory, such as GPU_0_bfc
          kernel_launches       kernels launched per step
          op:PATTERN            self time per step of all ops whose name or type matches, such as op:*Conv2D*
          kernel:PATTERN        time per step of all kernels whose name matches
  OP      >  >=  <  <=
  VALUE   a time in ns, us, µs, ms or s; bytes in B, kB, MB, GB, KiB, MiB or GiB; launches as a plain number

A time fails only where the whole 95 % confidence interval meets the condition; it is unclear where only the estimate
does, and untested where there are too few steps. The output states how many captures there were, the smallest change
that they could have detected and, if unclear, how many captures would detect the change in question. Bytes and launches
are compared exactly, those of BASELINE and CANDIDATE themselves. A condition is missing where neither run has what it
is about, such as an op of that name: it is bad input, which is reported once the others are checked and printed. Exit
status: 0 passed, 1 a condition failed (with --strict also: is unclear or untested), 2 bad input.
"""

from __future__ import annotations

import argparse
import sys

from tfcompare.commands.check_output import as_json, as_markdown, as_text, condition_text
from tfcompare.commands.judging import add_judging, load_repeats, spread_of
from tfcompare.commands.reading import add_steps, add_store, chosen_steps, load_replicates
from tfcompare.errors import TfcompareError
from tfcompare.sources.remote.places import shown

SUMMARY = "fail where a change made things worse, for CI"
EXAMPLES = """examples:
  tfcompare check logs/before logs/after --fail-if 'step_time>+5%' --fail-if 'peak_memory>+10%'
  tfcompare check logs/before logs/after --fail-if 'op:*Conv2D*>+5%' --strict --format markdown
  tfcompare check logs/before logs/after --fail-if 'step_time>+5%'    # each holds run-1, run-2, run-3
  tfcompare check logs/a logs/b --baseline-repeat logs/a2 logs/a3 --candidate-repeat logs/b2 logs/b3"""

FORMATS = {"text": as_text, "json": as_json, "markdown": as_markdown}
PASSED, FAILED = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("baseline", metavar="BASELINE", help="the run to compare with")
    parser.add_argument("candidate", metavar="CANDIDATE", help="the run that is judged")
    parser.add_argument(
        "--fail-if",
        metavar="CONDITION",
        action="append",
        default=[],
        help="what must not be; can be given several times (without any, the verdicts on step time and peak memory are "
        "printed, and nothing fails)",
    )
    parser.add_argument("--strict", action="store_true", help="fail also where a condition is unclear or untested")
    parser.add_argument(
        "--format",
        choices=tuple(FORMATS),
        default="text",
        help="text: for reading; json: full precision, for programs; markdown: for a comment on a pull request "
        "(default: %(default)s)",
    )
    parser.add_argument("--host", metavar="H", help="of this host only (default: all hosts)")
    add_judging(parser)
    add_store(parser)
    add_steps(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the results; returns 1 if a condition failed.

    Raises `TfcompareError`, after printing, if neither run has what a condition is about.
    """
    from tfcompare.compare.conditions import check, parse_condition

    conditions = [parse_condition(text) for text in arguments.fail_if]
    spread = spread_of(arguments)
    places = [arguments.baseline, arguments.candidate]
    groups = load_replicates(places, arguments.store, chosen_steps(arguments))
    repeats = load_repeats(arguments, groups)
    baseline, candidate = (run for run, *_ in groups)
    findings = check(baseline, candidate, conditions, host=arguments.host, spread=spread, repeats=repeats)
    is_passed = findings.passed(strict=arguments.strict)
    names = (baseline.name, candidate.name)
    if names[0] == names[1]:
        names = (shown(arguments.baseline), shown(arguments.candidate))
    sys.stdout.write(FORMATS[arguments.format](findings, names, is_passed))
    if findings.missing:
        sys.stdout.flush()
        raise TfcompareError("; ".join(f"{condition_text(f)}: {f.reason}" for f in findings.missing))
    return PASSED if is_passed else FAILED
