"""Keep what `check` needs of a run in a small file under version control, and compare with it later.

  set NAME RUN [RUN…]   write the figures of a run under a name: of several RUNs, which are captures of one program, of
                        all; also of a folder that holds captures by their names (run-1, run-2, …)
  list                  print the baselines in the file
  remove NAME           remove one

The file holds no profile: it has the times of each step, those of the ops and kernels that take most time, counts,
FLOPs and peaks of memory. `tfcompare check --baseline NAME CANDIDATE` compares with it. What the file leaves out is not
judged, and the check says so. Setting a baseline again removes what was accepted (`check --accept`) of the one before.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare.commands.shared.options import add_steps, add_store, question
from tfcompare.commands.shared.output import note
from tfcompare.commands.shared.progress import Reading, answered, notes
from tfcompare.errors import TfcompareError
from tfcompare.text import text_of
from tfcompare.units import format_bytes, format_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfcompare.compare.check.baseline_file import Acceptance, Baseline
    from tfcompare.compare.check.conditions import Condition, Findings
    from tfcompare.comparison import Comparison
    from tfcompare.sources.step_choice import StepChoice

SUMMARY = "keep the figures of a run in a file, for `check --baseline`"
EXAMPLES = """examples:
  tfcompare baseline set main logs/before
  tfcompare check --baseline main logs/after --fail-if 'step_time>+5%'
  tfcompare baseline list"""

DEFAULT_FILE = Path("tfcompare-baseline.json")
_ACCEPT = (
    "with --baseline: write into its file that what fails now is accepted, and until when; checks then compare with "
    "the accepted values, this one included; if nothing fails, renew what would without being accepted"
)
_LONGEST_REASON = 500
_GIT_S = 5
"""For reading a line of configuration."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("action", metavar="ACTION", choices=("set", "list", "remove"), help="set, list or remove")
    parser.add_argument("name", metavar="NAME", nargs="?", help="the name of the baseline, such as main")
    parser.add_argument("runs", metavar="RUN", nargs="*", help="the run, or captures of one program")
    meaning = "the file of baselines (default: %(default)s in the current folder)"
    parser.add_argument("--file", metavar="FILE", type=Path, default=DEFAULT_FILE, help=meaning)
    add_store(parser)
    add_steps(parser)


def add_baseline(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `check` about a file of baselines."""
    meaning = "compare the only argument with this baseline, which `tfcompare baseline set` wrote"
    parser.add_argument("--baseline", metavar="NAME", dest="baseline_name", help=meaning)
    meaning = "the file of baselines (default: %(default)s in the current folder)"
    parser.add_argument("--baseline-file", metavar="FILE", type=Path, default=DEFAULT_FILE, help=meaning)
    parser.add_argument("--accept", metavar="REASON", help=_ACCEPT)
    meaning = "the last day, such as 2027-01-31, on which what is accepted counts"
    parser.add_argument("--until", metavar="DATE", help=meaning)


def run(arguments: argparse.Namespace) -> int:
    """Set, list or remove. Raises `TfcompareError` for arguments that do not belong together."""
    takes_name, takes_runs = arguments.action != "list", arguments.action == "set"
    if takes_name != (arguments.name is not None) or takes_runs != bool(arguments.runs):
        takes = {"set": "NAME and RUN", "list": "neither NAME nor RUN", "remove": "NAME alone"}[arguments.action]
        raise TfcompareError(f"baseline {arguments.action} takes {takes} (see `tfcompare baseline --help`)")
    {"set": _set, "list": _list, "remove": _remove}[arguments.action](arguments)
    return 0


def _set(arguments: argparse.Namespace) -> None:
    from tfcompare.compare.check.baseline_file import make_baseline, name_of, read_baselines, write_baselines

    file, name = arguments.file, name_of(arguments.name)
    baselines = read_baselines(file) if file.exists() else {}
    run, *more = arguments.runs
    baseline = make_baseline(answered(replace(question(arguments, run), repeats=(tuple(more),))))
    if name in baselines and baselines[name].accepted:
        note(f"note: removed what was accepted of the {name} of {baselines[name].made}")
    write_baselines(file, baselines | {name: baseline})
    left = baseline.left_out
    ops, kernels = len(left.ops) + left.more_ops, len(left.kernels) + left.more_kernels
    if ops or kernels:
        what = " and ".join([f"{ops:,} ops"] * bool(ops) + [f"{kernels:,} kernels"] * bool(kernels))
        note(f"note: {what} that take least time have no figures of their own: conditions on them are not judged")
    print(f"{text_of(name)}: {_words(baseline)}\nwrote {text_of(str(file))} ({format_bytes(file.stat().st_size)})")


def _list(arguments: argparse.Namespace) -> None:
    from tfcompare.compare.check.baseline_file import read_baselines

    for name, baseline in read_baselines(arguments.file).items():
        print(f"{text_of(name)}: {text_of(_words(baseline))}")
        for one in baseline.accepted:
            value = format_value(one.value, one.unit)
            told = f"  {one.metric}: {value} accepted until {one.until} by {one.by} because “{one.because}”"
            other = "" if one.captures == baseline.content_ids else ", for other captures: does not count"
            print(text_of(told + other))


def _remove(arguments: argparse.Namespace) -> None:
    from tfcompare.compare.check.baseline_file import baseline_named, read_baselines, write_baselines

    baseline_named(arguments.file, arguments.name)
    left = {name: one for name, one in read_baselines(arguments.file).items() if name != arguments.name}
    write_baselines(arguments.file, left)
    print(f"removed {text_of(arguments.name)} from {text_of(str(arguments.file))}")


def _words(baseline: Baseline) -> str:
    """`2 captures on GPU, NVIDIA H100 of 2026-11-30: step_time 2.23 ms, peak_memory 698 MB`."""
    count = len(baseline.captures)
    named = [(name, baseline.figures[name]) for name in ("step_time", "peak_memory") if name in baseline.figures]
    figures = ", ".join(f"{name} {format_value(one.value, one.unit)}" for name, one in named)
    captures = f"{count} capture{'s' * (count > 1)} on {baseline.device}, set on {baseline.made}"
    if options := ", ".join(filter(None, dict.fromkeys(_options(one.choice) for one in baseline.captures))):
        captures += f" with {options}"
    return f"{captures}: {figures}" if figures else captures


def _options(choice: StepChoice) -> str:
    """The options that make a choice of steps: `--steps 5:25 --step-kind train`; empty for the default."""
    named = {"--steps": choice.range, "--step-marker": choice.marker, "--step-kind": choice.kind}
    words = [word for option, value in named.items() if value is not None for word in (option, value)]
    return text_of(shlex.join([*words, *(["--stray", "include"] if choice.counts_stray else [])]))


def check_options(arguments: argparse.Namespace) -> None:
    """Raises `TfcompareError` for options of `check` that do not belong together."""
    named = arguments.baseline_name is not None
    others = {
        "--against-series": arguments.against_series,
        "--baseline-repeat": arguments.baseline_repeat,
        "--report": arguments.report,
    }
    if named and (beside := next((option for option, value in others.items() if value), None)):
        why = "a report needs both profiles" if beside == "--report" else "the file has the captures of the baseline"
        raise TfcompareError(f"{beside} cannot be used with --baseline: {why}")
    if (arguments.accept is None) != (arguments.until is None) or (arguments.accept is not None and not named):
        raise TfcompareError(
            "--accept REASON takes --until DATE, and --baseline NAME, into whose file both are written"
        )


def checked_with_file(arguments: argparse.Namespace, conditions: Sequence[Condition]) -> tuple[Comparison, Findings]:
    """The comparison with a baseline of a file, and the findings; writes what is accepted. Raises `TfcompareError`."""
    from tfcompare.compare.check.acceptance import Judging, acceptances, renewed, with_accepted
    from tfcompare.compare.check.baseline_file import baseline_named, read_baselines, runs_of, write_baselines
    from tfcompare.compare.check.conditions import check
    from tfcompare.loading import compared, sides

    file, name, today = arguments.baseline_file, arguments.baseline_name, datetime.now(UTC).date()
    baseline = baseline_named(file, name)
    accepting = _accepting(arguments, today)
    asked = replace(question(arguments, arguments.baseline), repeats=(tuple(arguments.candidate_repeat),))
    if any(capture.choice != asked.steps for capture in baseline.captures):
        ours, given = _options(baseline.captures[0].choice) or "none", _options(asked.steps) or "none"
        raise TfcompareError(
            f"baseline {name} of {file} was set with other options for steps than those given: expected {ours}, found "
            f"{given}; give the same, or set the baseline again (`tfcompare baseline set`) with those wanted"
        )
    (candidate,), remarks = sides(asked, Reading())
    comparison, more = compared(asked, [runs_of(baseline, file, name), candidate])
    notes(remarks + more)
    findings = check(comparison, conditions, Judging(baseline, today))
    if accepting is None:
        return comparison, findings
    accepted = acceptances(findings, accepting, strict=arguments.strict)
    if not accepted:  # renew what would fail without its acceptance
        alone = check(comparison, conditions, Judging(replace(baseline, accepted=()), today))
        accepted = renewed(baseline, acceptances(alone, accepting, strict=arguments.strict))
    if not accepted:
        note("note: nothing failed, so nothing was accepted")
        return comparison, findings
    baseline = with_accepted(baseline, accepted)
    write_baselines(file, read_baselines(file) | {name: baseline})
    note(f"accepted in {text_of(str(file))}: {', '.join(one.metric for one in accepted)}")
    return comparison, check(comparison, conditions, Judging(baseline, today))


def _accepting(arguments: argparse.Namespace, today: date) -> Acceptance | None:
    """Who accepts what fails, why and until when; None if nothing is to be accepted. Raises `TfcompareError`."""
    from tfcompare.compare.check.baseline_file import Acceptance

    if arguments.accept is None:
        return None
    try:
        until = date.fromisoformat(arguments.until)
    except ValueError:
        until = date.min
    if until < today or until.isoformat() != arguments.until:  # 20270131 and 2027-W04-7 are read as well
        raise TfcompareError(
            f"--until {arguments.until!r}: expected a day such as 2027-01-31, not before today ({today})"
        )
    because = " ".join(_printable(arguments.accept).split())
    if not because or len(because) > _LONGEST_REASON:
        raise TfcompareError(f"--accept: expected a reason of 1 to {_LONGEST_REASON} characters")
    return Acceptance("", 0.0, "", until, _user(), today, because)


def _user() -> str:
    """Who runs this, and how that is known: `ada (GITHUB_ACTOR)`."""
    if actor := os.environ.get("GITHUB_ACTOR"):
        return f"{_printable(actor)} (GITHUB_ACTOR)"
    with suppress(OSError, subprocess.SubprocessError):
        words = ["git", "config", "user.name"]
        said = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=_GIT_S, check=False)
        if name := _printable(said.stdout.strip()):
            return f"{name} (git user.name)"
    name = _printable(os.environ.get("USER") or os.environ.get("USERNAME") or "")
    return f"{name} (USER)" if name else "unknown"


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)[: 2 * _LONGEST_REASON]
