"""An instruction as text, in XLA's notation without layouts."""

from __future__ import annotations

from tfcompare.hlo.program import Instruction, Program
from tfcompare.xspace.texts import text_of

_FUSION_KIND, _TARGET = 11, 28
_MOST_SHOWN = 50


def expression(program: Program, instruction: Instruction) -> str:
    """The instruction with its result, operands and what it calls.

    For instance `%sum = f32[8] fusion(f32[8,4] %x), kind=kInput, calls=%fused_computation`. Long ones are shortened.
    Raises `NotAProfile` for damage.
    """
    operands = [_operand(one) for one in program.operands(instruction)[:_MOST_SHOWN]]
    left_out = ["…"] if len(instruction.operands) > _MOST_SHOWN else []
    text = f"%{instruction.name} = {_shape(instruction)} {instruction.opcode}({', '.join([*operands, *left_out])})"
    if kind := instruction.text(_FUSION_KIND):
        text += f", kind={kind}"
    called = [program.computations[one].name for one in instruction.called[:_MOST_SHOWN] if one in program.computations]
    if called:
        text += f", calls={', '.join(f'%{name}' for name in called)}"
    if target := instruction.text(_TARGET):
        text += f', custom_call_target="{target}"'
    return text_of(memoryview(text.encode("utf-8", "replace")))


def signature(instruction: Instruction) -> str:
    """The instruction with its result, without its operands, for instance `%sum = f32[8] fusion`."""
    return text_of(memoryview(f"%{instruction.name} = {_shape(instruction)} {instruction.opcode}".encode()))


def _operand(instruction: Instruction | None) -> str:
    return f"{_shape(instruction)} %{instruction.name}" if instruction is not None else "?"


def _shape(instruction: Instruction) -> str:
    """The type and dimensions of the instruction's value; nested tuples are shown as one."""
    arrays = instruction.arrays
    shown = [*map(str, arrays[:_MOST_SHOWN]), *(["…"] if len(arrays) > _MOST_SHOWN else [])]
    return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"
