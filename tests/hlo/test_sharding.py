"""Shardings as XLA prints them, and what differs where only they do."""

from __future__ import annotations

import pytest

from tests.frames.tables import host, run_with
from tests.hlo.builder import F32, computation, instruction, metadata, program
from tests.protobufs import messages
from tests.xspace_builder import chunk, event, integer, line, plane
from tfcompare.errors import NotAProfile
from tfcompare.hlo.expression import SHARDING, digests, expressions, sharding_text
from tfcompare.hlo.program import read_program
from tfcompare.views.steps.what_differs import differences

xla_data_pb2 = messages("compiler.xla.xla_data_pb2")
OpSharding = xla_data_pb2.OpSharding
ROWS = OpSharding(type=3, tile_assignment_dimensions=[2, 1], tile_assignment_devices=[0, 1])
COLUMNS = OpSharding(type=3, tile_assignment_dimensions=[1, 2], tile_assignment_devices=[0, 1])


@pytest.mark.parametrize(
    ("sharding", "text"),
    [
        (OpSharding(), "replicated"),
        (OpSharding(type=1, tile_assignment_devices=[3]), "maximal device=3"),
        (OpSharding(type=4), "manual"),
        (OpSharding(type=77), "sharding of type 77"),
        (ROWS, "devices=[2,1]0,1"),
        (
            OpSharding(type=3, tile_assignment_dimensions=[2, 2], iota_reshape_dims=[4], iota_transpose_perm=[0]),
            "devices=[2,2]<=[4]",
        ),
        (
            OpSharding(
                type=3,
                tile_assignment_dimensions=[1, 2, 2],
                iota_reshape_dims=[2, 2],
                iota_transpose_perm=[1, 0],
                replicate_on_last_tile_dim=True,
            ),
            "devices=[1,2,2]<=[2,2]T(1,0) last_tile_dim_replicate",
        ),
        (
            OpSharding(type=3, tile_assignment_dimensions=[2, 2], iota_reshape_dims=[4], last_tile_dims=[4]),
            "devices=[2,2]<=[4] last_tile_dims={manual}",
        ),
        (OpSharding(type=2, tuple_shardings=[ROWS, OpSharding()]), "{devices=[2,1]0,1}, {replicated}"),
        (OpSharding(type=2, tuple_shardings=[OpSharding()] * 21), "{replicated}, " * 20 + "…"),
        (
            OpSharding(type=3, tile_assignment_dimensions=[2, 1], metadata=[xla_data_pb2.OpMetadata(source_line=7)]),
            "devices=[2,1]",
        ),
    ],
)
def test_a_sharding_is_written_as_xla_does(sharding: object, text: str) -> None:
    assert sharding_text(memoryview(sharding.SerializeToString())) == text  # type: ignore[attr-defined]


def test_a_damaged_sharding_is_refused_and_one_without_end_is_cut() -> None:
    with pytest.raises(NotAProfile):
        sharding_text(memoryview(b"\x1a\x7f\x01"))
    nested = OpSharding()
    for _ in range(50):
        nested = OpSharding(type=2, tuple_shardings=[nested])
    assert sharding_text(memoryview(nested.SerializeToString())) == "{{{sharding of type 2}}}"


def with_sharding(sharding: object) -> bytes:
    divided = chunk(SHARDING, sharding.SerializeToString())  # type: ignore[attr-defined]
    rows = instruction("x", "parameter", F32[8, 8], others=integer(9, 0) + divided)
    return program(computation(1, rows, instruction("sum", "negate", F32[8, 8], "x")), others=integer(6, 1))


def test_instructions_tell_their_sharding_and_differ_by_it() -> None:
    ours, theirs = (read_program(memoryview(with_sharding(sharding))) for sharding in (ROWS, COLUMNS))
    assert expressions(ours, ours.every)[0].endswith("sharding={devices=[2,1]0,1}")
    assert "sharding" not in expressions(ours, ours.every)[1]
    (first, second), (other, same) = (digests(one, one.every) for one in (ours, theirs))
    assert first != other and second == same


def test_runs_differ_in_how_their_inputs_are_divided() -> None:
    def recorded(sharding: object):
        ran = event("sum", 0, 5, hlo_op="sum", program_id=7, hlo_module="jit_f")
        device = plane("/device:GPU:0", line("Stream #1(Compute)", ran, id=1))
        return run_with(device, metadata({"jit_f(7)": with_sharding(sharding)}), host(event("x", 0, 1)))

    ours, theirs = recorded(ROWS), recorded(COLUMNS)
    found = {one.label: (one.baseline, one.candidate) for one in differences(ours, theirs, [])}
    assert found == {"Sharding of jit_f": ("devices=[2,1]0,1", "devices=[1,2]0,1")}
    assert differences(ours, ours, []) == []
