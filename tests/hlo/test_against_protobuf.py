"""The programs of the corpus, read as the protobuf library reads them."""

from __future__ import annotations

import pytest

from tests.profiles import run_path
from tests.protobufs import hlo_protos, messages
from tfcompare.frames.hlo.programs import Programs
from tfcompare.hlo.program import Program
from tfcompare.xspace import parse


def protos_of(name: str) -> list[tuple[Program, object]]:
    """Each program of the run, and what the protobuf library reads of its bytes."""
    HloProto = messages("compiler.xla.service.hlo_pb2").HloProto  # noqa: N806

    (file,) = run_path(name).rglob("*.xplane.pb")
    space = parse(file.read_bytes())
    programs = Programs(space)
    bytes_of = {int(space.metadata_ids[row]): proto for row, proto in hlo_protos(space).items()}
    assert programs.ids == list(bytes_of)
    return [(programs.program(i), HloProto.FromString(bytes_of[i].tobytes())) for i in programs.ids]  # type: ignore[misc]


def leaves(shape: object) -> list[tuple[int, tuple[int, ...]]]:
    if shape.element_type == 13:  # type: ignore[attr-defined]
        return [leaf for part in shape.tuple_shapes for leaf in leaves(part)]  # type: ignore[attr-defined]
    return [(shape.element_type, tuple(shape.dimensions))]  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["jax_conv_08", "jax_tpu"])
def test_real_programs(name: str) -> None:
    read = protos_of(name)
    assert len(read) >= 4
    for program, proto in read:
        module = proto.hlo_module  # type: ignore[attr-defined]
        assert program.names_of_modules.tolist() == [module.name]
        assert program.ids[program.entry].tolist() == [module.entry_computation_id]
        assert program.ids.tolist() == [computation.id for computation in module.computations]
        assert program.number[program.root].tolist() == [computation.root_id for computation in module.computations]
        theirs = [(c.id, one) for c in module.computations for one in c.instructions]
        columns = (
            program.ids[program.computation].tolist(),
            program.names(program.every).tolist(),
            [program.opcodes[code] for code in program.opcode],
            program.number.tolist(),
            [program.number[program.operands.of(row)].tolist() for row in range(len(program))],
            [program.ids[program.called.of(row)].tolist() for row in range(len(program))],
            program.op_names(program.every).tolist(),
        )
        assert list(zip(*columns, strict=True)) == [
            (
                number,
                other.name,
                other.opcode,
                other.id,
                list(other.operand_ids),
                list(other.called_computation_ids),
                other.metadata.op_name,
            )
            for number, other in theirs
        ]
        for row, source, (_, other) in zip(program.every, program.sources(program.every), theirs, strict=True):
            assert [(array.type, array.dimensions) for array in program.shape_of(row).arrays] == leaves(other.shape)
            metadata = other.metadata
            assert not metadata.source_file or source == f"{metadata.source_file}:{metadata.source_line}"
