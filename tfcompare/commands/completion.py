"""`--print-completion`: a script that completes commands, options, tables and paths in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tfcompare import schema
from tfcompare.errors import TfcompareError

SHELLS = ("bash", "zsh", "tcsh")
_TABLES = {"TABLE": list(schema.TABLES), "T": [t.name for t in schema.TABLES.values() if t.has_diff]}
"""The choices of arguments by their metavars."""
_FOLDERS = ("DIR", "LOGDIR", "ROOT")
_FILES = ("RUN", "BASELINE", "CANDIDATE", "PATH", "FILE")
"""The metavars of arguments that are paths."""


def add_completion(parser: argparse.ArgumentParser, declared: Sequence[argparse.Action]) -> None:
    """Declare `--print-completion`; `declared` holds the arguments of all commands once the option is used."""
    meaning = "print a script for shell completion, as docs/getting-started.md explains, and exit"
    parser.add_argument("--print-completion", action=_PrintCompletion, declared=declared, choices=SHELLS, help=meaning)


class _PrintCompletion(argparse.Action):
    """Prints the script and exits; raises `TfcompareError` without shtab."""

    def __init__(self, *args: Any, declared: Sequence[argparse.Action], **options: Any) -> None:
        super().__init__(*args, **options)
        self._declared = declared

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
        for action in self._declared:
            if action.metavar in _TABLES:
                action.choices = _TABLES[str(action.metavar)]
            elif action.metavar in _FOLDERS:
                action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # read by shtab
            elif action.metavar in _FILES:
                action.complete = shtab.FILE  # type: ignore[attr-defined]
        print(shtab.complete(parser, shell=str(values)))
        parser.exit()
