"""What differs between two runs besides their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.frames.tables import run_of
from tests.hlo.builder import BF16, F32, parameter
from tests.hlo.profiles import host_of
from tests.profiles import loaded_run
from tests.xspace_builder import chunk, integer
from tfcompare.compare.comparability import Mismatch
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import compare
from tfcompare.run import Run
from tfcompare.sources.logdir.metadata import Metadata
from tfcompare.sources.machine_load import MachineLoad
from tfcompare.views.steps.what_differs import Difference, differences, known

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
    assert differences(run, run, pair_with(compare(run, run)).mismatches) == []


def test_what_makes_times_incomparable_comes_first_and_says_why() -> None:
    soft, hard = (Mismatch(label, "1", "2", "why", is_hard) for label, is_hard in (("Soft", False), ("Hard", True)))
    one, other = differences(RUN, RUN, [soft, hard])
    assert one == Difference("Hard", "1", "2", "why") and other.label == "Soft"


def test_versions_and_levels_that_differ_are_named_one_by_one() -> None:
    other = with_origin(
        RUN,
        versions=(("jax", "0.11.0"), ("jaxlib", "0.10.2"), ("cuda", "13.0")),
        profiler_options=(("host tracer", "2"), ("device tracer", "1"), ("Python tracer", "1")),
    )
    assert differing(RUN, other) == {
        "Version of jax": ("0.10.2", "0.11.0"),
        "Level of Python tracer": ("0", "1"),
    }, "of cuda, one side says nothing"


def test_what_users_noted_is_compared_and_a_missing_note_is_none() -> None:
    ours = with_metadata({"commit": "abc", "branch": "main"}, ("nightly", "old"))
    theirs = with_metadata({"commit": "def", "branch": "main", "flags": "--x"}, ("nightly",))
    assert differing(ours, theirs) == {"commit": ("abc", "def"), "flags": ("none", "--x"), "Tags": ("old", "none")}


def test_of_flags_those_are_shown_that_one_side_has() -> None:
    def flags(*others: str) -> Run:
        return with_metadata({"XLA_FLAGS": " ".join([*(f"--same_{i}=1" for i in range(200)), *others])})

    assert differing(flags("--a=1", "--b=2"), flags("--b=3")) == {
        "XLA_FLAGS": ("--a=1, --b=2; 200 on both sides", "--b=3; 200 on both sides")
    }
    assert differing(flags("--a=1"), flags()) == {"XLA_FLAGS": ("--a=1; 200 on both sides", "200 on both sides")}
    first, second = (with_metadata({"XLA_FLAGS": text}) for text in ("--a=1 --a=2", "--a=2 --a=1"))
    assert differing(first, second) == {"XLA_FLAGS": ("--a=1 --a=2", "--a=2 --a=1")}, "the last one counts"


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
        there = differences(ours, theirs, pair_with(compare(ours, theirs)).mismatches)
        back = differences(theirs, ours, pair_with(compare(theirs, ours)).mismatches)
        mirrored = [(one.label, one.candidate, one.baseline) for one in back]
        assert there and sorted(mirrored) == sorted((one.label, one.baseline, one.candidate) for one in there)


def test_what_is_known_of_both_is_said() -> None:
    assert known(RUN, RUN) == ["versions of jax, jaxlib", "levels of the tracers"]
    assert known(RUN, loaded_run("filters_16_8")) == ["levels of the tracers"]
    other = with_origin(RUN, versions=(("cuda", "13.0"), ("jax", "0.10.2")))
    assert known(RUN, other) == ["versions of jax", "levels of the tracers"], "one side says nothing of the others"


def ran(*programs: tuple[str, float, Sequence[bytes]]) -> Run:
    """A run of programs: name, time in µs (0 for one that did not run), shapes of the parameters."""
    return run_of(
        host_of(*((name, took, [*map(parameter, "abc", shapes, range(3))]) for name, took, shapes in programs))
    )


def test_inputs_that_only_one_side_has_stand_beside_how_many_both_have() -> None:
    ours, theirs = ran(("jit_f", 5, [F32[8]])), ran(("jit_f", 5, [F32[8], BF16[4], BF16[4]]))
    assert differing(ours, theirs) == {
        "Inputs of jit_f": ("1 on both sides", "2 × bf16[4]; 1 on both sides"),
    }


def test_inputs_are_those_of_programs_that_ran_and_the_longest_of_both_runs_come_first() -> None:
    """Candidate and baseline alone would have another order; `jit_idle` ran in one of them only."""
    programs = [("jit_f", 10, 30), ("jit_g", 50, 1), ("jit_h", 3, 2), ("jit_i", 1, 1), ("jit_idle", 0, 9)]
    ours = ran(*((name, took, [F32[8]]) for name, took, _ in programs))
    theirs = ran(*((name, took, [BF16[8]]) for name, _, took in programs))
    names = ["Inputs of jit_g", "Inputs of jit_f", "Inputs of jit_h"]
    assert list(differing(ours, theirs)) == list(differing(theirs, ours)) == names


def test_donated_inputs_are_compared() -> None:
    donated = chunk(8, chunk(1, integer(2, 0) + integer(4, 1)))
    ours, theirs = (run_of(host_of(("jit_f", 5, [parameter("a", F32[8])]), others=one)) for one in (donated, b""))
    assert differing(ours, theirs) == {"Donated inputs of jit_f": ("f32[8]", "none")}
    assert differing(ours, ours) == {}


def test_the_order_of_hosts_does_not_count() -> None:
    first, *_ = RUN.hosts
    levels = [replace(first, origin=replace(first.origin, profiler_options=(("host tracer", one),))) for one in "01"]
    ours, theirs, even = (replace(RUN, hosts=tuple(hosts)) for hosts in (levels, levels[::-1], levels[:1] * 2))
    assert differing(ours, theirs) == {}
    assert differing(even, theirs) == {"Level of host tracer": ("0", "0, 1")}
