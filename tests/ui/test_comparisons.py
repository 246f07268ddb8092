"""How many comparisons a server holds, the command that makes a report of one, and a store that takes nothing."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from streamlit.testing.v1 import AppTest

from tests.profiles import ROOT, SAMPLE_RUNS, SAMPLES
from tfcompare import Comparison, compare, load, settings
from tfcompare.run import Run
from tfcompare.settings import Settings
from tfcompare.store.cached_frames import frame_cache
from tfcompare.ui.frame import header
from tfcompare.ui.frame.loading import _run_cache
from tfcompare.ui.frame.run_cache import MAX_COMPARISONS, Comparisons


@dataclass(frozen=True)
class FakeRun:
    id: str
    memory_bytes: int = 10
    content_id: str = "content"
    name: str = "name"


def runs(names: str, each: int = 10) -> list[Run]:
    return [cast(Run, FakeRun(name, each)) for name in names]


def nothing(_: Comparison) -> int:
    return 0


class Made:
    """Counts what had to be made."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def of(self, held: Comparisons, names: str, said: object = None, each: int = 10) -> object:
        def make() -> Comparison:
            self.names.append(names)
            return cast(Comparison, object())

        return held.of([known.setdefault((n, each), *runs(n, each)) for n in names], said, make)


known: dict[tuple[str, int], Run] = {}


def test_a_comparison_is_made_once_for_the_same_runs_and_wishes() -> None:
    held, made = Comparisons(1000, nothing), Made()
    first = made.of(held, "ab", "per step")
    assert made.of(held, "ab", "per step") is first
    assert made.of(held, "ab", "per run") is not first
    assert made.of(held, "ba", "per step") is not first
    assert made.names == ["ab", "ab", "ba"]


def test_runs_that_many_comparisons_share_count_once_and_the_oldest_comparison_goes_first() -> None:
    held, made = Comparisons(40, nothing), Made()
    for names in ("ab", "ac", "ad", "ab"):
        made.of(held, names)
    assert made.names == ["ab", "ac", "ad"]
    made.of(held, "ae")  # five runs are too much: `ac`, not used for longest, goes
    for names in ("ab", "ad", "ae", "ac"):
        made.of(held, names)
    assert made.names == ["ab", "ac", "ad", "ae", "ac"]


def test_the_last_one_is_kept_however_large_it_is() -> None:
    held, made = Comparisons(40, nothing), Made()
    for _ in range(3):
        made.of(held, "xy", each=1000)
    assert made.names == ["xy"]
    made.of(held, "ab")
    made.of(held, "xy", each=1000)
    assert made.names == ["xy", "ab", "xy"]


def test_not_more_than_so_many_are_kept() -> None:
    held, made = Comparisons(10**9, nothing), Made()
    for number in range(MAX_COMPARISONS + 1):
        made.of(held, "ab", number)
    made.of(held, "ab", MAX_COMPARISONS)
    assert len(made.names) == MAX_COMPARISONS + 1
    made.of(held, "ab", 0)
    assert len(made.names) == MAX_COMPARISONS + 2


def test_what_pages_derived_from_a_comparison_counts_at_each_request() -> None:
    derived: dict[int, int] = {}
    held, made = Comparisons(100, lambda comparison: derived.get(id(comparison), 0)), Made()
    for names in ("ab", "cd", "ab", "cd"):
        last = made.of(held, names)
    assert made.names == ["ab", "cd"]
    derived[id(last)] = 90  # together with the four runs too much
    for names in ("cd", "ab"):
        made.of(held, names)
    assert made.names == ["ab", "cd", "ab"]


def test_what_could_not_be_made_is_tried_again() -> None:
    held, made = Comparisons(40, nothing), Made()

    def fail() -> Comparison:
        raise ValueError("no")

    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            held.of([known.setdefault((n, 10), *runs(n)) for n in "ab"], None, fail)
    made.of(held, "ab")
    assert made.names == ["ab"]


def test_a_data_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(SAMPLE_RUNS["filters_16_8"], data / "captures" / "planted")
    data.chmod(0o777)
    with settings.override(Settings(places=(SAMPLE_RUNS["filters_512_128"],), data_folder=data)):
        home = AppTest.from_file(str(ROOT / "app.py"), default_timeout=90).run()
    assert not home.exception
    assert "are not shown, since other users can write to it" in home.error[0].value
    assert len(home.dataframe[0].value) == 1
    assert not home.get("file_uploader")


def test_a_store_that_takes_nothing_is_told_beside_a_page_that_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_folder = tmp_path / "no_folder"
    no_folder.write_text("")
    monkeypatch.setenv("TFCOMPARE_STORE", str(no_folder / "store"))
    _run_cache.clear()
    with settings.override(Settings(places=(SAMPLE_RUNS["filters_512_128"], SAMPLE_RUNS["filters_16_8"]))):
        page = AppTest.from_file(str(ROOT / "pages" / "6_tf_data.py"), default_timeout=90).run()
        frame_cache().flush()
        page.run()
    assert not page.exception
    assert not page.error
    (warning,) = (w.value.replace("\\", "") for w in page.sidebar.warning)
    assert (
        "cannot be cached there (Not a directory), so profiles are read anew each time; make room, or name" in warning
    )
    assert page.get("plotly_chart")


GPU = SAMPLES / "transformer_gpu"


def test_it_has_the_choice_of_steps(tfcompare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = (SAMPLE_RUNS["filters_512_128"], SAMPLE_RUNS["filters_16_8"])
    runs = [load(path, steps="2:", stray="include") for path in paths]
    words = header.report_command(compare(*runs, per="run"))
    assert words[4:-2] == ["--per", "run", "--steps", "2:", "--stray", "include"]
    reported: list[Comparison] = []
    monkeypatch.setattr(
        "tfcompare.render.report.report", lambda comparison, *_, **__: reported.append(comparison) or "a report"
    )
    file = tmp_path / "report.html"
    status, _, errors = tfcompare(*words[1:-1], str(file))
    assert (status, file.read_text()) == (0, "a report"), errors
    (again,) = reported
    choices = [run.choice for run in (again.baseline, *again.candidates)]
    assert (again.per, choices) == ("run", [run.choice for run in runs])


def test_it_has_the_kind_of_steps() -> None:
    runs = [
        load(GPU / "h100_store_activations" / "h100_store_activations_run-1", step_kind="evaluate"),
        load(GPU / "h100_recompute_activations" / "h100_recompute_activations_run-1", step_kind="evaluate"),
    ]
    assert header.report_command(compare(*runs))[4:-2] == ["--step-kind", "evaluate"]


def test_a_redacted_report_has_no_path_in_its_command() -> None:
    run = load(SAMPLE_RUNS["filters_16_8"])
    for redact in (False, True):
        text = str(header._report(compare(run, run), "markdown", redact=redact))
        assert ("tfcompare report" in text, str(run.path) in text.replace("\\", "")) == (True, not redact)
