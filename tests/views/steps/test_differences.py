"""What differs between two runs besides their times, and whether the change reached the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.frames.tables import run_of, run_with
from tests.frames.test_sparse_cores import sparse_core, tensor_core
from tests.hlo.builder import BF16, F32, Instruction, instruction, parameter
from tests.hlo.profiles import host_of
from tests.profiles import compared_runs, loaded_run
from tests.views.flat import flat, of_kind
from tests.views.flat import pair_of as pair
from tests.views.xla.test_program import LAYERS, pair_of, profile
from tests.xspace_builder import chunk, integer
from tfcompare.compare.comparability import Mismatch
from tfcompare.compare.pair import Pair
from tfcompare.compare.pairs import pair_with, pairs_of
from tfcompare.comparison import compare
from tfcompare.run import Run
from tfcompare.sources.logdir.metadata import Metadata
from tfcompare.sources.machine_load import MachineLoad
from tfcompare.views.blocks import Link, Links, Text
from tfcompare.views.steps.what_differs import UNREACHED, Difference, differences, known, section

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
    assert differing(RUN, other) == {"Version of jax": ("0.10.2", "0.11.0"), "Level of Python tracer": ("0", "1")}, (
        "of cuda, one side says nothing"
    )


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
    assert known(RUN, RUN) == ["versions of jax, jaxlib", "tracer levels"]
    assert known(RUN, loaded_run("filters_16_8")) == ["tracer levels"]
    other = with_origin(RUN, versions=(("cuda", "13.0"), ("jax", "0.10.2")))
    assert known(RUN, other) == ["versions of jax", "tracer levels"], "one side says nothing of the others"


def ran(*programs: tuple[str, float, Sequence[bytes]]) -> Run:
    """A run of programs: name, time in µs (0 for one that did not run), shapes of the parameters."""
    return run_of(
        host_of(*((name, took, [*map(parameter, "abc", shapes, range(3))]) for name, took, shapes in programs))
    )


def test_inputs_that_only_one_side_has_stand_beside_how_many_both_have() -> None:
    ours, theirs = ran(("jit_f", 5, [F32[8]])), ran(("jit_f", 5, [F32[8], BF16[4], BF16[4]]))
    assert differing(ours, theirs) == {"Inputs of jit_f": ("1 on both sides", "2 × bf16[4]; 1 on both sides")}


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


def texts(pair: Pair) -> list[str]:
    return [one.text for one in flat(section(pair)) if isinstance(one, Text | Links)]


def test_the_same_program_says_that_the_change_did_not_reach_the_compiler(tmp_path: Path) -> None:
    other = profile(*LAYERS, parameter("unused.9", F32[8], 2))
    same, nothing = texts(pair_of(tmp_path / "same", profile(*LAYERS), profile(*LAYERS) + b""))[:1], []
    assert same == nothing, "copies of one capture have no differences to speak of"
    changed = texts(pair_of(tmp_path / "other", profile(*LAYERS), other))
    assert changed[0].startswith("`jit_f`: 1 of 9 instructions differs: 1 added.")
    (links,) = of_kind(flat(section(pair_of(tmp_path / "link", profile(*LAYERS), other))), Links)
    assert links.links == [Link("On the XLA page", "xla", {"program": "jit_f"})]


def test_two_captures_of_one_program_have_the_same_program(tmp_path: Path) -> None:
    again = [*LAYERS[:-1], instruction("out.9", "negate", F32[8, 8], "dot.7")]
    said, rest = texts(pair_of(tmp_path, profile(*LAYERS), profile(*again)))
    assert said == f"{UNREACHED}: `jit_f` has the same instructions on both sides."
    assert rest == "Nothing else that was recorded differs."


def test_what_both_profiles_tell_of_is_the_same() -> None:
    chip = replace(tensor_core(), stats=(("device_type_string", "TPU v4"),))
    pair = pairs_of(compare(*(run_with(chip, sparse_core(start=at)) for at in (100, 110))))[0]
    assert texts(pair)[-1] == "Nothing else that was recorded differs: same device."


def pair_of_hosts(ours: Sequence[bytes], theirs: Sequence[bytes]) -> Pair:
    return pairs_of(compare(run_of(*ours), run_of(*theirs)))[0]


def doing(opcode: str, size: int = 8) -> list[Instruction]:
    return [parameter("x", F32[size]), instruction("does", opcode, F32[size], "x")]


def said_of(ours: Sequence[bytes], theirs: Sequence[bytes]) -> list[str]:
    """The sentences on programs, for a pair of runs with these hosts."""
    return [text for text in texts(pair_of_hosts(ours, theirs)) if not text.startswith("Nothing else")]


def test_every_program_counts_and_those_that_differ_beyond_three_are_named() -> None:
    longest = [(f"jit_{name}", 50, doing("tanh")) for name in "abcd"]
    ours, theirs = ([host_of(*longest, ("jit_e", 1, doing(one)))] for one in ("tanh", "sine"))
    differing, same = said_of(ours, theirs)
    assert differing.startswith("`jit_e`: ") and "1 `sine` was added" in differing
    assert same == "`jit_a`, `jit_b`, `jit_c` and 1 more have the same instructions on both sides."
    *described, rest = said_of([host_of(*longest)], [host_of(*((name, 50, doing("sine")) for name, _, _ in longest))])
    assert [text[:8] for text in described] == ["`jit_a`:", "`jit_b`:", "`jit_c`:"] and rest == "`jit_d` differs, too."


def test_programs_of_one_side_are_named() -> None:
    both, f, g = ("jit_both", 9, doing("tanh")), ("jit_f", 5, doing("sine")), ("jit_g", 5, doing("cosine"))
    same = "`jit_both` has the same instructions on both sides."
    assert said_of([host_of(both, f)], [host_of(both, g)]) == ["`jit_f` ran only in A, `jit_g` only in B.", same]
    assert said_of([host_of(both)], [host_of(both, g)]) == ["`jit_g` ran only in B.", same]
    many = [(f"jit_{name}", 5, doing(name)) for name in ("abs", "ceil", "floor", "log", "sign")]
    assert said_of([host_of(both, *many)], [host_of(both)]) == [
        "`jit_abs`, `jit_ceil`, `jit_floor` and 2 more ran only in A.",
        same,
    ]


def test_programs_of_all_hosts_count() -> None:
    tanh, sine = (host_of(("jit_f", 5, doing(one))) for one in ("tanh", "sine"))
    same = f"{UNREACHED}: `jit_f` has the same instructions on both sides."
    uneven = "The hosts of B ran different programs under the name `jit_f`."
    assert said_of([tanh, tanh], [tanh, tanh + b""]) == [] == said_of([sine, tanh], [sine, tanh])
    assert said_of([tanh], [tanh, tanh]) == [same], "the rows of all hosts are one"
    for theirs in ([tanh, sine], [sine, tanh]):
        differing, hosts = said_of([tanh, tanh], theirs)
        assert "1 `sine` was added; 1 `tanh` was removed" in differing and hosts == uneven


def test_another_donation_is_a_change() -> None:
    ours, theirs = ([host_of(("jit_f", 5, doing("tanh")), others=one)] for one in (b"", chunk(8, chunk(1, b""))))
    (said,) = said_of(ours, theirs)
    assert said == "`jit_f`: 1 of 3 instructions differs; 1 input is donated."
    (back,) = said_of(theirs, ours)
    assert back == "`jit_f`: 1 of 3 instructions differs; 1 input is no longer donated."


def test_without_anything_to_say_there_is_no_section() -> None:
    assert not list(section(pair("filters_512_128", "filters_16_8"))), "TensorFlow's profiles tell of little"
    assert not list(section(pair("jax_filters_16_8", "jax_filters_16_8"))), "a run alone"
    run = compared_runs("jax_filters_128_32", "jax_filters_16_8").baseline
    copy = replace(run, id="copy", name="copy")
    assert not list(section(pairs_of(compare(run, copy))[0])), "one capture twice"
