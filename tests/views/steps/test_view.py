"""The Overview: what opens, what it leads to, and what it says of runs that cannot be compared as usual."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from tests.frames.async_cpu import AsyncCpuProgram
from tests.profiles import compared_runs
from tests.step_programs import capture, even, every, some
from tests.views.flat import of_kind, only_pair, opened, pair_of, step_links, words
from tfcompare import compare, load
from tfcompare.compare.pair import Pair
from tfcompare.render.shown import Shown
from tfcompare.views import answer
from tfcompare.views.blocks import Cards, Facts, Items


@pytest.fixture(scope="module")
def pair() -> Pair:
    return pair_of("filters_512_128", "filters_16_8")


def changes(pair: Pair) -> Facts:
    (found,) = [one for one in answer.changes(pair, answer.TOP) if isinstance(one, Facts)]
    return found


def test_a_change_opens_the_op(pair: Pair) -> None:
    details = opened(changes(pair), "op:Host:Conv2D:autoencoder_1/image_1/convolution")
    assert details is not None
    assert "**`Conv2D` on host**" in words(details.blocks)


def test_runs_with_slow_steps_or_a_stray_have_a_link_to_the_longest(tmp_path: Path) -> None:
    lengths = {"usual": even(4), "other": even(4), "slow": every(5, 9, 4), "stray": some([6], 60, 4)}
    runs = {name: load(capture(tmp_path / name, steps, seed=len(name))) for name, steps in lengths.items()}
    for ours, theirs, letters in (("usual", "other", ""), ("slow", "stray", "AB"), ("usual", "slow", "B")):
        labels = [link.label for link in step_links(only_pair(compare(runs[ours], runs[theirs])))]
        assert [re.findall(r"^Show step .* of ([AB]) ", label) for label in labels] == [[letter] for letter in letters]


def test_advice_has_its_evidence(pair: Pair) -> None:
    items = dict(item for block in of_kind(answer.advice(pair), Items) for item in block.items)
    (more,) = [more for line, more in items.items() if line.startswith("The steps wait for input")]
    assert "Share of the step time: A 3.65 %, B 62.2 %." in more


def test_runs_without_steps_say_so_and_what_to_do() -> None:
    pair = pair_of("jax_conv_legacy", "jax_conv_08")
    assert "jax.profiler.StepTraceAnnotation" in " ".join(answer.verdict(pair).basis)
    (cards,) = of_kind(answer.figures(pair), Cards)
    labels = [figure.label for figure in cards.figures]
    assert "Step time" not in labels and "Device op time per device" in labels
    found = changes(pair)
    assert "– not tested" in [row[found.header.index("Verdict")] for row in found.rows]


def test_runs_whose_steps_end_before_their_work_say_so(tmp_path: Path) -> None:
    times = (2_000.0,) * 12
    for name, program in {"a": AsyncCpuProgram(times, blocks=True), "b": AsyncCpuProgram(times, lost=2)}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "host.xplane.pb").write_bytes(program.profile())
    pair = only_pair(compare(load(tmp_path / "a"), load(tmp_path / "b")))
    found = answer.verdict(pair)
    assert found.headline == "Step times cannot be compared"
    (basis,) = found.basis
    assert "steps end before their work: " in basis and "StepTraceAnnotation" not in basis


def test_what_makes_runs_hard_to_compare_is_a_caveat() -> None:
    text = Shown.of(compared_runs("tf_gpu", "tf_cpu_base"), "xla").to("table", width=10_000)
    caveats = text.partition("Caveats (")[2]
    assert "one capture is counted 2 times" in caveats
    assert "1. Device type: GPU vs CPU; the kind of device alone changes times" in caveats


def test_a_run_without_devices_beside_one_with_some_has_no_time_of_theirs() -> None:
    for names in (("tf_gpu", "tf_cpu_base"), ("tf_cpu_base", "tf_gpu")):
        (cards,) = of_kind(answer.figures(pair_of(*names)), Cards)
        (busy,) = [one for one in cards.figures if one.label == "Device busy"]
        times = dict(zip(names, (busy.baseline, busy.candidate), strict=True))
        assert times["tf_gpu"] > 0 and math.isnan(times["tf_cpu_base"])


def test_what_differs_is_no_caveat_where_it_is_said() -> None:
    text = Shown.of(compared_runs("tf_gpu", "tf_cpu_base"), "overview", short=True).to("table", width=10_000)
    answer, _, caveats = text.partition("Caveats (")
    assert answer.count("the kind of device alone changes times") == 1
    assert "one capture is counted 2 times" in caveats and "Device type" not in caveats


def test_two_captures_of_one_program_are_not_called_different() -> None:
    found = answer.verdict(pair_of("filters_16_8", "filters_16_8_again"))
    assert (found.badge, found.tone) == ("? inconclusive", "neutral")
    assert found.headline.startswith("Inconclusive: `B` vs `A`")
    assert "captures per side would measure how much they vary" in " ".join(found.basis)
