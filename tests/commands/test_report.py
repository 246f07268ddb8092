"""`tfcompare report`, and `check --report`; tests/report and tests/render have what is in one."""

from __future__ import annotations

import html
from pathlib import Path

from tests.profiles import SAMPLE_RUNS, WORKER_RUNS

BEFORE, AFTER = (str(SAMPLE_RUNS[name]) for name in ("filters_512_128", "filters_16_8"))


ALONE = ("report", AFTER, "--steps", "5:20")


def test_the_suffix_chooses_the_format(tmp_path: Path, tfcompare) -> None:
    for words, out, begin in ((ALONE, "new/r.md", "### filters_16_8"), (("report", BEFORE, AFTER), "r.json", "{")):
        path = tmp_path / out
        status, printed, err = tfcompare(*words, "-o", str(path))
        assert (status, printed, f"wrote {path}" in err) == (0, "", True)
        assert path.read_text(encoding="utf-8").startswith(begin)


def test_without_a_file_it_is_printed_and_says_how_to_make_it_again(tfcompare) -> None:
    status, printed, _ = tfcompare(*ALONE, "--format", "markdown")
    assert (status, printed.startswith("### filters_16_8\n")) == (0, True)
    assert f"tfcompare report {AFTER} --steps 5:20 -o report.html" in printed


def test_a_redacted_report_names_no_place(tfcompare) -> None:
    status, printed, _ = tfcompare(*ALONE, "--format", "markdown", "--redact")
    assert (status, "filters" in printed, str(Path(AFTER).parent) in printed) == (0, False, False)
    assert "tfcompare report BASELINE --steps 5:20 -o report.html --redact" in printed


def test_the_command_in_a_redacted_report_names_no_host(tfcompare) -> None:
    words = ("report", str(WORKER_RUNS["workers_balanced"]), "--host", "worker1", "--format", "markdown")
    status, printed, _ = tfcompare(*words, "--redact")
    assert (status, "worker1" in printed, "--host 'host 2'" in printed) == (0, False, True)


def test_a_check_writes_a_report_passed_or_not(tmp_path: Path, tfcompare) -> None:
    out = tmp_path / "check.html"
    conditions = ("--fail-if", "step_time>+5%", "--fail-if", "peak_memory>1MB")
    status, printed, _ = tfcompare("check", AFTER, AFTER, *conditions, "--report", str(out))
    assert (status, "FAILED" in printed) == (1, True)
    text = html.unescape(out.read_text(encoding="utf-8"))
    assert text.startswith("<!DOCTYPE html>")
    assert text.index("Check FAILED (1 failed, 1 passed)") < text.index("10.9 ms per step")


def test_a_report_says_that_a_check_was_not_judged(tmp_path: Path, tfcompare) -> None:
    out = tmp_path / "check.md"
    words = ("check", BEFORE, AFTER, "--fail-if", "op:IDLE>+5%", "--report", str(out))
    assert tfcompare(*words)[0] == 2
    text = out.read_text(encoding="utf-8").replace("\\", "")
    assert "Check NOT JUDGED (1 " in text
    assert "in no step of either run there is an op whose name or type matches 'IDLE'" in text


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, tfcompare) -> None:
    (tmp_path / "file").write_text("")
    status, _, err = tfcompare(*ALONE, "-o", str(tmp_path / "file" / "r.md"))
    assert (status, str(tmp_path / "file") in err) == (2, True)


def test_a_file_of_another_kind_is_refused(tmp_path: Path, tfcompare) -> None:
    status, _, err = tfcompare("report", AFTER, "-o", str(tmp_path / "report.pdf"))
    assert (status, "report.pdf: expected a name that ends with .html, .md or .json" in err) == (2, True)
