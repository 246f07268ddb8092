"""Small files that a stranger could make to be dear to read or compare; `n` is how much there is of what is dear."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.hlo.builder import F32, Instruction, computation, instruction, parameter, program, shapes
from tests.xspace_builder import U64, Event, Ref, chunk, event, integer, line, meta, plane, space

STEPS = 3
FEW = 2
"""Long names."""
WORDS, OPERANDS, LEVELS = 8, 40, 100
_LETTERS = str.maketrans("0123456789", "ghijklmnop")
_LAUNCH = "regs:16 static_shared:0 dynamic_shared:0 grid:1,1,1 block:64,1,1 occ_pct:50"


def running(ops: Sequence[str], kernels: Sequence[str] = (), types: Sequence[str] = ("MatMul",)) -> bytes:
    """A profile of steps in which all of these run, one after the other; the ops' types take turns."""
    host: list[Event] = []
    device: list[Event] = []
    length = 20 * (len(ops) + len(kernels)) + 100
    for step in range(STEPS):
        begin = step * length
        host.append(event("train", begin, length - 10, _r=1, step_num=step))
        for i, op in enumerate(ops):
            host.append(event(f"{op}:{types[i % len(types)]}", begin + 10 + 20 * i, 10 + i % 7))
        for i, kernel in enumerate(kernels):
            details = {"tf_op": f"model/{i}:MatMul", "kernel_details": Ref(_LAUNCH)}
            device.append(event(kernel, begin + 10 + 20 * (len(ops) + i), 10 + i % 7, details))
    planes = [plane("/host:CPU", line("python", *host, id=1), id=1)]
    return space(*planes, *([plane("/device:GPU:0", line("Stream #7(Compute)", *device, id=7))] if device else []))


def compiled(*programs: tuple[Sequence[Instruction], bytes], ran: Sequence[str] = ()) -> bytes:
    """A profile with these programs: instructions, of which those `ran` or else the last one, and further fields of the
    module."""
    device, entries = [], []
    for number, (instructions, others) in enumerate(programs, start=1):
        made = program(
            computation(1, *instructions), name=f"jit_{number}", others=integer(5, number) + integer(6, 1) + others
        )
        entries.append(event(meta(f"jit_{number}({number})", "", {"Hlo Proto": made}), 0, 0))
        for name in ran or [instructions[-1].name]:
            stats = {"hlo_op": name, "hlo_module": f"jit_{number}", "program_id": number}
            device += [event("kernel", 1000 * len(device) + 100 * i, 50, stats) for i in range(STEPS)]
    return space(
        plane("/device:GPU:0", line("Stream #7(Compute)", *device, id=7)), plane("/host:metadata", line("m", *entries))
    )


def _long(n: int, side: str) -> bytes:
    """Names of `n` words, levels, arguments and brackets, of which the last word is of this side alone."""
    words = [f"{word}x{n}" for word in range(n)]
    ops = [separator.join([*words, f"{side}{i}"]) for separator in "_/," for i in range(FEW)]
    kernels = [f"void k<{', '.join([*words, side])}>(int)", f"void {'k<' * n}{side}{'>' * n}(int)"]
    return running(ops, kernels)


def _distinct(n: int, side: str) -> bytes:
    """Names of words that no other name has, without digits, which would not distinguish them."""
    words = [f"{side}{n}{number}".translate(_LETTERS) for number in range(n * WORDS)]
    names = ["_".join(words[i : i + WORDS]) for i in range(0, len(words), WORDS)]
    return running(names, names)


def _operands(n: int) -> bytes:
    listed = [f"p{i}" for i in range(OPERANDS)]
    given = [parameter(name, F32[8], number) for number, name in enumerate(listed)]
    return compiled(([*given, *(instruction(f"t.{i}", "custom-call", F32[8], *listed) for i in range(n))], b""))


def _donated(n: int) -> bytes:
    """All parameters have the number of those that are donated."""
    entry = chunk(1, integer(2, 0) + chunk(1, b"\x01") + integer(4, 2))
    given = [parameter(f"p{i}", F32[8]) for i in range(n)]
    return compiled(([*given, instruction("out", "negate", F32[8], "p0")], chunk(8, entry * n)))


def _large_shapes(n: int) -> bytes:
    """All operands are one tuple of arrays of many dimensions."""
    large = shapes(*[F32[(2**60,) * 64]] * WORDS)
    used = [instruction(f"t.{i}", "custom-call", F32[8], *["p"] * OPERANDS) for i in range(n)]
    return compiled(([parameter("p", large), *used], b""))


def _one_source(n: int, side: str) -> bytes:
    """Instructions of other names on each side that compute the same op."""
    source = chunk(7, chunk(2, "jit(f)/add"))
    names = [f"{side}.{i}" for i in range(n)]
    added = [instruction(name, side, F32[8], "p", others=source) for name in names]
    return compiled(([parameter("p", F32[8]), *added], b""), ran=names)


def _deep(n: int, side: str) -> bytes:
    """Names of many scopes, of ops that are fused on one side."""
    types = ("MatMul", "_FusedMatMul" if side == "before" else "Relu")
    scope = "/".join(f"{side}_{level}" for level in range(LEVELS))
    return running([f"{scope}/layer_{i}" for i in range(n)], types=types)


def _pipelines(n: int) -> bytes:
    """Each pipeline is of two iterators, of which no other has the names."""
    host: list[Event] = []
    for step in range(STEPS):
        begin = step * (20 * n + 100)
        host.append(event("train", begin, 20 * n + 90, _r=1, step_num=step))
        for i in range(n):
            top, below = U64(2 * i + 1), U64(2 * i + 2)
            host.append(event(f"Iterator::Root{i}", begin + 10 + 20 * i, 15, id=top))
            host.append(event(f"Iterator::Root{i}::Map", begin + 12 + 20 * i, 10, id=below, parent_id=top))
    return space(plane("/host:CPU", line("python", *host, id=1), id=1))


def _programs(n: int) -> bytes:
    return compiled(
        *([([parameter("p", F32[8]), instruction("out", "negate", F32[8 + i], "p")], b"") for i in range(n)])
    )


def _devices(n: int) -> bytes:
    """Devices of one kernel and of streams without any."""
    empty = [line(f"Stream #{i}(Compute)", id=i) for i in range(LEVELS)]
    ran = line("Stream #99(Compute)", event("kernel", 0, 50, {"tf_op": "a:B"}), id=99)
    return space(*[plane(f"/device:GPU:{i}", *empty, ran) for i in range(n)])


SHAPES: dict[str, Callable[[int, str], bytes]] = {
    "long names": _long,
    "one name": lambda n, _side: running(["model/MatMul"] * n, ["kernel"] * n),
    "distinct names": _distinct,
    "tiny programs": lambda n, _side: _programs(n),
    "lists of operands": lambda n, _side: _operands(n),
    "donated parameters": lambda n, _side: _donated(n),
    "large shapes": lambda n, _side: _large_shapes(n),
    "one source op": _one_source,
    "deep names": _deep,
    "pipelines": lambda n, _side: _pipelines(n),
    "devices": lambda n, _side: _devices(n),
}
