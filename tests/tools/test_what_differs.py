"""What differs between two runs besides their times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.profiles import loaded_run
from tfcompare.compare import compare
from tfcompare.compare.comparability import Mismatch
from tfcompare.run import Run
from tfcompare.sources.logdir.metadata import Metadata
from tfcompare.sources.machine_load import MachineLoad
from tfcompare.tools.what_differs import Difference, differences, known

RUN = loaded_run("jax_filters_16_8")


def differing(baseline: Run, candidate: Run, *mismatches: Mismatch) -> dict[str, tuple[str, str]]:
    return {one.label: (one.baseline, one.candidate) for one in differences(baseline, candidate, mismatches)}


def with_origin(run: Run, **fields: object) -> Run:
    return replace(run, hosts=tuple(replace(host, origin=replace(host.origin, **fields)) for host in run.hosts))


def with_metadata(values: dict[str, str], tags: tuple[str, ...] = ()) -> Run:
    metadata = Metadata(tuple(sorted(values.items())), tags)
    return replace(RUN, found=replace(RUN.found, metadata=metadata))


@pytest.mark.parametrize("name", ["jax_filters_16_8", "filters_16_8", "h100_16_8"])
def test_a_run_does_not_differ_from_itself(name: str) -> None:
    run = loaded_run(name)
    assert differences(run, run, compare(run, run).mismatches(run)) == []


def test_what_makes_times_incomparable_comes_first_and_says_why() -> None:
    soft, hard = (Mismatch(label, "1", "2", "why", is_hard) for label, is_hard in (("Soft", False), ("Hard", True)))
    one, other = differences(RUN, RUN, [soft, hard])
    assert one == Difference("Hard", "1", "2", "why") and other.label == "Soft"


def test_versions_and_levels_that_differ_are_named_one_by_one() -> None:
    other = with_origin(
        RUN, versions=(("jax", "0.11.0"), ("jaxlib", "0.10.2"), ("cuda", "13.0")),
        profiler_options=(("host tracer", "2"), ("device tracer", "1"), ("Python tracer", "1")),
    )  # fmt: skip
    assert differing(RUN, other) == {
        "Version of jax": ("0.10.2", "0.11.0"),
        "Level of Python tracer": ("0", "1"),
    }, "of cuda, one side says nothing"


def test_what_users_noted_is_compared_and_a_missing_note_is_none() -> None:
    ours = with_metadata({"commit": "abc", "branch": "main"}, ("nightly", "old"))
    theirs = with_metadata({"commit": "def", "branch": "main", "flags": "--x"}, ("nightly",))
    assert differing(ours, theirs) == {"commit": ("abc", "def"), "flags": ("none", "--x"), "Tags": ("old", "none")}


def test_other_parameters_of_a_program_are_its_inputs() -> None:
    found = differing(loaded_run("jax_filters_128_32"), RUN)
    assert list(found) == ["Inputs of jit_train_step"]
    ours, theirs = found["Inputs of jit_train_step"]
    assert "f32[3,3,32,128]" in ours and "f32[3,3,8,16]" in theirs
    assert "f32[16,32,32,3]" not in ours + theirs, "the batch is the same"


def test_other_work_and_clocks_are_compared_where_both_sides_know_them() -> None:
    busy, idle = (replace(RUN, machine_load=MachineLoad(2, load, load)) for load in (5.0, 0.5))
    assert list(differing(busy, idle)) == ["Other work on the machine"]
    assert differing(busy, RUN) == {}
    fast, slow = (with_origin(RUN, clock_mhz=mhz) for mhz in (1980.0, 1200.0))
    assert differing(fast, slow) == {"Highest clock": ("1,980 MHz", "1,200 MHz")}


def test_kernels_in_command_buffers_are_named() -> None:
    names = ("h100_16_8", "h100_16_8_command_buffers", "filters_16_8")
    assert [loaded_run(name).info.command_buffers for name in names] == ["not used", "used", ""]
    assert differing(*map(loaded_run, names[:2])) == {"Command buffers": ("not used", "used")}


def test_exchanged_sides_are_a_mirror_image() -> None:
    for ours, theirs in ((loaded_run("jax_filters_128_32"), RUN), (RUN, loaded_run("filters_16_8"))):
        there = differences(ours, theirs, compare(ours, theirs).mismatches(theirs))
        back = differences(theirs, ours, compare(theirs, ours).mismatches(ours))
        mirrored = [(one.label, one.candidate, one.baseline) for one in back]
        assert there and sorted(mirrored) == sorted((one.label, one.baseline, one.candidate) for one in there)


def test_what_is_known_of_both_is_said() -> None:
    assert known(RUN, RUN) == ["versions of software", "profiler options"]
    assert known(RUN, loaded_run("filters_16_8")) == ["profiler options"]
