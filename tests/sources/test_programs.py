"""Which runs a series is made of: those of one program on one device, known without opening a profile."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tfcompare.errors import Unknown
from tfcompare.sources.logdir import FoundRun, RunSummary
from tfcompare.sources.logdir.metadata import NO_METADATA, parse_options
from tfcompare.sources.programs import Program, most_frequent, programs_of, same_program, wanted

STAMP = "plugins/profile/2026_11_20_10_17_24"
CPU, GPU = RunSummary("CPU", "", 10, 1.0, None, ""), RunSummary("8 × GPU", "NVIDIA H200", 10, 1.0, None, "")


def found(run_id: str, facts: RunSummary | None = CPU, below: str = "/ci", program: str = "") -> FoundRun:
    path, metadata = Path(below) / run_id, parse_options([f"program={program}"]) if program else NO_METADATA
    recorded = datetime(2026, 1, 1, tzinfo=UTC)
    return FoundRun(run_id, run_id, path, (), (), recorded, "", metadata=metadata, summary=facts)


def names(*ids: str) -> list[str]:
    return [program.name for program in programs_of([found(f"{name}/{STAMP}") for name in ids]).values()]


@pytest.mark.parametrize(
    ("ids", "name"),
    [
        (("logs/night_00", "logs/night_01", "logs/night_17"), "night"),
        (("resnet/build-4711", "resnet/build-4720"), "resnet/build"),
        (("nightly/2026-11-20/resnet", "nightly/20261121/resnet"), "nightly/resnet"),
        (("resnet/2026-11-20", "resnet/2026_11_21_03_00_00", "resnet"), "resnet"),
        (("bert-base_20261120", "bert-base_20261121"), "bert-base"),
        (("ci/1a2b3c4/bert", "ci/9f8e7d6c5b4a39281706/bert"), "ci/bert"),
        (("bert/run-1", "bert/again", "bert/104711"), "bert"),
        (("myapp_1", "myapp_2", "myapp_3"), "myapp#"),
    ],
)
def test_what_differs_from_run_to_run_is_not_part_of_the_name(ids: tuple[str, ...], name: str) -> None:
    assert names(*ids) == [name] * len(ids)


@pytest.mark.parametrize(
    "ids",
    [
        ("resnet/build-1", "bert/build-1"),
        ("filters_16_8", "filters_512_128"),
        ("units/512", "units/1024"),
        ("model_v1", "model_v2"),
        ("x/train", "x/validation"),
        ("deadbeef", "cafe"),
    ],
)
def test_programs_are_never_mixed(ids: tuple[str, ...]) -> None:
    assert len(set(names(*ids))) == len(ids)


def test_devices_and_metadata_make_programs() -> None:
    runs = [found("a/1", CPU), found("a/2", GPU), found("b/1", CPU, program="bert"), found("c", None, program="bert")]
    assert [program.text for program in programs_of([replace(r, id=f"{r.id}/{STAMP}") for r in runs]).values()] == [
        "a/1 · CPU",
        "a/2 · 8 × GPU NVIDIA H200",
        "bert · CPU",
        "bert",
    ]


def test_a_name_does_not_depend_on_other_runs_of_the_program() -> None:
    nights = [f"night_{night:02}" for night in range(20)]
    assert {*names(*nights[5:]), *names(*nights[::3]), *names(nights[7])} == {"night"}


def test_folders_above_name_a_run_whose_own_say_nothing() -> None:
    (program,) = programs_of([found(STAMP, below="/data/resnet/2026-11-20")]).values()
    assert program.name == "resnet"


def test_the_program_with_most_of_the_newest_runs_is_shown_first() -> None:
    old, new, rare = Program("old"), Program("new"), Program("rare")
    assert most_frequent([*[old] * 500, *[new] * 90, *[rare] * 10]) == new
    assert most_frequent([old, new]) == new


def test_a_program_is_chosen_by_its_text_name_or_folder() -> None:
    programs = [Program("nightly/bert", "CPU"), Program("nightly/resnet", "CPU"), Program("nightly/resnet", "GPU")]
    assert wanted("nightly/resnet · GPU", programs) == programs[2]
    assert wanted("nightly/bert", programs) == wanted("bert", programs) == programs[0]
    for text in ("resnet", "nightly", "gpt"):
        with pytest.raises(Unknown, match=r"must be one of: 'nightly/bert · CPU', 'nightly/resnet · CPU'"):
            wanted(text, programs)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/lab/resnet/build-9", "resnet/build"),
        ("/lab/build-9", None),
        ("/lab/train", None),
        ("/lab/night_20", "night"),
        ("/lab/myapp_99", "myapp#"),
    ],
)
def test_a_new_run_belongs_to_the_program_whose_folders_are_its_innermost(path: str, expected: str | None) -> None:
    programs = [Program(name, "CPU") for name in ("resnet/build", "bert/build", "bert/train", "night", "myapp#")]
    program = same_program(found(STAMP, below=path), "CPU", programs)
    assert (program and program.name) == expected
    assert same_program(found(STAMP, below=path), "8 × GPU NVIDIA H200", programs) is None


def test_a_new_run_belongs_to_the_program_in_its_metadata() -> None:
    programs = [Program("resnet", "CPU"), Program("bert", "CPU")]
    assert same_program(found(STAMP, below="/lab/resnet", program="bert"), "CPU", programs) == programs[1]
    assert same_program(found(STAMP, below="/lab/resnet", program="gpt"), "CPU", programs) is None
