"""`tfcompare report`, and `check --report`; tests/report and tests/render have what is in one."""

from __future__ import annotations

import html
from pathlib import Path

import pytest

from tests.profiles import SAMPLE_RUNS
from tfcompare.cli import main

BEFORE, AFTER = (str(SAMPLE_RUNS[name]) for name in ("filters_512_128", "filters_16_8"))


@pytest.mark.parametrize(("name", "begin"), [("new/r.md", "### B "), ("r.json", "{")])
def test_the_suffix_chooses_the_format(
    name: str, begin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    assert main(["report", BEFORE, AFTER, "-o", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith(begin)
    printed = capsys.readouterr()
    assert printed.out == "" and f"wrote {out}" in printed.err


def test_without_a_file_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", AFTER, "--format", "markdown"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("### filters_16_8\n") and "**10.9 ms per step**" in printed


def test_it_says_how_to_make_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", AFTER, "--format", "markdown", "--steps", "5:20", "--spread", "3%"]) == 0
    again = f"tfcompare report {AFTER} --spread 3% --steps 5:20 -o report.md"
    assert again in capsys.readouterr().out


def test_a_redacted_report_names_no_place(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", BEFORE, AFTER, "--format", "markdown", "--redact"]) == 0
    printed = capsys.readouterr().out
    assert "filters" not in printed and str(Path(BEFORE).parent) not in printed
    assert "tfcompare report BASELINE CANDIDATE" in printed


def test_a_check_writes_a_report_passed_or_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "check.html"
    conditions = ["--fail-if", "step_time>+5%", "--fail-if", "peak_memory>1MB"]
    assert main(["check", BEFORE, AFTER, *conditions, "--report", str(out)]) == 1
    text = html.unescape(out.read_text(encoding="utf-8"))
    assert text.startswith("<!DOCTYPE html>")
    assert text.index("Check FAILED (1 failed, 1 passed)") < text.index("20× faster")
    assert "FAILED" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["check.md", "check.json"])
def test_a_report_says_that_a_check_was_not_judged(name: str, tmp_path: Path) -> None:
    out = tmp_path / name
    assert main(["check", BEFORE, AFTER, "--fail-if", "step_time>+5%", "--steps", "3:3", "--report", str(out)]) == 2
    text = out.read_text(encoding="utf-8").replace("\\", "")
    assert "1 step, 9 needed on each side" in text
    assert ('"outcome": "not judged"' if name.endswith("json") else "Check NOT JUDGED (1 untested)") in text


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["report", AFTER, "-o", str(tmp_path / "file" / "r.html")]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_a_file_of_another_kind_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", AFTER, "-o", str(tmp_path / "report.pdf")]) == 2
    assert "report.pdf: expected a name that ends with .html, .md or .json" in capsys.readouterr().err
