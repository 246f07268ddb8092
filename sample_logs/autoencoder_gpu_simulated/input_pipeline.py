"""The input: batches sliced from memory on a thread of their own, two ahead, and taken by the training loop."""

from __future__ import annotations

import random

from kernels import IMAGES
from xspace_writer import Line, Value

_SHAPE = f"[{','.join(map(str, IMAGES.shape))}]"
_BATCH: dict[str, Value] = {"shapes": f"{_SHAPE} {_SHAPE}", "types": "float float"}
_PREFETCH: dict[str, Value] = {
    "buffer_limit": 2,
    "autotune": "false",
    "autotune_mode": "performance",
    "interleave_depth": 0,
}
_SLICING_NS, _SLICING_SPREAD_NS = 90_000, 30_000


class InputPipeline:
    """A `tf.data` pipeline: Root, Prefetch, ForeverRepeat, TensorSlice."""

    def __init__(self, consumer: Line, producer: Line, rng: random.Random) -> None:
        self._consumer = consumer
        self._producer = producer
        self._rng = rng
        # Ids are 64 random bits: here all beyond what a signed number holds.
        self._root, self._prefetch, self._repeat, self._slice = (2**63 + rng.getrandbits(63) for _ in range(4))
        self._buffered = [self._element_id() for _ in range(2)]

    def take(self, begin_ns: int, end_ns: int) -> None:
        """Take a batch from the buffer."""
        root: dict[str, Value] = {"name": "OptionsDataset:4", **_BATCH, "id": self._root, "warm_start": "false"}
        self._consumer.add("Iterator::Root", begin_ns, end_ns, **root)
        ids: dict[str, Value] = {"id": self._prefetch, "parent_id": self._root}
        prefetch = {"name": "PrefetchDataset:3", **_BATCH, **ids, **_PREFETCH}
        self._consumer.add("Iterator::Root::Prefetch", begin_ns + 500, end_ns - 200, **prefetch)
        element: dict[str, Value] = {"element_id": self._buffered.pop(0)}
        self._consumer.add("PrefetchConsume", begin_ns + 900, begin_ns + 1_000, **element)

    def make(self, begin_ns: int) -> None:
        """Make the batch that is taken two steps later."""
        end_ns = begin_ns + _SLICING_NS + int(_SLICING_SPREAD_NS * self._rng.random())
        self._buffered.append(self._element_id())
        self._producer.add("PrefetchProduce", begin_ns, end_ns, element_id=self._buffered[-1])
        path = "Iterator::Root::Prefetch::ForeverRepeat"
        ids: dict[str, Value] = {"id": self._repeat, "parent_id": self._prefetch}
        self._producer.add(path, begin_ns + 800, end_ns - 500, name="RepeatDataset:2", **_BATCH, **ids)
        path, ids = f"{path}[0]::TensorSlice", {"id": self._slice, "parent_id": self._repeat}
        self._producer.add(path, begin_ns + 1_600, end_ns - 900, name="TensorSliceDataset:1", **_BATCH, **ids)

    def _element_id(self) -> int:
        return self._rng.getrandbits(60)
