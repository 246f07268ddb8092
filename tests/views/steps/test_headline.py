"""The one sentence on a comparison: what it claims, with which interval, and what it says where nothing is claimed."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from tests.compare.compare_runs import run, steps
from tests.frames.tables import run_of
from tests.frames.test_hlo_ops import gpu, kernel, metadata
from tests.profiles import compared_runs
from tests.xspace_builder import event, space
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import compare
from tfcompare.errors import Unknown
from tfcompare.run import Run
from tfcompare.views.steps.headline import doubt, faster_or_slower, short_change


def test_what_was_not_tested_is_stated_as_no_change():
    """Of runs with too few steps for a verdict; runs of one name go by their ids, and each candidate has its own."""
    comparison = compare(run("x/train", step_ms=351), run("y/train", step_ms=25.1), run("z/other", step_ms=112))
    first, second = (comparison.headline(candidate.id) for candidate in comparison.candidates)
    assert first == "Difference not tested: `y/train` vs `x/train`, 25.1 ms vs 351 ms per step."
    assert second == "Difference not tested: `other` vs `train`, 112 ms vs 351 ms per step."
    assert comparison.headline() == first
    with pytest.raises(Unknown, match="unknown candidate 'z'; must be one of: 'y/train', 'z/other'"):
        comparison.headline("z")
    assert "`odd'name`" in compare(run("a"), run("odd`name")).headline(), "names cannot break the Markdown"


def varied(mean_us: float, seed: int):
    noise = np.random.default_rng(seed).standard_normal(20)
    return steps((mean_us * np.exp(0.01 * noise)).tolist())


def captures(mean_us: float, count: int, name: str):
    return [run(f"{name}{i}", step_ms=mean_us / 1000, step_frame=varied(mean_us, 10 * i)) for i in range(count)]


@pytest.mark.parametrize(
    ("before_ms", "after_ms", "said"),
    [
        (100.0, 50.0, "`b` is 2.0× faster than `a` (1.6×–2.5×, one capture each): 50.0 ms vs 100 ms per step."),
        (50.0, 100.0, "`b` is 2.0× slower than `a` (1.6×–2.5×, one capture each): 100 ms vs 50.0 ms per step."),
        (
            100.0,
            75.0,
            "`b` takes 25 % less time per step than `a` (8.3–39 %, one capture each): 75.0 ms vs 100 ms per step.",
        ),
    ],
)
def test_a_claim_has_its_interval_in_its_own_words_and_what_it_rests_on(before_ms, after_ms, said):
    ours = run("a", step_ms=before_ms, step_frame=varied(before_ms * 1000, 1))
    theirs = run("b", step_ms=after_ms, step_frame=varied(after_ms * 1000, 1))
    assert compare(ours, theirs).headline() == said


@pytest.mark.parametrize(("count", "likely"), [(3, "likely "), (5, "")])
def test_enough_replicates_allow_the_plain_word(count, likely):
    (a, *more_a), (b, *more_b) = (captures(mean, count, name) for mean, name in ((100_000, "a"), (50_000, "b")))
    comparison = compare(a, b, repeats={a.id: more_a, b.id: more_b})
    assert re.match(
        rf"`b0` is 2\.0× faster than `a0` \([12]\.?\d*×–2\.?\d*×, {count} captures each\): ", comparison.headline()
    )
    assert comparison.verdict[b.id].text == f"{likely}faster"


def test_an_inconclusive_difference_says_how_to_detect_one_and_equal_runs_are_as_fast():
    ours = run("a", step_ms=100.0, step_frame=varied(100_000, 1))
    theirs = run("b", step_ms=104.0, step_frame=varied(104_000, 2))
    said = compare(ours, theirs).headline()
    assert re.fullmatch(
        r"Inconclusive: `b` vs `a`, 104 ms vs 100 ms per step\. "
        r"The 95 % confidence interval of the ratio between captures is 0\.\d+×–1\.\d+×\. "
        r"These runs can show only changes above \d+ %; 5 captures per side would measure how much they vary\.",
        said,
    )
    assert "Inconclusive" not in compare(ours, theirs, spread=0.0).headline()
    equal = run("c", step_ms=100.0, step_frame=varied(100_000, 2))
    assert compare(ours, equal, spread=0.0).headline().startswith("`c` is as fast as `a`: 100 ms vs 100 ms per step.")


def test_small_and_large_differences_keep_two_digits():
    assert faster_or_slower(100.0, 100.4) == "takes 0.40 % more time per step than"
    assert faster_or_slower(100.0, 100.0000001) == "takes less than 0.0001 % more time per step than"
    assert faster_or_slower(123456.0, 1.0) == "is 120,000× faster than"
    assert faster_or_slower(1.996, 1.0) == "is 2.0× faster than"
    changes = {5.0: "20× faster", 66.0: "1.5× faster", 70.0: "30 % less time", 99.99: "0 %", 100.0: "0 %"}
    changes |= {100.4: "0.40 % more time", 130.0: "30 % more time", 150.0: "1.5× slower", 1400.0: "14× slower"}
    assert {after: short_change(100.0, after) for after in changes} == changes, "the words of a table"


def test_of_one_capture_or_without_step_markers_it_says_so():
    same = compare(run("a", content="x"), run("b", content="x")).headline()
    assert same == "`b` is the same capture as `a`, byte for byte."
    said = compare(run("a"), run("b", has_steps=False)).headline()
    assert said == (
        "`b` has no step markers, so step times cannot be compared; record again with each step inside "
        "`tf.profiler.experimental.Trace('train', step_num=step, _r=1)`, or choose the host event that begins each "
        "step (“Steps begin with” in the sidebar, `--step-marker` on the command line)."
    )
    said = compare(run("a"), run("b", has_steps=False, framework="JAX")).headline()
    assert "`jax.profiler.StepTraceAnnotation('train', step_num=step)`" in said
    said = compare(run("a", step_ms=math.nan), run("b", has_steps=False)).headline()
    assert said.startswith("`a` and `b` have no step markers")


def test_runs_of_different_devices_and_runs_of_hardly_any_steps_are_named():
    before, after = run("before", step_ms=784.0, device_type="TPU", framework="JAX"), run("after", step_ms=10.6)
    assert compare(before, after).headline() == (
        "Difference not tested: `after` vs `before`, 10.6 ms vs 784 ms per step. They ran on different devices (TPU "
        "and CPU) and frameworks (JAX and TensorFlow), which alone can explain the difference."
    )
    short = run("short", step_ms=21.3, steps_included=1)
    assert compare(short, after).headline().endswith("per step. `short` has fewer than 3 steps.")


@pytest.mark.parametrize(
    ("after_ms", "much"), [(100.0, "4.7× longer than"), (10.65, "2.0× shorter than"), (21.3, "as long as")]
)
def test_runs_of_one_step_each_have_an_answer_and_how_to_record_more(after_ms, much):
    before, after = (run(name, step_ms=ms, steps_included=1) for name, ms in (("before", 21.3), ("after", after_ms)))
    said = compare(before, after).headline()
    assert said.startswith(f"`after`'s one step is {much} `before`'s (1 step each: not tested): ")
    assert said.endswith("To record more: `TensorBoard(profile_batch=(10, 40))`.")
    both = (run(name, step_ms=after_ms, steps_included=1, framework="JAX") for name in "ab")
    assert "`jax.profiler.StepTraceAnnotation('train', step_num=step)`" in compare(*both).headline()


def test_what_is_no_verdict_is_told_to_follow_the_headline() -> None:
    few = [run("few", step_frame=steps([1000.0] * 4)), run("more", device_type="GPU", step_frame=varied(1000.0, 1))]
    assert doubt(pair_with(compare(*few))) == (
        "Not tested: too few steps: 4; a verdict needs 9 on each side. "
        "The runs differ in device type, which alone can change times."
    )
    assert doubt(pair_with(compare(*(run(name, step_frame=varied(1000.0, 1)) for name in "ab")))) == ""
    without_steps = compare(run("a"), run("b", has_steps=False))
    assert doubt(pair_with(without_steps)) == "", "the headline says that there are no steps"


def test_without_steps_the_time_per_execution_of_a_paired_program_leads() -> None:
    """The same convolution on one GPU and on eight: per run it would take 7.7 times as long."""
    comparison = compared_runs("jax_conv_legacy", "jax_conv_08")
    ours, theirs = (f"`{run.name}`" for run in (comparison.baseline, *comparison.candidates))
    assert comparison.headline() == (
        f"The same `jit_forward_3d_conv` takes 689 µs per execution in {theirs}, 717 µs in {ours} (−3.98 %), on 8 "
        "devices and 1."
    )
    assert doubt(pair_with(comparison)).startswith(f"{ours} and {theirs} have no step markers")
    assert comparison.per == "device"
    swapped = compared_runs("jax_conv_08", "jax_conv_legacy")
    assert swapped.headline().endswith("(+4.14 %), on 1 device and 8.")
    assert [m.candidate for m in pair_with(comparison).mismatches if m.label == "Devices"] == ["8"]


def gpu_run(count: int, took_us: float) -> Run:
    """A run without steps and programs in which each of `count` GPUs runs one kernel for this long."""
    return run_of(space(*(gpu(event("add", 0, took_us, {"tf_op": "model/add:Add"}), number=i) for i in range(count))))


def test_devices_of_hosts_add_up_and_equal_names_do_not_matter() -> None:
    def hosts_of(*counts: int) -> Run:
        planes = [[gpu(event("add", 0, 30.0, {"tf_op": "model/add:Add"}), number=i) for i in range(n)] for n in counts]
        return run_of(*(space(*of_host) for of_host in planes))

    one, two = hosts_of(2), hosts_of(2, 2)
    assert compare(one, two).headline(names=("A", "B")) == (
        "Ops take 30.0 µs of each device in `B`, 30.0 µs in `A` (0 %), on 4 devices and 2."
    )
    assert compare(one, two).table("op_stats")["self_time_us_per_device_ratio"].max() == 1.0
    assert compare(hosts_of(1, 8), two).headline(names=("A", "B")).endswith("on 4 devices and 9.")
    on_host = compare(hosts_of(2), hosts_of(2, 8), host="a")
    assert (on_host.per, on_host.notes[0][:19]) == ("run", "Figures are per run")


def test_without_programs_the_time_of_each_device_leads_where_their_numbers_differ() -> None:
    one, four = gpu_run(1, 30.0), gpu_run(4, 33.0)
    comparison = compare(one, four)
    said = comparison.headline(names=("A", "B"))
    assert said == "Ops take 33.0 µs of each device in `B`, 30.0 µs in `A` (+10.0 %), on 4 devices and 1."
    assert comparison.table("op_stats")["self_time_us_per_device_candidate"].max() == 33.0
    assert compare(one, four, per="run").headline(names=("A", "B")) == said
    assert compare(one, gpu_run(1, 33.0)).headline().endswith("on the command line).")


def test_of_several_programs_it_is_said_that_there_are_others() -> None:
    def run_with(*took_us: float) -> Run:
        ids = {f"jit_{i}": i + 1 for i in range(len(took_us))}
        stats = [{"hlo_module": name, "program_id": own_id} for name, own_id in ids.items()]
        events = [kernel("k", 100 * i, took, "dot.1", **stats[i]) for i, took in enumerate(took_us)]
        return run_of(space(gpu(*events), metadata(**ids)))

    said = compare(run_with(10.0, 50.0), run_with(20.0, 40.0)).headline(names=("A", "B"))
    assert (
        said
        == "The same `jit_1`, the longest of 2 programs, takes 40.0 µs per execution in `B`, 50.0 µs in `A` (−20.0 %)."
    )
    said = compare(run_with(50.0), run_with(50.0, 90.0)).headline(names=("A", "B"))
    assert said.startswith("The same `jit_0` takes 50.0 µs")
