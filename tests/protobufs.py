"""TensorFlow's protobuf messages, without TensorFlow itself, which takes seconds to import; programs in a profile."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

import pytest

from tfcompare.xspace import XSpace


@cache
def messages(module: str) -> ModuleType:
    """The module of messages of that name within TensorFlow, such as `tsl.profiler.protobuf.xplane_pb2`."""
    if "tensorflow" in sys.modules:
        return import_module(f"tensorflow.{module}")
    found = find_spec("tensorflow")
    if found is None:
        pytest.skip("TensorFlow is not installed")
    empty = ModuleType("tensorflow")
    empty.__path__ = list(found.submodule_search_locations or ())
    sys.modules["tensorflow"] = empty
    try:
        return import_module(f"tensorflow.{module}")
    finally:  # whoever imports TensorFlow later gets all of it
        for name in [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]:
            del sys.modules[name]


def hlo_protos(space: XSpace) -> dict[int, memoryview]:
    """The bytes of each program in the profile, by event metadata row."""
    view = memoryview(space.buffer)  # type: ignore[arg-type]
    return {row: view[begin : begin + size] for row, (begin, size) in space.metadata_places("Hlo Proto").items()}
