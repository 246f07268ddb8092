"""Hostile profiles by the thousand: only a right answer or a `TfcompareError` may come of one.

    python -m tests.fuzz --seed 1 --count 20000                  # a long run; its account goes to docs/fuzzing.md
    python -m tests.fuzz --seed 1 --count 20000 --resume         # … taken up where it was broken off
    python -m tests.fuzz --seed 1 --only 4711 --keep bad.pb      # one input again, in this process
    python -m tests.fuzz --of archives --seed 1 --count 5000     # uploaded archives in place of profiles
    python -m tests.fuzz --of store --seed 1 --count 2000        # forged files of a store instead of profiles
    python -m tests.fuzz --of kills --seed 1 --count 20          # ingests that are killed
    python -m tests.fuzz --of runs --seed 1 --count 500          # odd runs of several hosts, in every view

`NUMBA_DISABLE_JIT=1` runs the loops over a file's bytes as plain Python, where a bad index shows.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.chain import Outcome

PROFILES, ARCHIVES, STORE, KILLS, RUNS = "profiles", "archives", "store", "kills", "runs"
LONG = 20_000
"""Shorter runs leave no account."""


def main() -> int:
    """Exit status 0: every input came to a right answer or a clear error."""
    args = _arguments()
    if args.of == ARCHIVES:
        from tests.fuzz import archives

        return archives.main(args.seed, args.count)
    if args.of == KILLS:
        from tests.fuzz import kills

        return kills.main(args.seed, args.count)
    if args.of == RUNS:
        from tests.fuzz import runs

        return runs.main(args.seed, args.count, args.only)
    if args.branches_to:
        from tests.fuzz import branches

        branches.measure(args.seed, args.count, args.branch_inputs, args.corpus, args.branches_to)
        return 0
    if args.child:
        from tests.fuzz.worker import work, work_on_stores

        numbers = range(args.first, args.count)
        if args.of == STORE:
            work_on_stores(args.seed, numbers, args.child)
        else:
            work(args.seed, numbers, args.corpus, args.child)
        return 0
    return _long_run(args) if args.only is None else _one(args)


def _long_run(args: argparse.Namespace) -> int:
    from tests.fuzz import branches, campaign

    outcomes = campaign.run(args.seed, args.count, args.corpus, resume=args.resume, of=args.of)
    sys.stdout.write(campaign.told(outcomes) + "\n")
    if args.of == STORE:
        return 0 if all(o["is_fine"] for o in outcomes) else 1
    wanted = args.branch_inputs
    taken = branches.measured(args.seed, args.count, wanted, args.corpus) if wanted else None
    if taken:
        sys.stdout.write(f"branches of the reader: {taken.taken} of {taken.known}; not taken: {taken.missed}\n")
    if args.count >= LONG:
        campaign.write_log(args.log, args.seed, outcomes, taken, args.corpus)
    return 0 if all(o["is_fine"] for o in outcomes) else 1


def _one(args: argparse.Namespace) -> int:
    from tests.fuzz.chain import attempt
    from tests.fuzz.inputs import made

    if args.of == STORE:
        from tests.fuzz import stores

        with tempfile.TemporaryDirectory() as folder:
            outcome = stores.attempt(stores.Yard(Path(folder)), args.seed, args.only)
        return _shown(outcome)
    kind, data = made(args.seed, args.only, args.corpus)
    if args.keep:
        args.keep.write_bytes(data)
    with tempfile.TemporaryDirectory() as folder:
        outcome = attempt(data, Path(folder) / "vm.xplane.pb", args.only, kind)
    return _shown(outcome)


def _shown(outcome: Outcome) -> int:
    sys.stdout.write("".join(f"{name}: {value}\n" for name, value in vars(outcome).items()))
    return 0 if outcome.is_fine else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", choices=(PROFILES, ARCHIVES, STORE, KILLS, RUNS), default=PROFILES, help="what is made")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000, help="inputs 0 to COUNT of that seed")
    parser.add_argument("--resume", action="store_true", help="keep the outcomes of a run that was broken off")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="this input alone, in this process")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="with --only: where to write the input")
    parser.add_argument("--corpus", action="store_true", help="edit the profiles of the corpus as well")
    parser.add_argument("--branch-inputs", type=int, default=600, help="inputs to measure the reader's branches with")
    parser.add_argument("--log", type=Path, default=Path("docs/fuzzing.md"))
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--branches-to", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
