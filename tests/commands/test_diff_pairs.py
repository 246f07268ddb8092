"""`diff --pairs` with a file that the dashboard saved, `tfcompare trace`, and completion in shells."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.profiles import SAMPLE_RUNS
from tfcompare.cli import main
from tfcompare.commands.completion import SHELLS
from tfcompare.compare.matching.manual import ManualChoice
from tfcompare.compare.matching.manual_text import ChoicesOfPair, to_file

RUNS = [str(SAMPLE_RUNS[name]) for name in ("filters_512_128", "filters_16_8")]
NAME = "autoencoder_1/image_1/convolution"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.json"
    file.write_text(to_file(ChoicesOfPair("any", "other", (ManualChoice(False, (NAME,), (NAME,)),))), encoding="utf-8")
    return file


def test_the_file_says_what_is_paired(pairs: Path, tfcompare) -> None:
    status, out, _ = tfcompare("diff", *RUNS, "--format", "csv", "--pairs", str(pairs))
    rows = pd.read_csv(io.StringIO(out))
    assert (status, sorted(rows.loc[rows["op_name"] == NAME, "status"])) == (0, ["added", "removed"])


def test_what_cannot_be_is_told_in_one_line(pairs: Path, tfcompare) -> None:
    nowhere = str(pairs.with_name("nowhere.json"))
    assert "expected a file of pairs" in tfcompare("diff", *RUNS, "--pairs", nowhere)[2]
    status, _, err = tfcompare("diff", *RUNS, str(SAMPLE_RUNS["filters_16_8_again"]), "--pairs", str(pairs))
    assert (status, "single CANDIDATE" in err, err.count("\n")) == (2, True, 1)


BEFORE, AFTER = (str(SAMPLE_RUNS[name]) for name in ("filters_512_128", "filters_16_8"))


def test_two_runs_become_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "trace.json.gz"
    assert main(["trace", BEFORE, AFTER, "-o", str(out)]) == 0
    events = json.loads(gzip.decompress(out.read_bytes()))["traceEvents"]
    spans = sum(event["ph"] == "X" for event in events)
    assert f"{spans:,} spans of 2 runs" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["trace.json.gz"]


def test_a_window_is_cut_out(tmp_path: Path) -> None:
    out = tmp_path / "trace.json"
    assert main(["trace", AFTER, "-o", str(out), "--align", "step:12", "--from", "0", "--to", "5000"]) == 0
    spans = [event for event in json.loads(out.read_text(encoding="utf-8"))["traceEvents"] if event["ph"] == "X"]
    assert spans
    assert all(span["ts"] <= 5000 and span["ts"] + span["dur"] >= 0 for span in spans)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "trace.txt"], "expected a name that ends with .json or .json.gz"),
        (["-o", "t.json", "--align", "12"], "is no alignment; expected step:NUMBER, op:NAME, collective or "),
        (["-o", "t.json", "--align", "collective:12"], "no step 12 with a collective"),
        (["-o", "t.json", "--align", "step:99"], "there is no step 99; steps are"),
        (["-o", "t.json", "--host", "other"], "unknown host 'other'"),
        (["-o", "no/such/folder/t.json"], "No such file or directory"),
    ],
)
def test_bad_input_costs_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tfcompare, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = tfcompare("trace", AFTER, *arguments)
    assert (status, words in err) == (2, True)
    assert not list(tmp_path.iterdir())


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
