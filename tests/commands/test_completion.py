"""`--print-completion`: what the scripts complete."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tfcompare.commands.completion import SHELLS


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_for_each_shell_knows_the_commands(tfcompare, shell: str) -> None:
    pytest.importorskip("shtab")
    status, out, err = tfcompare("--print-completion", shell)
    assert (status, err) == (0, "")
    assert all(command in out for command in ("runs", "show", "diff", "check", "serve"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on this machine")
def test_bash_completes_commands_tables_and_paths(tfcompare, tmp_path: Path) -> None:
    pytest.importorskip("shtab")
    (tmp_path / "profiles").mkdir()
    script = tmp_path / "completion.sh"
    script.write_text(tfcompare("--print-completion", "bash")[1], encoding="utf-8")
    typed = ("di", "show run memory_s", "diff a b --table op_s", "runs profi")
    asked = [
        f'COMP_WORDS=(tfcompare {words}); COMP_CWORD={len(words.split())}; _shtab_tfcompare; echo "${{COMPREPLY[@]}}"'
        for words in typed
    ]
    ask = ["bash", "-c", "\n".join([f'. "{script}"', *asked])]
    done = subprocess.run(ask, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["diff", "memory_summary", "op_stats", "profiles"]


def test_without_shtab_the_message_says_how_to_install_it(tfcompare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    status, out, err = tfcompare("--print-completion", "bash")
    assert (status, out) == (2, "")
    assert err == "tfcompare: shell completion needs the package shtab; run: pip install shtab\n"
