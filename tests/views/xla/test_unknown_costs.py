"""What is said of instructions without a known cost: which, and how much of the time they take."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compare.test_utilization import run, steps, training
from tests.frames.test_hlo_ops import gpu, kernel, metadata
from tests.hlo.builder import BF16, computation, instruction, program
from tests.views.flat import only_pair, texts
from tests.xspace_builder import event, line, plane
from tfcompare import compare
from tfcompare.views.ops import view as op_stats
from tfcompare.views.steps import view as overview
from tfcompare.views.xla import view as xla
from tfcompare.views.xla.figures import unknown_costs_sentence, unknown_costs_sentence_on

CALL = instruction("call.1", "custom-call", BF16[8])
FFT = instruction("fft.2", "fft", BF16[8], "call.1")
CALLS = program(computation(1, CALL, FFT, instruction("add.3", "add", BF16[8], "call.1", "fft.2")), name="jit_f")


def test_the_share_of_the_time_and_the_instructions_are_named_where_rates_are_given(tmp_path: Path) -> None:
    known, lacking = training(tmp_path / "a", 100), training(tmp_path / "b", 100, ops=("dot.1", "unknown.9"))
    alone, pair, mirrored = (only_pair(compare(*runs)) for runs in ((lacking,) * 2, (known, lacking), (lacking, known)))
    assert (
        unknown_costs_sentence(alone)
        == "50.0 % of the device time of compiled programs has no known FLOPs: `unknown.9`."
    )
    assert (
        unknown_costs_sentence(pair)
        == "50.0 % of the device time of compiled programs in B has no known FLOPs: `unknown.9`."
    )
    both = only_pair(compare(lacking, training(tmp_path / "c", 100, ops=("unknown.9", "dot.1", "dot.1", "dot.1"))))
    assert unknown_costs_sentence(both) == (
        "50.0 % of the device time of compiled programs in A and 25.0 % in B has no known FLOPs: `unknown.9`."
    )
    assert unknown_costs_sentence(mirrored) == unknown_costs_sentence(pair).replace(" B ", " A ")
    assert unknown_costs_sentence(only_pair(compare(known, known))) == ""
    for view in (overview.VIEW, op_stats.VIEW, xla.VIEW):
        assert unknown_costs_sentence(pair) in texts(view, pair)


@pytest.mark.parametrize(
    ("ops", "said"),
    [
        ({"call.1": 2, "add.3": 8}, "20.0 % of the device time of compiled programs has no known FLOPs: `call.1`."),
        ({"fft.2": 3, "call.1": 1, "add.3": 6}, "40.0 % … has no known cost: `fft.2`, `call.1`."),
        ({"call.1": 0.001, "add.3": 10}, ""),
    ],
)
def test_what_is_not_known(tmp_path: Path, ops: dict[str, float], said: str) -> None:
    kernels = [kernel("k", 200 * i + 20 * at, took, op) for i in range(20) for at, (op, took) in enumerate(ops.items())]
    pair = only_pair(compare(*[run(tmp_path, steps(100), gpu(*kernels), metadata(CALLS, jit_f=7))] * 2))
    found = unknown_costs_sentence(pair)
    assert found == said.replace("…", "of the device time of compiled programs")
    assert unknown_costs_sentence_on(pair, pair.instructions()) == found


def test_on_a_cpu_it_is_no_device_time(tmp_path: Path) -> None:
    ffts = [
        event(op, 20 * i, 10, hlo_op=op, hlo_module="jit_f", program_id=7) for i, op in enumerate(("fft.2", "add.3"))
    ]
    pair = only_pair(compare(*[run(tmp_path, plane("/host:CPU", line("main", *ffts)), metadata(CALLS, jit_f=7))] * 2))
    assert unknown_costs_sentence(pair) == "50.0 % of the time of compiled programs has no known cost: `fft.2`."
