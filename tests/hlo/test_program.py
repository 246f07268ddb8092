"""Programs out of protos, and shardings as XLA prints them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.frames.tables import host, run_with
from tests.hlo.builder import BF16, F32, S32, computation, instruction, metadata, parameter, program, read, shapes
from tests.hlo.test_cost import NHWC
from tests.protobufs import messages
from tests.xspace.fuzz_inputs import hlo_proto
from tests.xspace_builder import chunk, event, fixed32, fixed64, integer, line, plane
from tfcompare.errors import NotAProfile
from tfcompare.hlo.expression import SHARDING, digests, expressions, sharding_text
from tfcompare.hlo.names import function_name, plain_instruction, plain_program
from tfcompare.hlo.program import Program, read_program
from tfcompare.hlo.shapes import mask_of, size_of_text
from tfcompare.hlo.stack_frames import MOST_FRAMES
from tfcompare.views.steps.what_differs import differences

BF16_TYPE, F32_TYPE, S32_TYPE = BF16.number, F32.number, S32.number


def row(found: Program, name: str) -> int:
    return int(found.rows_named([name])[0])


def ops_of(proto: bytes) -> dict[str, str]:
    found = read_program(memoryview(proto))
    return dict(zip(found.names(found.every), found.tf_ops(found.every), strict=True))


def test_instructions_of_all_computations_by_name() -> None:
    one = hlo_proto(("dot.1", "MatMul", "model/dense/MatMul"), ("copy.2", "", ""), ("add.3", "", "jit(f)/add"))
    other = chunk(1, chunk(3, chunk(2, chunk(1, "p0")) + integer(5, 7)))
    expected = {"dot.1": "model/dense/MatMul:MatMul", "copy.2": "", "add.3": "jit(f)/add:", "p0": ""}
    assert ops_of(one + other) == expected
    assert ops_of(b"") == {}


def test_fields_of_all_forms_are_skipped() -> None:
    others = b"".join([integer(1, 5), fixed64(2, b"12345678"), fixed32(3, b"1234"), chunk(9, b"\xff" * 200)])
    fields = others + chunk(1, "dot") + others + chunk(7, others + chunk(2, "é\xff"))
    proto = others + chunk(1, others + chunk(3, others + chunk(2, fields)))
    assert ops_of(proto) == {"dot": "é\xff:"}


DAMAGE = [
    (chunk(1, b"\x0a\x7f"), "expected a field that ends within its HLO module, found one that runs past its end"),
    (b"\x0a", "expected a number in an HLO module, found the end of its message, or more than ten bytes"),
    (b"\x08" + b"\xff" * 11, "expected a number in an HLO module"),
    (b"\x09\1\2", "expected a field that ends within its HLO module"),
    (b"\x0b", "expected the beginning of a field of an HLO module, found bytes that begin none"),
]


@pytest.mark.parametrize(("damaged", "message"), DAMAGE)
def test_damage_is_reported(damaged: bytes, message: str) -> None:
    with pytest.raises(NotAProfile, match=message):
        read_program(memoryview(damaged))


def test_damage_within_an_instruction_is_reported_when_it_is_read() -> None:
    found = read_program(memoryview(chunk(1, chunk(3, chunk(2, chunk(1, "x") + chunk(3, b"\x0b"))))))
    with pytest.raises(NotAProfile, match="bytes that begin none"):
        found.shape_of(row(found, "x"))


def test_what_an_instruction_makes_uses_and_calls() -> None:
    metadata = chunk(1, "add") + chunk(2, "jit(f)/add") + chunk(3, "model.py") + integer(4, 12)
    made = instruction("sum", "fusion", F32[2, 3], "p", "q", calls=(1, 2), others=chunk(7, metadata))
    found = read(computation(5, parameter("p", BF16[2, 3]), parameter("q", S32.scalar), made))
    one, at = found.rows_named(["sum"]), row(found, "sum")
    assert found.opcodes[found.opcode[at]] == "fusion"
    assert (found.called.of(at), found.ids.tolist()) == ([-1, -1], [5])
    assert (found.tf_ops(one), found.sources(one)) == (["jit(f)/add:add"], ["model.py:12"])
    assert found.names(np.array(found.operands.of(at))).tolist() == ["p", "q"]
    arrays = found.shape_of(at).arrays
    assert [(a.dimensions, a.elements, a.size_bytes) for a in arrays] == [((2, 3), 6, 24)]
    assert found.types(one).tolist() == [mask_of({F32_TYPE, BF16_TYPE, S32_TYPE})]


def test_a_fusion_without_an_op_comes_from_the_last_one_in_it() -> None:
    def named(op: str) -> bytes:
        return chunk(7, chunk(2, op))

    fused = computation(
        1,
        instruction("x", "negate", F32[8], others=named("first/neg")),
        instruction("y", "tanh", F32[8], "x", others=named("second/tanh")),
        instruction("root", "copy", F32[8], "y"),
    )
    callers = [
        instruction("own", "fusion", F32[8], calls=(1,), others=named("third/add")),
        instruction("from.1", "fusion", F32[8], calls=(1,)),
        instruction("from.2", "fusion", F32[8], calls=(2, 1)),
        instruction("none", "fusion", F32[8], calls=(2, 9)),
        instruction("call", "call", F32[8], calls=(1,)),
    ]
    found = read(fused, computation(2, instruction("z", "copy", F32[8])), computation(3, *callers))
    rows = found.rows_named([one.name for one in callers])
    assert found.names(found.origins(rows)).tolist() == ["own", "y", "y", "none", "call"]


def test_an_instruction_as_text() -> None:
    fused = computation(3, parameter("x", F32[8, 4]))
    made = instruction("sum", "fusion", F32[8], "p", "lost", calls=(3, 4), others=chunk(11, "kInput"))
    call = instruction("call", "custom-call", shapes(F32[8], S32.scalar), "sum", others=chunk(28, "lib$f"))
    wide = instruction("wide", "tuple", shapes(*[S32.scalar] * 60), *["p"] * 60)
    found = read(fused, computation(5, parameter("p", F32[8, 4]), made, call, wide))
    texts = expressions(found, found.rows_named(["sum", "call", "wide"]))
    assert texts[:2] == [
        "%sum = f32[8] fusion(f32[8,4] %p, ?), kind=kInput, calls=%computation.3",
        '%call = (f32[8], s32[]) custom-call(f32[8] %sum), custom_call_target="lib$f"',
    ]
    assert texts[2].startswith("%wide = (s32[], ") and texts[2].endswith("%p, …)")


def test_operands_are_those_of_the_same_computation() -> None:
    inner = computation(1, instruction("alone", "negate", F32[2], "p"))
    found = read(inner, computation(2, parameter("p", BF16[2])))
    assert found.operands.of(row(found, "alone")) == [-1]
    assert found.types(found.rows_named(["alone"])).tolist() == [mask_of({F32_TYPE})]


def test_a_source_line_may_be_given_by_a_stack_frame() -> None:
    frames = chunk(1, "a.py") + chunk(1, "b.py") + chunk(3, integer(1, 1) + integer(3, 7))
    frames += chunk(3, integer(1, 2) + integer(3, 9)) + chunk(4, integer(1, 1)) + chunk(4, integer(1, 2))
    calls = [instruction(f"i{n}", "negate", F32[2], others=chunk(7, integer(15, n))) for n in (0, 1, 2, 3)]
    proto = program(computation(1, *calls), others=chunk(17, frames))
    found = read_program(memoryview(proto))
    assert found.sources(found.every) == ["", "a.py:7", "b.py:9", ""]


def with_frames(frames: list[tuple[int, int]], ids: list[int]) -> Program:
    """Instructions of these stack frames; a frame is a location and the frame that called it. The locations: `run` in
    `a.py`, line 7; `b.py`, line 9, in no function; `f`, in no file; what is not there."""
    content = chunk(1, "a.py") + chunk(1, "b.py") + chunk(2, "run") + chunk(2, "f")
    for file, function, number in ((1, 1, 7), (2, 0, 9), (0, 2, 3), (9, 9, 9)):
        content += chunk(3, integer(1, file) + integer(2, function) + integer(3, number))
    for location, parent in frames:
        content += chunk(4, integer(1, location) + integer(2, parent))
    calls = [instruction(f"i{n}", "negate", F32[2], others=chunk(7, integer(15, n))) for n in ids]
    return read_program(memoryview(program(computation(1, *calls), others=chunk(17, content))))


def test_a_stack_has_the_outermost_call_first_and_what_is_known_of_each() -> None:
    found = with_frames([(1, 0), (2, 1), (3, 2), (4, 3), (8, 2), (2, 99)], [3, 1, 4, 5, 0, 6, 7, 1 << 63])
    whole = "run (a.py:7)\nb.py:9\nf"
    outer = "run (a.py:7)\nb.py:9"
    assert found.stacks(found.every) == [whole, "run (a.py:7)", whole, outer, "", "b.py:9", "", ""]


def test_frames_that_call_each_other_end_and_only_the_outer_ones_of_many_are_left_out() -> None:
    loop = with_frames([(1, 2), (2, 1)], [1])
    (text,) = loop.stacks(loop.every)
    assert text.split("\n") == ["…", *["b.py:9", "run (a.py:7)"] * (MOST_FRAMES // 2)]
    chain = with_frames(
        [(2, 0), *((1, parent) for parent in range(1, MOST_FRAMES + 1))], [MOST_FRAMES, MOST_FRAMES + 1]
    )
    longest, longer = (text.split("\n") for text in chain.stacks(chain.every))
    assert longest[0] == "b.py:9" and len(longest) == MOST_FRAMES
    assert longer[0] == "…" and longer[1:] == ["run (a.py:7)"] * MOST_FRAMES


def test_tuples_within_tuples_are_read_in_order_however_deep() -> None:
    shape = shapes(F32[1], shapes(S32[2], BF16[3]), F32[4])
    for _ in range(3000):
        shape = shapes(shape)
    found = read(computation(1, instruction("deep", "tuple", shape)))
    assert [array.dimensions for array in found.shape_of(row(found, "deep")).arrays] == [(1,), (2,), (3,), (4,)]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (shapes(*[F32.scalar] * (1 << 16)), "an HLO shape of at most 65,536 arrays"),
        (F32[tuple(range(65))], "at most 64 numbers in a field"),
    ],
)
def test_absurd_shapes_are_refused(shape: bytes, message: str) -> None:
    found = read(computation(1, instruction("x", "negate", shape)))
    with pytest.raises(NotAProfile, match=message):
        found.shape_of(row(found, "x"))


def test_sizes_of_absurd_dimensions_stay_numbers() -> None:
    found = read(computation(1, instruction("x", "negate", F32[tuple([1 << 62] * 64)])))
    assert found.shape_of(row(found, "x")).arrays[0].elements == 1 << 60


def test_bits_of_packed_elements_count() -> None:
    four_bit, complex_128 = integer(2, 21) + chunk(3, b"\x05"), integer(2, 18)
    packed = integer(2, 2) + chunk(3, b"\x05") + chunk(5, integer(7, 4))
    found = read(computation(1, instruction("x", "tuple", shapes(four_bit, packed, complex_128))))
    assert [array.size_bytes for array in found.shape_of(row(found, "x")).arrays] == [3, 3, 16]


def made(opcode: str, others: bytes = b"", module: bytes = b"") -> Program:
    """A program of one instruction with these further fields, and of its module."""
    one = instruction("made", opcode, F32[8], others=others)
    return read_program(memoryview(program(computation(1, one), others=integer(6, 1) + module)))


def digest_of(opcode: str, others: bytes = b"", module: bytes = b"") -> str:
    found = made(opcode, others, module)
    return digests(found, found.every)[0]


def as_text(opcode: str, others: bytes = b"", module: bytes = b"") -> str:
    found = made(opcode, others, module)
    return expressions(found, found.every)[0]


EMPTY_MESSAGE = b"\x0a\x00"


@pytest.mark.parametrize(
    ("opcode", "others", "text"),
    [
        ("sort", integer(60, 1), ", is_stable=true"),
        ("convolution", NHWC, ", dim_labels=b01f_01io->b01f"),
        ("convolution", chunk(16, integer(7, 9)), ""),  # there is no such dimension
        ("reduce-precision", integer(18, 5) + integer(19, 10), ", exponent_bits=5, mantissa_bits=10"),
        ("scatter", integer(67, 1), ", indices_are_sorted=true"),
        ("scatter", integer(69, 1), ", unique_indices=true"),
        ("topk", integer(81, 7), ", k=7"),
        ("rng-get-and-update-state", integer(66, 3), ", delta=3"),
        ("all-reduce", integer(71, 1), ", use_global_device_ids=true"),
        *((opcode, integer(field, 1), "") for opcode, field in (("topk", 85), ("rng", 23), ("scan", 94))),
        *((opcode, integer(field, 2), "") for opcode, field in (("rng-bit-generator", 70), ("convolution", 97))),
        ("triangular-solve", chunk(59, integer(2, 1)), ""),
        ("cholesky", chunk(62, integer(1, 1)), ""),
        *((opcode, chunk(field, EMPTY_MESSAGE), "") for opcode, field in (("all-reduce", 92), ("all-reduce", 93))),
        *((opcode, chunk(field, EMPTY_MESSAGE), "") for opcode, field in (("ragged-dot", 90), ("exponential", 91))),
    ],
)
def test_an_attribute_of_what_is_computed_is_in_the_digest_and_shown_if_plain(
    opcode: str, others: bytes, text: str
) -> None:
    assert digest_of(opcode, others) != digest_of(opcode)
    assert as_text(opcode, others) == f"%made = f32[8] {opcode}(){text}"


def test_the_configuration_of_a_custom_call_is_part_of_what_it_computes() -> None:
    def call(target: str, config: str) -> str:
        return digest_of("custom-call", chunk(28, target) + chunk(43, config))

    def gemm(algorithm: int, alpha: int) -> str:
        part = f'{{"selected_algorithm":"{algorithm}","alpha_real":{alpha},"autotune_workspace_size":"{algorithm}"}}'
        return call("__cublas$lt$matmul", f'{{"gemm_backend_config":{part},"reification_cost":[{algorithm}]}}')

    assert call("lapack_strsm_ffi", "{uplo = 76 : ui8}") != call("lapack_strsm_ffi", "{uplo = 85 : ui8}")
    assert gemm(1, alpha=2) == gemm(7, alpha=2) != gemm(7, alpha=3), "the algorithm is chosen by measuring"
    assert call("__cudnn$convForward", "{") == call("__cudnn$convForward", "[]"), "damaged"
    assert call("xla_ffi_python_cpu_callback", "140") == call("xla_ffi_python_cpu_callback", "150"), "an address"
    fusions = [digest_of("fusion", chunk(43, tiles)) for tiles in ("{8}", "{16}")]
    assert fusions[0] == fusions[1], "a fusion computes what its computation says, whatever the tiles"


def test_a_donated_parameter_says_so() -> None:
    entry = integer(2, 0) + chunk(1, b"\x01") + integer(4, 2)
    aliased, given = chunk(8, chunk(1, entry)), chunk(18, chunk(1, integer(1, 0) + chunk(2, b"\x00")))
    assert as_text("parameter", module=aliased).endswith("parameter(), input_output_alias={ {1}: (0, {}, must-alias) }")
    assert as_text("parameter", module=given).endswith("parameter(), buffer_donor={ (0, {0}) }")
    digests_of = {digest_of("parameter", module=module) for module in (b"", aliased, given)}
    assert len(digests_of) == 3
    other = chunk(8, chunk(1, integer(2, 5)))
    assert digest_of("parameter", module=other) == digest_of("parameter"), "another parameter is donated"


@pytest.mark.parametrize(
    ("text", "size"),
    [("bf16[8,128]", 2048), ("f32[]", 4), ("s4[3]", 1.5), ("pred[0,7]", 0), (f"f32[{'9' * 400}]", math.inf)],
)
def test_the_size_of_a_shape_as_text(text: str, size: float) -> None:
    assert size_of_text(text) == size


@pytest.mark.parametrize("text", ["", "f32", "f32[8", "what[8]", "f32[8,-1]", "f32[a]", "(f32[8], f32[8])"])
def test_the_size_of_another_text_is_unknown(text: str) -> None:
    assert math.isnan(size_of_text(text))


MUST = "__XlaMustCompile_true_config_proto_1356_executor_type_1116_.2"


@pytest.mark.parametrize(
    ("program", "plain", "function"),
    [
        ("jit_step(17)", "jit_step", "step"),
        ("jit__psum(9646411105960254074)", "jit__psum", "_psum"),
        ("jit__lambda(34)", "jit__lambda", "<lambda>"),
        ("jit__lambda_", "jit__lambda_", "<lambda>"),
        ("pmap_jit_f", "pmap_jit_f", "jit_f"),
        (f"a_inference_comp_15{MUST}(0)", "inference_comp", "comp"),
        ("a_inference_one_step_on_data_558__.6(62)", "inference_one_step_on_data", "one_step_on_data"),
        (f"a_backward_comp_15{MUST}(0)", "backward_comp", "backward_comp"),
        ("a_inference_comp", "a_inference_comp", "a_inference_comp"),
        ("module", "module", "module"),
        ("", "", ""),
    ],
)
def test_names(program: str, plain: str, function: str) -> None:
    assert (plain_program(program), function_name(program)) == (plain, function)


def test_numbers_at_the_end_of_an_instruction_are_left_out() -> None:
    names = ["fusion.12", "copy.1.2", "negate.remat", "p0", "v1.2x", ""]
    assert list(map(plain_instruction, names)) == ["fusion", "copy", "negate.remat", "p0", "v1.2x", ""]


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
