"""The server's start: what the pages need is imported before the first visitor comes."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from tfcompare.ui.frame import server
server.import_all()
print(*(f"tfcompare.ui.{name}" in sys.modules for name in ("pages.view", "frame.shell", "widgets.tables")))
"""


def test_what_the_pages_need_is_imported_at_the_start() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 3
