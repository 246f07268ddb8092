"""Print what one page shows: of one run, or of what changed from a baseline to one or more candidates.

As text, what can only be drawn is shown as its rows or left out; HTML has everything and opens without a network. JSON
is for programs: findings with units, verdicts, confidence intervals, and the command that shows more.

What can be chosen on the page is an option here: `tfcompare view memory --help` lists those of the memory view.

Each of BASELINE and CANDIDATE is a profile file, a run folder, or a logdir that holds a single run, or several
captures of one program by their names (run-1, run-2, …); with --store, a run of that store.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tfcompare.commands.shared.options import add_comparison, comparison_question, words_of
from tfcompare.commands.shared.output import add_document, document_form
from tfcompare.commands.shared.progress import answered
from tfcompare.errors import Unknown
from tfcompare.render.text_table import terminal_width
from tfcompare.views import MORE, NAMES

_VIEWS = (*NAMES, *MORE)
_OPTION = "option_"
"""Before the names of a view's options among the arguments."""
SUMMARY = "print what one page shows, as text, JSON, Markdown or HTML"
EXAMPLES = """examples:
  tfcompare view overview logs/before logs/after
  tfcompare view op_stats logs/before logs/after --by op_type --where Device
  tfcompare view memory logs/before logs/after --format json
  tfcompare view timeline logs/before logs/after --format html -o step.html"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("view", metavar="NAME", help=f"one of: {', '.join(_VIEWS)}")
    add_document(parser, ("table", "json", "markdown", "html"))
    add_comparison(parser)
    meaning = "print the JSON Schema of --format json, also of reports and series, and exit"
    parser.add_argument("--json-schema", action=_PrintSchema, nargs=0, help=meaning)


class _PrintSchema(argparse.Action):
    """Prints the schema and exits."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        del namespace, values, option_string
        from tfcompare.render.as_json import json_schema

        print(json_schema(), end="")
        parser.exit()


def add_options(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Declare the options of the view that these words name, if one does."""
    name = next((word for word in words if word in _VIEWS), None)
    if name is None:
        return
    from tfcompare.views.options import declared
    from tfcompare.views.registry import view

    group = parser.add_argument_group(f"options of {name}")
    for one in declared(view(name).options):
        flag, dest = f"--{one.name.replace('_', '-')}", f"{_OPTION}{one.name}"
        meaning = one.help or one.label
        if one.choices and not callable(one.choices):  # else they differ between runs
            meaning += f"; one of: {', '.join(map(str, one.choices))} (default: {one.default})"
        meaning = meaning.replace("%", "%%")
        if isinstance(one.default, bool):
            group.add_argument(flag, dest=dest, action="store_const", const=True, help=meaning)
        else:
            kind = int if isinstance(one.default, int) else str
            group.add_argument(flag, dest=dest, metavar=kind.__name__.upper(), type=kind, help=meaning)


def run(arguments: argparse.Namespace) -> int:
    """Print the view. Raises `Unknown` for another name, `TfcompareError` for HTML on a terminal."""
    if arguments.view not in _VIEWS:
        raise Unknown("view", arguments.view, list(_VIEWS))
    form = document_form(arguments, "table")
    from tfcompare.commands.report import write
    from tfcompare.render.shown import ALL_ROWS, Shown
    from tfcompare.render.terminal import MOST_ROWS

    comparison = answered(comparison_question(arguments))
    width = None if arguments.all_columns or arguments.out else terminal_width()
    rows = MOST_ROWS if arguments.limit is None else arguments.limit or ALL_ROWS
    given = {name.removeprefix(_OPTION): value for name, value in vars(arguments).items() if name.startswith(_OPTION)}
    shown = Shown.of(comparison, arguments.view, **{name: value for name, value in given.items() if value is not None})
    write(shown.to(form, words=words_of(arguments), width=width, rows=rows, every=arguments.all_columns), arguments.out)
    return 0
