"""`hlo_memory` of the corpus, held against xprof's `memory_viewer` of every program, and of one written by hand."""

from __future__ import annotations

import pytest

from tests import xprof_oracle
from tests.frames.tables import run_with, thorough_but
from tests.hlo.builder import BF16, F32, S32, computation, instruction, metadata, program, shapes
from tests.hlo.test_buffers import LIVE_OUT, allocation, logical
from tests.profiles import loaded_run, run_path
from tests.xspace_builder import chunk
from tfcompare.views.xla.memory import over_program_order

RUNS = ["jax_elementwise", "jax_conv_08", "jax_conv_legacy", "jax_tpu", "jax_filters_16_8", "tensorflow_filters_16_8"]
UNTRACED = ("jit__multi_slice(13)", "a_inference_train_step")
"""Programs with temporary memory that is in no trace: part of our peak, and only of the total in `memory_viewer`."""


@pytest.mark.parametrize("name", thorough_but(RUNS))
def test_live_bytes_and_the_peak_of_every_program_are_those_of_xprof(name: str) -> None:
    (file,) = run_path(name).rglob("*.xplane.pb")
    rows = loaded_run(name).table("hlo_memory").query("memory_space == 0")
    peaks = rows[rows["is_live_at_peak"]].groupby("program")["size_bytes"].sum()
    theirs = xprof_oracle.memory_viewer(file)
    assert set(peaks.index) == set(theirs) and len(theirs) >= 1
    for name_there, one in theirs.items():
        order = over_program_order(rows, {name_there}, 0, points=10**6)
        peak = one["totalBufferAllocationMib" if name_there.startswith(UNTRACED) else "peakHeapMib"] * 2**20
        assert peaks[name_there] == order["live_bytes"].max() == peak
        if "heapSizes" in one:
            every = range(1, len(one["heapSizes"]))
            live = order.set_index("position")["live_bytes"].reindex(every, method="ffill")
            assert live.tolist() == [mib * 2**20 for mib in one["heapSizes"][1:]], name_there
            assert set(order["positions"]) == {len(every)}


def test_damaged_programs_cost_a_remark() -> None:
    one = program(computation(0, instruction("p", "parameter", F32[8])))
    protos = {"f(1)": b"\x0b", "g(2)": one + chunk(3, logical(0, 32) + allocation(32, 0)), "h(3)": b"\x0b"}
    run = run_with(metadata(protos))
    assert list(run.table("hlo_memory")["program"]) == ["g(2)"]
    expected = "the memory of the XLA program f(1) (and 1 more) is unknown: at its byte 0 expected"
    assert [text for text in run.remarks if text.startswith(expected)]


def test_the_buffers_of_a_program() -> None:
    one = computation(
        0,
        instruction("p", "parameter", F32[8]),
        instruction("sort", "sort", shapes(BF16[4], S32[4]), "p", others=chunk(7, chunk(2, "jit(f)/sort"))),
    )
    parts = [logical(0, 32), logical(1, 8, output=chunk(3, b"\0")), logical(7, 5)]
    parts += [allocation(32, 0, flag=LIVE_OUT), allocation(8, 1), allocation(5, 7)]
    proto = program(one, name="jit_f") + chunk(3, b"".join(parts))
    table = run_with(metadata({"jit_f(3)": proto, "jit_f(4)": proto})).table("hlo_memory")
    assert list(table["program"]) == ["jit_f(3)"] * 3 + ["jit_f(4)"] * 3
    columns = ["hlo_op", "output_index", "kind", "shape", "op_name", "size_bytes", "is_live_at_peak"]
    assert table.head(3)[columns].values.tolist() == [
        ["p", "", "output", "f32[8]", "", 32, True],
        ["sort", "0", "temporary", "bf16[4]", "jit(f)/sort", 8, True],
        ["", "", "temporary", "", "", 5, True],
    ]
