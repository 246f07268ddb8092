"""`--pairs`: a file of manual matches between ops, as saved by the dashboard."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tfcompare.errors import TfcompareError

if TYPE_CHECKING:
    from tfcompare.compare.matching.manual import ManualPairs
    from tfcompare.run import Run


def add_pairs(parser: argparse.ArgumentParser) -> None:
    """Declare the argument."""
    parser.add_argument(
        "--pairs",
        metavar="FILE",
        type=Path,
        help="a file of manual matches between ops, saved by the dashboard",
    )


def read_pairs(arguments: argparse.Namespace, candidates: Sequence[Run]) -> ManualPairs:
    """The manual matches in the file, by candidate id; empty without a file.

    Raises `TfcompareError` for an unreadable file, or for several candidates.
    """
    from tfcompare.compare.matching.manual_text import from_file

    if arguments.pairs is None:
        return {}
    if len(candidates) != 1:
        raise TfcompareError(
            f"--pairs takes a single CANDIDATE, but {len(candidates)} were given; compare them one by one"
        )
    try:
        text = arguments.pairs.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TfcompareError(f"{arguments.pairs}: expected a file of pairs, and could not read it: {error}") from None
    return {candidates[0].id: from_file(text, str(arguments.pairs)).choices}
