"""Profiles of runs with one small XLA program, as bytes and on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.hlo.builder import BF16, F32, Instruction, computation, instruction, metadata, parameter, program
from tests.xspace_builder import chunk, event, integer, line, plane, space


def running(name: str, took_us: float) -> bytes:
    """A run of a program whose every name is `name`."""
    origin = chunk(2, name) + chunk(3, name) + b"\x20\x07"
    made = program(
        computation(
            1, parameter("p", BF16[64, 64]), instruction(name, "negate", BF16[64, 64], "p", others=chunk(7, origin))
        ),
        name=name,
    )
    stats = {"hlo_op": name, "hlo_module": name, "program_id": 7}
    kernels = [event(name, 100 * i, took_us, stats) for i in range(3)]
    compiling = event(f"XlaCompile:#module={name.replace(',', '').replace('#', '')}#", 0, took_us)
    device = plane("/device:GPU:0", line("Stream #1(Kernel)", *kernels, id=1))
    return space(plane("/host:CPU", line("python", compiling)), device, metadata({f"{name}(7)": made}))


def compiling(times: int) -> bytes:
    """A run that compiled `f` that often, for other shapes each time, and ran no instructions."""
    made = {
        f"jit_f({i})": program(computation(1, parameter("x", BF16[8 + i, 64])), name="jit_f", others=integer(6, 1))
        for i in range(times)
    }
    events = [event("backend_compile", 1000 * i, 500) for i in range(times)]
    calls = [event("PjitFunction(f)", 1000 * i, 900) for i in range(times)]
    return space(plane("/host:CPU", line("python", *calls, *events)), metadata(made))


def stored(folder: Path, profiles: Sequence[bytes], names: Sequence[str] = "ab") -> list[Path]:
    """The run folders of these profiles below a logdir `logs`."""
    runs = [folder / "logs" / "plugins" / "profile" / name for name in names[: len(profiles)]]
    for run, profile in zip(runs, profiles, strict=True):
        run.mkdir(parents=True)
        (run / "vm.xplane.pb").write_bytes(profile)
    return runs


def host_of(*programs: tuple[str, float, Sequence[Instruction]], others: bytes = b"") -> bytes:
    """A host that ran `out`, the negation of the last one of these instructions, of each program: its name, how long
    that took in µs (0: it is stored and did not run) and its instructions. Parameters have buffers.

    `others`: further fields of the modules.
    """
    events, protos = [], {}
    for number, (name, took_us, instructions) in enumerate(programs, start=7):
        out = instruction("out", "negate", F32[8], instructions[-1].name)
        buffers = b"".join(
            chunk(1, integer(1, 100 + i) + integer(2, 64) + chunk(3, integer(4, 100 + i)))
            + chunk(3, integer(2, 64) + chunk(9, integer(1, 100 + i)) + integer(5, 1))
            for i, one in enumerate(instructions)
            if one.opcode == "parameter"
        )
        made = program(computation(1, *instructions, out), name=name, others=integer(6, 1) + others)
        protos[f"{name}({number})"] = made + chunk(3, buffers)
        if took_us:
            stats = {"hlo_op": "out", "hlo_module": name, "program_id": number}
            events += [event("k", 1000 * number + 100 * i, took_us, stats) for i in range(3)]
    return space(plane("/device:GPU:0", line("Stream #1(Kernel)", *events, id=1)), metadata(protos))
