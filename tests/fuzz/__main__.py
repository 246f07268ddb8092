"""Hostile profiles by the thousand: only a right answer or a `TfcompareError` may come of one.

    python -m tests.fuzz --seed 1 --count 20000                  # a long run
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

from tests.fuzz import archives, campaign, chain, inputs, kills, runs, stores, worker

PROFILES, ARCHIVES, STORE, KILLS, RUNS = "profiles", "archives", "store", "kills", "runs"


def main() -> int:
    """Exit status 0: every input came to a right answer or a clear error."""
    args = _arguments()
    if args.of == ARCHIVES:
        return archives.main(args.seed, args.count)
    if args.of == KILLS:
        return kills.main(args.seed, args.count)
    if args.of == RUNS:
        return runs.main(args.seed, args.count, args.only)
    if args.only is not None:
        return _one(args)
    if args.child:
        numbers = range(args.first, args.count)
        if args.of == STORE:
            worker.work_on_stores(args.seed, numbers, args.child)
        else:
            worker.work(args.seed, numbers, args.corpus, args.child)
        return 0
    outcomes = campaign.run(args.seed, args.count, args.corpus, resume=args.resume, of=args.of)
    sys.stdout.write(campaign.told(outcomes) + "\n")
    return 0 if all(o["is_fine"] for o in outcomes) else 1


def _one(args: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as folder:
        if args.of == STORE:
            outcome = stores.attempt(stores.Yard(Path(folder)), args.seed, args.only)
        else:
            kind, data = inputs.made(args.seed, args.only, args.corpus)
            if args.keep:
                args.keep.write_bytes(data)
            outcome = chain.attempt(data, Path(folder) / "vm.xplane.pb", args.only, kind)
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
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
