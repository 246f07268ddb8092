"""Open the dashboard on an example, and say what to look at first.

The example compares two runs that come with tfcompare: an autoencoder with 512 and 128 filters, and one with 16 and 8.
"""

from __future__ import annotations

import argparse
import os
import sys

from tfcompare.commands import serve

SUMMARY = "open the dashboard on an example, with guidance"
EXAMPLES = "examples:\n  tfcompare demo\n  tfcompare demo --port 8600"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    serve.add_port(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the guidance and replace this process with the server, which prints its address."""
    from tfcompare import settings

    if arguments.port is not None:
        serve.check_port(arguments.port)
    command = [*serve.command_line([settings.sample_runs()], arguments.port), "--demo"]
    print("What to look at first:")
    for number, sentence in enumerate(settings.DEMO_GUIDANCE, 1):
        print(f"  {number}. {sentence}")
    sys.stdout.flush()
    os.execv(command[0], command)
