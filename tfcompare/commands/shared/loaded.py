"""The comparison that a command was asked for: BASELINE, any number of CANDIDATEs, and their replicates."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tfcompare.commands.shared.judging import add_judging, load_repeats, spread_of
from tfcompare.commands.shared.pairs import add_pairs, read_pairs
from tfcompare.commands.shared.reading import add_steps, add_store, load_replicates, reading
from tfcompare.errors import TfcompareError
from tfcompare.schema import SIDES

if TYPE_CHECKING:
    from tfcompare.compare import Comparison
    from tfcompare.compare.comparison import Per


def add_comparison(parser: argparse.ArgumentParser) -> None:
    """Declare the runs, of which one may be alone, and the options of `load_comparison`."""
    parser.add_argument("baseline", metavar="BASELINE", help="the run to compare with, or the only run")
    parser.add_argument("candidates", metavar="CANDIDATE", nargs="*", help="the runs to compare with it")
    parser.add_argument(
        "--per",
        choices=("step", "run", "device"),
        default="step",
        help="what sums are divided by (default: %(default)s)",
    )
    parser.add_argument("--host", metavar="H", help="only this host (default: all hosts)")
    add_judging(parser)
    add_store(parser)
    add_steps(parser)
    add_pairs(parser)


def words_of(arguments: argparse.Namespace) -> list[str]:
    """The runs and the options as they are typed; a run that was given twice once."""
    return [*dict.fromkeys([arguments.baseline, *arguments.candidates]), *options_of(arguments)]


def options_of(arguments: argparse.Namespace, *, places: bool = True) -> list[str]:
    """The options of `add_comparison` that differ from their defaults, as they are typed; without `places` no paths."""
    of_places = {"store": arguments.store, "pairs": arguments.pairs} if places else {}
    options = {name: getattr(arguments, name) for name in ("host", "spread", "steps", "step_marker", "step_kind")}
    options |= {"per": arguments.per if arguments.per != "step" else None}
    options |= {"stray": arguments.stray if arguments.stray != "exclude" else None}
    words = ["--join"] if arguments.join else []
    for option, value in {**of_places, **options}.items():
        words += [] if value is None else [f"--{option.replace('_', '-')}", str(value)]
    for side in SIDES if places else ():
        if repeats := getattr(arguments, f"{side}_repeat"):
            words += [f"--{side}-repeat", *repeats]
    return words


def load_comparison(arguments: argparse.Namespace, per: Per = "step") -> Comparison:
    """The comparison of the runs that `arguments` name; without a candidate, of the run with itself.

    Raises as the functions that load runs.
    """
    from tfcompare.compare import compare

    if len(arguments.candidates) > 1 and arguments.candidate_repeat:
        raise TfcompareError(
            f"--candidate-repeat takes a single CANDIDATE, but {len(arguments.candidates)} were given; compare them "
            "one by one"
        )
    spread = spread_of(arguments)
    places = [arguments.baseline, *arguments.candidates]
    groups = load_replicates(places, reading(arguments))
    repeats = load_repeats(arguments, groups)
    baseline, *candidates = (run for run, *_ in groups)
    return compare(
        baseline, *(candidates or [baseline]), per=per, host=arguments.host, repeats=repeats, spread=spread,
        manual_pairs=read_pairs(arguments, candidates),
    )  # fmt: skip


def capture_notes(comparison: Comparison) -> list[str]:
    """How many captures of a program the verdicts are based on, if more than one."""
    several = len(comparison.candidates) > 1
    named = [(f"candidate {run.name}" if several else "candidate", run) for run in comparison.candidates]
    counts = {side: len(comparison.repeats_of(run)) + 1 for side, run in (("baseline", comparison.baseline), *named)}
    return [f"verdicts are based on {count} captures of the {side}" for side, count in counts.items() if count > 1]
