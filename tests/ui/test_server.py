"""The server's start: what the pages need is imported, and the garbage collector is spared it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import gc, sys
from tfcompare.ui import server
server.prepare()
print(gc.isenabled(), "tfcompare.ui.overview" in sys.modules, gc.get_freeze_count() > 50_000, len(gc.get_objects()))
"""


def test_what_is_imported_at_the_start_is_no_longer_looked_through_for_garbage() -> None:
    said = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout.split()
    assert said[:3] == ["True"] * 3
    assert int(said[3]) < 1_000
