"""`diff --pairs`: the file that the dashboard saves holds on the command line as well."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from tests.profiles import SAMPLE_RUNS
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
