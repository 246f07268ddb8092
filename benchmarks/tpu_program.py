"""The program that a TPU runs in a training step of a transformer: its instructions in their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.recording import Constant

MODULE, PROGRAM_ID = "jit_train_step", 12_190_760_917_235_803_885

_TOKENS, _WIDTH = 8 * 1024, 2048
_BLOCKS = 8  # of the keys that attention goes through in a loop
_SOURCE = "train/model.py"
_FLOPS_PER_US, _BYTES_PER_US = 4e8, 1.2e6
_ITEM_BYTES = 2


@dataclass(frozen=True)
class Instruction:
    """An HLO instruction. `text`: as the profile names it; `body`: what a loop repeats; `copied_until_us`: how long
    what it begins goes on beside others, and `done` the instruction that waits for its end."""

    name: str
    text: str
    stats: dict[str, Constant]
    mean_us: float = 0
    is_collective: bool = False
    body: list[Instruction] = field(default_factory=list)
    repetitions: int = 1
    copied_until_us: float = 0
    done: str = ""


def instructions(layers: int) -> list[Instruction]:
    """Those of the program of so many layers, in the order in which they run."""
    return list(_Program(layers).instructions())


class _Program:
    def __init__(self, layers: int) -> None:
        self._layers = layers
        self._numbers: dict[str, int] = {}
        self._symbols = 0

    def instructions(self) -> Iterator[Instruction]:
        yield self._fusion("loop fusion", "jvp(Transformer)/embed/take", _WIDTH, 40)
        for i in range(self._layers):
            yield from self._layer(f"jvp(Transformer)/layers_{i}", width=4)
        yield self._fusion("convolution fusion", "jvp(Transformer)/logits/dot_general", 32 * _WIDTH, _WIDTH)
        yield self._fusion("loop fusion", "loss/reduce_sum", _WIDTH)
        for i in reversed(range(self._layers)):
            yield from self._layer(f"transpose(jvp(Transformer))/layers_{i}", width=8)
            yield self._collective(f"transpose(jvp(Transformer))/layers_{i}/psum")
        for i in range(self._layers):
            yield from self._update(i)

    def _layer(self, scope: str, width: int) -> Iterator[Instruction]:
        yield from self._prefetch(scope)
        yield self._fusion("loop fusion", f"{scope}/pre_norm/rsqrt", _WIDTH)
        for part in ("query", "key", "value"):
            yield self._fusion(
                "convolution fusion", f"{scope}/attention/{part}/dot_general", _WIDTH, width * _WIDTH // 4
            )
        yield self._attention(f"{scope}/attention")
        yield self._fusion("convolution fusion", f"{scope}/attention/out/dot_general", _WIDTH, width * _WIDTH // 4)
        yield self._fusion("loop fusion", f"{scope}/add", _WIDTH)
        yield self._fusion("loop fusion", f"{scope}/post_norm/rsqrt", _WIDTH)
        for part in ("wi_0", "wi_1", "wo"):
            yield self._fusion("convolution fusion", f"{scope}/mlp/{part}/dot_general", _WIDTH, width * _WIDTH)
            yield self._fusion("loop fusion", f"{scope}/mlp/{part}/mul", 4 * _WIDTH)
        yield self._fusion("data formatting", f"{scope}/transpose", _WIDTH)

    def _attention(self, scope: str) -> Instruction:
        """A loop over blocks of keys."""
        body = [
            self._fusion("convolution fusion", f"{scope}/while/body/dot_general", _WIDTH // _BLOCKS, 1024),
            self._fusion("loop fusion", f"{scope}/while/body/exp", _WIDTH // _BLOCKS),
            self._fusion("loop fusion", f"{scope}/while/body/reduce_max", _WIDTH // _BLOCKS),
            self._fusion("convolution fusion", f"{scope}/while/body/dot_general", _WIDTH // _BLOCKS, 1024),
        ]
        shape = f"(s32[]{{:T(128)}}, bf16[8,1024,{_WIDTH}]{{2,1,0:T(8,128)(2,1)}})"
        return self._named("while", "while", f"{scope}/while", shape, body=body, repetitions=_BLOCKS)

    def _prefetch(self, scope: str) -> Iterator[Instruction]:
        """Weights are copied to the near memory ahead of their use."""
        shape = f"bf16[{_WIDTH},{_WIDTH}]{{1,0:T(8,128)(2,1)S(1)}}"
        done = self._named("copy-done", "copy-done", f"{scope}/copy", shape, mean_us=0.4)
        yield self._named("copy-start", "copy-start", f"{scope}/copy", shape, mean_us=0.05, until_us=60, done=done.name)
        yield done

    def _collective(self, scope: str) -> Instruction:
        shape = f"f32[{_WIDTH},{_WIDTH}]{{1,0:T(8,128)}}"
        return self._named("all-reduce", "all-reduce", scope, shape, mean_us=45, is_collective=True)

    def _update(self, layer: int) -> Iterator[Instruction]:
        for part in ("query", "key", "value", "out", "wi_0", "wi_1", "wo"):
            yield self._fusion("loop fusion", f"optimizer/layers_{layer}/{part}/adamw/mul", 3 * _WIDTH)

    def _fusion(self, category: str, tf_op: str, width: int, inner: int = 0) -> Instruction:
        """A fusion that makes so wide a tensor, of sums over so many elements."""
        shape = f"bf16[8,1024,{width}]{{2,1,0:T(8,128)(2,1)}}"
        flops, size = _TOKENS * width * max(2 * inner, 1), _TOKENS * width * _ITEM_BYTES
        time_us = 0.6 + max(flops / _FLOPS_PER_US, size / _BYTES_PER_US)
        kind = "fusion" if inner else "multiply_add_fusion"
        return self._named(kind, category, tf_op, shape, mean_us=time_us, flops=flops, size_bytes=size)

    def _named(
        self,
        kind: str,
        category: str,
        tf_op: str,
        shape: str,
        mean_us: float = 0,
        flops: int = 0,
        size_bytes: int = 0,
        is_collective: bool = False,
        body: list[Instruction] | None = None,
        repetitions: int = 1,
        until_us: float = 0,
        done: str = "",
    ) -> Instruction:
        number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
        self._symbols += 1
        name = f"{kind}.{number}"
        operands = f"{shape} %param.{number}, {shape} %{kind}.{max(1, number - 1)}"
        opcode = "fusion" if kind.endswith("fusion") else kind
        called = f", kind=kOutput, calls=%fused_computation.{number}" if opcode == "fusion" else ""
        stats: dict[str, Constant] = {
            "hlo_category": category,
            "program_id": PROGRAM_ID,
            "symbol_id": self._symbols,
            "flops": flops,
            "model_flops": flops,
            "bytes_accessed": 2 * size_bytes,
            "source": f"{_SOURCE}:{37 + self._symbols % 200}",
            "raw_bytes_accessed": 2 * size_bytes,
            "shape_with_layout": shape,
            "tf_op": f"jit(train_step)/{tf_op}:",
        }
        text = f"%{name} = {shape} {opcode}({operands}){called}"
        return Instruction(name, text, stats, mean_us, is_collective, body or [], repetitions, until_us, done)
