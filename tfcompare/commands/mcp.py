"""Answer agents over MCP, the Model Context Protocol: find runs, compare them, and say why one is slower.

A client that starts the command talks to it on stdin and stdout; with --port it is served over HTTP to programs on
this machine. All that is read lies below the ROOTs (default: the current folder). Nothing is written, unless --write
allows reports. It needs the package mcp.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tfcompare.commands.serve import check_port, port_number
from tfcompare.commands.shared.output import note
from tfcompare.errors import NoSuchPlace, TfcompareError

SUMMARY = "answer agents over MCP"
EXAMPLES = """examples:
  tfcompare mcp logs/
  tfcompare mcp logs/ --link http://localhost:8501   # beside: tfcompare serve logs/
  tfcompare mcp logs/ --port 8600                    # at http://localhost:8600/mcp"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    meaning = "a folder; nothing outside of the ROOTs is read (default: the current folder)"
    parser.add_argument("roots", metavar="ROOT", nargs="*", type=Path, help=meaning)
    meaning = "serve over HTTP on localhost, on this port (default: stdin and stdout)"
    parser.add_argument("--port", metavar="N", type=port_number, help=meaning)
    meaning = "allow writing reports, as new files below the ROOTs"
    parser.add_argument("--write", action="store_true", help=meaning)
    meaning = "the address of a dashboard started with the same ROOTs, whose page is then linked in answers"
    parser.add_argument("--link", metavar="URL", help=meaning)


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client ends. Raises `TfcompareError` without the package mcp, and for a bad root or address."""
    try:
        import mcp.server  # noqa: F401
    except ImportError:
        raise TfcompareError("the MCP server needs the package mcp; run: pip install 'tfcompare[mcp]'") from None
    from tfcompare.mcp.places import Places
    from tfcompare.mcp.server import server

    roots = arguments.roots or [Path()]
    for root in roots:
        if not root.is_dir():
            raise NoSuchPlace(f"{root}: is not a folder; ROOT is a folder that contains runs")
    if arguments.link is not None and not arguments.link.startswith(("http://", "https://")):
        raise TfcompareError(f"--link {arguments.link!r}: expected an address such as http://localhost:8501")
    made = server(Places(tuple(root.resolve() for root in roots)), link=arguments.link, writes=arguments.write)
    if arguments.port is None:
        if sys.stdin.isatty():
            note("note: this waits for an MCP client on stdin; docs/agents.md says how a client starts it")
        made.run()
    else:
        check_port(arguments.port)
        note(f"serving at http://localhost:{arguments.port}/mcp")
        made.run("streamable-http", host="127.0.0.1", port=arguments.port)
    return 0
