"""Fail where a change made things worse, for CI: hold conditions against two runs.

Each of BASELINE and CANDIDATE is a profile file, a run folder, or a logdir that holds a single run. CONDITION says what
must not be: METRIC OP PERCENT% (of the change from baseline to candidate) or METRIC OP VALUE (of the candidate).

  METRIC  step_time             the typical step
          input_latency         the mean call of the slowest input pipeline of tf.data
          peak_memory           the largest peak; peak_memory:MEMORY that of one memory, such as GPU_0_bfc
          kernel_launches       kernels launched per step
          op:PATTERN            self time per step of all ops whose name or type matches, such as op:*Conv2D*
          kernel:PATTERN        time per step of all kernels whose name matches
  OP      >  >=  <  <=
  VALUE   a time in ns, us, µs, ms or s; bytes in B, kB, MB, GB, KiB, MiB or GiB; launches as a plain number

A time fails only where the whole 95 % interval meets the condition; it is unclear where only the estimate does, and
untested where there are too few steps. Bytes and launches are compared exactly. Exit status: 0 passed, 1 a condition
failed (with --strict also: is unclear or untested), 2 bad input.
"""

from __future__ import annotations

import argparse
import re
import sys

from tfcompare.commands.check_output import as_json, as_markdown, as_text
from tfcompare.commands.reading import load_runs
from tfcompare.errors import TfcompareError

SUMMARY = "fail where a change made things worse, for CI"
EXAMPLES = """examples:
  tfcompare check logs/before logs/after --fail-if 'step_time>+5%' --fail-if 'peak_memory>+10%'
  tfcompare check logs/before logs/after --fail-if 'op:*Conv2D*>+5%' --strict --format markdown"""

FORMATS = {"text": as_text, "json": as_json, "markdown": as_markdown}
PASSED, FAILED = 0, 1
_PERCENT = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("baseline", metavar="BASELINE", help="the run that is held against")
    parser.add_argument("candidate", metavar="CANDIDATE", help="the run that is judged")
    parser.add_argument(
        "--fail-if",
        metavar="CONDITION",
        action="append",
        default=[],
        help="what must not be; can be given several times (without any, the verdicts on step time and peak memory are "
        "told, and nothing fails)",
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
    parser.add_argument(
        "--spread",
        metavar="PERCENT",
        help="how far recordings of one program are apart, as a standard deviation, such as 3%% (default: what is "
        "declared for the device)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print what became of the conditions; 1 where one failed."""
    from tfcompare.compare.conditions import check, parse_condition

    conditions = [parse_condition(text) for text in arguments.fail_if]
    spread = None if arguments.spread is None else share_of(arguments.spread)
    baseline, candidate = load_runs([arguments.baseline, arguments.candidate])
    findings = check(baseline, candidate, conditions, host=arguments.host, spread=spread)
    is_passed = findings.passed(strict=arguments.strict)
    names = (baseline.name, candidate.name)
    if names[0] == names[1]:
        names = (arguments.baseline, arguments.candidate)
    sys.stdout.write(FORMATS[arguments.format](findings, names, is_passed))
    return PASSED if is_passed else FAILED


def share_of(percent: str) -> float:
    """0.03 of `3%`; raises `TfcompareError` for what is no percentage."""
    match = _PERCENT.fullmatch(percent)
    if match is None:
        raise TfcompareError(f"--spread {percent!r}: expected a percentage, such as 3%")
    return float(match[1]) / 100
