"""`diff --pairs`: the file that the dashboard saves holds on the command line as well."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from tests.profiles import SAMPLE_RUNS
from tfcompare.cli import main
from tfcompare.compare.matching.manual import ManualChoice
from tfcompare.compare.matching.manual_text import ChoicesOfPair, to_file

RUNS = [str(SAMPLE_RUNS[name]) for name in ("filters_512_128", "filters_16_8")]
NAME = "autoencoder_1/image_1/convolution"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.json"
    file.write_text(to_file(ChoicesOfPair("any", "other", (ManualChoice(False, (NAME,), (NAME,)),))), encoding="utf-8")
    return file


def test_the_file_says_what_is_paired(pairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *RUNS, "--format", "csv", "--pairs", str(pairs)]) == 0
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert sorted(rows.loc[rows["op_name"] == NAME, "status"]) == ["added", "removed"]


@pytest.mark.parametrize(("more", "complaint"), [(RUNS[1:], "single CANDIDATE"), ([], "expected a file of pairs")])
def test_what_cannot_be_is_told_in_one_line(
    pairs: Path, more: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = pairs if more else pairs.with_name("nowhere.json")
    assert main(["diff", RUNS[0], str(SAMPLE_RUNS["filters_16_8_again"]), *more, "--pairs", str(file)]) == 2
    assert complaint in capsys.readouterr().err
