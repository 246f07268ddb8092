"""The command line: runs the chosen command, and turns errors into one line and an exit status.

Exit status: 0 done, 1 the answer is "no", 2 bad input, 130 interrupted, 141 the reader of the output is gone.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tfcompare import __version__
from tfcompare.commands import (
    baseline,
    capture,
    check,
    demo,
    diff,
    ingest,
    mcp,
    query,
    report,
    runs,
    series,
    serve,
    show,
    store,
    trace,
    view,
)
from tfcompare.commands.completion import add_completion
from tfcompare.errors import TfcompareError, Unknown
from tfcompare.text import close_matches, did_you_mean, text_of

BAD_INPUT = 2
INTERRUPTED = 130
READER_GONE = 141
_NARROWEST = 40

_INVALID_CHOICE = re.compile(r"invalid choice: '(?P<value>[^']*)' \(choose from (?P<choices>.*)\)")

COMMANDS = (
    *(runs, show, diff, view, report, check, baseline, series, trace, query),
    *(ingest, store, capture, serve, mcp, demo),
)


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line in one line, without the usage text; `declared` are its own arguments."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.declared: list[argparse.Action] = []
        super().__init__(*args, **options)

    def add_argument(self, *args: Any, **options: Any) -> argparse.Action:
        action = super().add_argument(*args, **options)
        self.declared.append(action)
        return action

    def error(self, message: str) -> NoReturn:
        if (invalid := _INVALID_CHOICE.search(message)) is not None:
            message += did_you_mean(close_matches(invalid["value"], re.findall(r"[\w-]+", invalid["choices"])))
        self.exit(BAD_INPUT, f"{self.prog}: {message} (see `{self.prog} --help`)\n")


class _Command(_Parser):
    """Takes options before, between and after the runs. Reports unknown ones itself, so that the message points to the
    help of this command.

    `declare` adds arguments that depend on what was typed.
    """

    declare: Callable[[argparse.ArgumentParser, Sequence[str]], None] | None = None
    _is_intermixed = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self._is_intermixed:  # called by `parse_known_intermixed_args`, for options and then for the rest
            return super().parse_known_args(args, namespace)
        if self.declare is not None:
            self.declare(self, args)
        self._is_intermixed = "--" not in args  # what follows it is no option, which the first of the two would forget
        parse = self.parse_known_intermixed_args if self._is_intermixed else super().parse_known_args
        found, unknown = parse(args, namespace)
        self._is_intermixed = False
        if unknown:
            options = re.findall(r"--([\w-]+)", self.format_usage())
            near = close_matches(unknown[0].partition("=")[0].strip("-"), options, most=2)
            meant = did_you_mean([f"--{name}" for name in near])
            self.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
        return found, unknown


def parser() -> argparse.ArgumentParser:
    """The parser of the whole command line; each command module adds its own arguments."""
    top = _Parser(
        prog="tfcompare",
        description="Compare TensorFlow and XLA profile runs: what changed, by how much, and where.",
        epilog="example: tfcompare diff logs/before logs/after",
    )
    top.add_argument("--version", action="version", version=f"tfcompare {__version__}")
    declared: list[argparse.Action] = []
    add_completion(top, declared)
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Command)
    for module in COMMANDS:
        texts = {"help": module.SUMMARY, "description": _wrap_text(module.__doc__ or ""), "epilog": module.EXAMPLES}
        command = commands.add_parser(module.__name__.rpartition(".")[2], **texts)
        command.formatter_class = argparse.RawDescriptionHelpFormatter
        module.add_arguments(command)
        if module is view:
            command.declare = view.add_options
        command.set_defaults(run=module.run)
        declared += command.declared
    return top


def _wrap_text(text: str) -> str:
    """Paragraphs in lines that fit the terminal, as argparse makes of the help of options; tables stay as they are."""
    width = max(shutil.get_terminal_size().columns - 2, _NARROWEST)
    parts = text.strip().split("\n\n")
    return "\n\n".join(part if "\n " in part else textwrap.fill(" ".join(part.split()), width) for part in parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command given by `arguments` (default: `sys.argv`); returns the exit status."""
    try:
        chosen = parser().parse_args(arguments)
        status: int = chosen.run(chosen)
        sys.stdout.flush()
    except Unknown as error:
        return _report_error(f"{error}{did_you_mean(close_matches(error.name, error.known))}")
    except TfcompareError as error:
        return _report_error(str(error))
    except BrokenPipeError:
        # Give the interpreter's final flush of stdout somewhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except OSError as error:
        return _report_error(f"{error.filename or 'input or output'}: {error.strerror or error}")
    except MemoryError:
        return _report_error("out of memory: this takes more than the machine has free; choose fewer runs or steps")
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


def _report_error(message: str) -> int:
    print(f"tfcompare: {text_of(' '.join(message.split()))}", file=sys.stderr)
    return BAD_INPUT
