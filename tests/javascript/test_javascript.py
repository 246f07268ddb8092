"""The scripts of pages and reports, run and linted by node: `*.test.mjs` beside this file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm: install Node.js 18.18 or newer")
def test_scripts_pass_their_tests_and_eslint() -> None:
    done = subprocess.run(["node", "--test"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n(`make test` installs eslint)"
