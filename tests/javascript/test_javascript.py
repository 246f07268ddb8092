"""The scripts of pages and reports, run and linted by node: `*.test.mjs` beside this file."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
needs_node = pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm: install Node.js 18.18 or newer")


def run(*files: str) -> None:
    done = subprocess.run(["node", "--test", *files], cwd=HERE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


@needs_node
def test_scripts_pass_their_tests() -> None:
    run(*sorted(one.name for one in HERE.glob("*.test.mjs") if one.name != "lint.test.mjs"))


@needs_node
@pytest.mark.skipif(not (HERE / "node_modules/eslint").is_dir(), reason="npm could not install eslint")
def test_scripts_pass_eslint() -> None:
    run("lint.test.mjs")
