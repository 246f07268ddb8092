"""What JAX records on a GPU of many compiled programs that take turns: kernels that name their instruction, and the
programs themselves in the file, each some 300 KB of instructions of which a part runs.
"""

from __future__ import annotations

import numpy as np

from benchmarks.recording import Described, Plane, Recording, Step, StepBuilder, message, number, varint

_VARIANTS = 2
_FUSIONS = 350
_RUN = 150
"""So many fusions a program has, and so many of them run."""
_LINE = "Stream #14(Compute)"
_MEAN_NS, _GAP_NS = 8_000, 200
_F32 = 11
_SOURCE = "train/model.py"
_FUSED = ("multiply", "add", "tanh", "subtract")


def recording(seed: int, programs: int) -> Recording:
    """A recording of so many programs."""
    rng = np.random.default_rng(seed)
    host = Plane("/host:CPU", ("main",))
    metadata = Plane("/host:metadata", (), described={_name(p): Described("", _program(p)) for p in range(programs)})
    for name in metadata.described:
        _ = metadata.event_names[name]
    details = {"compute_cap_major": 9, "compute_cap_minor": 0}
    planes = (host, Plane("/device:GPU:0", (_LINE,), details), metadata)
    return Recording(planes, tuple(_step(planes, programs, rng) for _ in range(_VARIANTS)))


def _name(program: int) -> str:
    return f"jit_stage_{program}({program + 1})"


def _step(planes: tuple[Plane, ...], programs: int, rng: np.random.Generator) -> Step:
    """Every program once, kernel after kernel."""
    builder, at = StepBuilder(planes), 10_000
    for program in range(programs):
        module = f"jit_stage_{program}"
        builder.add(0, f"PjitFunction({module[4:]})", at - 5_000, at)
        for i in range(_RUN):
            duration = int(rng.exponential(_MEAN_NS)) + 500
            stats = {"hlo_op": f"fusion.{i}", "hlo_module": module, "program_id": program + 1}
            builder.add(1, f"fusion_{i}", at, at + duration, **stats)
            at += duration + _GAP_NS
    return builder.build(at + 10_000)


def _program(program: int) -> dict[str, int | float | str | bytes]:
    """The stat that holds a program: fusions one after the other, each with a computation of its own."""
    width = 128 * (1 + program % 7)
    shape = number(2, _F32) + message(3, _varints(1024, width)) + message(5, message(1, _varints(1, 0)))
    body = [_instruction(1, "param.0", "parameter", shape, parameter=0)]
    computations = []
    for i in range(_FUSIONS):
        first = 1_000 + 10 * i
        computations.append(message(3, _fused(i, first, shape)))
        scope = f"jit(stage_{program})/layers_{i // 10}/{_FUSED[i % len(_FUSED)]}"
        body.append(
            _instruction(
                2 + i, f"fusion.{i}", "fusion", shape, operands=(1 + i, 1), called=(2 + i,), scope=scope, line=40 + i
            )
        )
    entry = message(1, b"main") + b"".join(body) + number(5, 1) + number(6, 1 + _FUSIONS)
    module = message(1, f"jit_stage_{program}".encode()) + message(2, b"main")
    module += b"".join(computations) + message(3, entry) + number(5, program + 1) + number(6, 1)
    return {"Hlo Proto": message(1, module)}


def _fused(index: int, first: int, shape: bytes) -> bytes:
    """A fused computation: some operations on two parameters."""
    body = [_instruction(first + n, f"p.{index}.{n}", "parameter", shape, parameter=n) for n in range(2)]
    for n, opcode in enumerate(_FUSED, 2):
        operands = (first + n - 1,) if opcode == "tanh" else (first + n - 1, first)
        body.append(_instruction(first + n, f"{opcode}.{index}", opcode, shape, operands=operands))
    root = first + 1 + len(_FUSED)
    return message(1, f"fused_computation.{index}".encode()) + b"".join(body) + number(5, 2 + index) + number(6, root)


def _instruction(
    own: int,
    name: str,
    opcode: str,
    shape: bytes,
    *,
    operands: tuple[int, ...] = (),
    called: tuple[int, ...] = (),
    parameter: int = 0,
    scope: str = "",
    line: int = 0,
) -> bytes:
    parts = message(1, name.encode()) + message(2, opcode.encode()) + message(3, shape)
    if scope:
        parts += message(7, message(2, scope.encode()) + message(3, _SOURCE.encode()) + number(4, line))
    if opcode == "parameter":
        parts += number(9, parameter)
    if called:
        parts += message(11, b"kLoop")
    parts += number(35, own) + message(36, _varints(*operands)) + message(38, _varints(*called))
    return message(2, parts)


def _varints(*values: int) -> bytes:
    return b"".join(map(varint, values))
