"""`--print-completion`: a script that completes commands, options, tables and paths in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from tfcompare import schema
from tfcompare.errors import TfcompareError

SHELLS = ("bash", "zsh", "tcsh")
_TABLES = {"TABLE": list(schema.TABLES), "T": [t.name for t in schema.TABLES.values() if t.has_diff]}
"""The choices of arguments by their metavars."""
_FOLDERS = ("DIR", "LOGDIR")
_FILES = ("RUN", "BASELINE", "CANDIDATE", "PATH", "FILE")
"""The metavars of arguments that are paths."""


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Declare `--print-completion`."""
    parser.add_argument(
        "--print-completion",
        action=_PrintCompletion,
        choices=SHELLS,
        help="print a script for shell completion, as the README explains, and exit",
    )


class _PrintCompletion(argparse.Action):
    """Prints the script and exits; raises `TfcompareError` without shtab."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        del namespace, option_string
        try:
            import shtab
        except ImportError:
            raise TfcompareError("shell completion needs the package shtab; run: pip install shtab") from None
        for action in _arguments(parser):
            if action.metavar in _TABLES:
                action.choices = _TABLES[str(action.metavar)]
            elif action.metavar in _FOLDERS:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # read by shtab
            elif action.metavar in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        print(shtab.complete(parser, shell=str(values)))
        parser.exit()


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of the parser and of its commands."""
    for action in parser._actions:  # argparse has no public way to list them; shtab reads the same attribute
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _arguments(command)
