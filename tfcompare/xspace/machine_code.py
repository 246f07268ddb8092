"""Machine code of single functions: made by numba, called through ctypes.

Where it can be laid out as one flat block (`flat_code`), that is mapped from disk, which takes neither numba nor LLVM;
elsewhere LLVM links it.

Arguments are handed over as numba lays them out: an array as the owner of its memory and its Python object (none of
which is told), its number of elements, their size, its address, its shape and its strides; an integer as 64 bits. The
result comes back in 64-bit words. That this is so is checked when a function is compiled.
"""

from __future__ import annotations

import ctypes
import gc
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from itertools import count, takewhile
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from tfcompare.xspace import flat_code
from tfcompare.xspace.flat_code import FlatCode

Arguments = tuple[Any, ...]
Loop = Callable[[Arguments], Any]

_POINTER, _INTEGER = "ptr", "i64"
_C_TYPES = {_POINTER: ctypes.c_void_p, _INTEGER: ctypes.c_int64}
_RESULT, _ERROR = (_POINTER,), (_POINTER,)
_NUMBERS = count()


_PARTS = struct.Struct("<5q")

_MEMSET = """
define weak hidden ptr @memset(ptr %to, i32 %value, i64 %size) "no-builtins" {
  %byte = trunc i32 %value to i8
  %is_none = icmp eq i64 %size, 0
  br i1 %is_none, label %end, label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %place = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %place
  %next = add nuw i64 %i, 1
  %is_last = icmp eq i64 %next, %size
  br i1 %is_last, label %end, label %loop
end:
  ret ptr %to
}
"""
"""The one function of C's library that LLVM calls by itself in loops over arrays: brought along, they need no other."""


class MachineCode(NamedTuple):
    """An object file, the symbol of the function in it, and how many integers it returns: 0 none, 1 one, else a tuple
    of `returned` ones (−1 of a tuple of one). `flat`: the same laid out to run where it is mapped, if it can be."""

    content: bytes
    symbol: str
    returned: int
    flat: FlatCode | None

    def to_bytes(self) -> bytes:
        """To be kept: the flat code comes first, so that it can be mapped."""
        symbol, flat = self.symbol.encode(), self.flat or FlatCode(b"", 0)
        sizes = _PARTS.pack(len(flat.content), flat.entry, len(self.content), len(symbol), self.returned)
        return flat.content + self.content + symbol + sizes

    @classmethod
    def from_bytes(cls, kept: bytes) -> MachineCode:
        """What was kept; raises `ValueError` for what was not."""
        try:
            flat_size, entry, size, symbol_size, returned = _PARTS.unpack(kept[-_PARTS.size :])
        except struct.error as error:
            raise ValueError(error) from error
        if flat_size + size + symbol_size + _PARTS.size != len(kept):
            raise ValueError("parts of sizes that do not add up")
        content, symbol = kept[flat_size : flat_size + size], kept[flat_size + size : -_PARTS.size]
        return cls(content, symbol.decode(), returned, FlatCode(kept[:flat_size], entry) if flat_size else None)


def types_of(arguments: Arguments) -> str:
    """The types of these arguments, as far as machine code depends on them."""
    return ",".join(map(_type_of, arguments))


def _type_of(argument: Any) -> str:
    if isinstance(argument, np.ndarray):
        return f"{argument.dtype.str}{argument.ndim}{'C' if argument.flags.c_contiguous else 'A'}"
    if isinstance(argument, tuple):
        return f"{type(argument).__name__}({types_of(argument)})"
    return "i"


def _layout(argument: Any) -> Iterator[str]:
    """The kinds of words that hand over an argument."""
    if isinstance(argument, np.ndarray):
        yield from (_POINTER, _POINTER, _INTEGER, _INTEGER, _POINTER, *2 * argument.ndim * (_INTEGER,))
    elif isinstance(argument, tuple):
        for part in argument:
            yield from _layout(part)
    else:
        yield _INTEGER


def _words(argument: Any) -> Iterator[int | None]:
    """The words that hand over an argument."""
    if isinstance(argument, np.ndarray):
        yield from (None, None, argument.size, argument.itemsize, argument.__array_interface__["data"][0])
        yield from argument.shape
        yield from argument.strides
    elif isinstance(argument, tuple):
        for part in argument:
            yield from _words(part)
    else:
        yield int(argument)


@cache
def processor() -> str:
    """What machine code can run on: the processor and what it can do, and who makes and links the code."""
    return " ".join([version("llvmlite"), version("numba"), *(_told_by_linux() or _told_by_llvm())])


def _told_by_linux() -> list[str]:
    """The processor as Linux has it, without its speed of the moment; nothing on other systems."""
    if sys.platform != "linux":
        return []
    try:
        with Path("/proc/cpuinfo").open() as file:
            of_first = [line.partition(":") for line in takewhile(str.strip, file)]
    except OSError:
        return []
    return [value.strip() for name, _, value in of_first if name.strip() in _OF_PROCESSOR]


_OF_PROCESSOR = {
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision", "Features",
}  # fmt: skip
"""x86-64 has the first six, ARM the others."""


def _told_by_llvm() -> list[str]:
    import llvmlite.binding as llvm

    try:
        return [llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()]
    except RuntimeError:  # not told on every platform
        return [llvm.get_host_cpu_name(), ""]


@cache
def _machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = _told_by_llvm()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small")


@cache
def _linker() -> Any:
    import llvmlite.binding as llvm

    return llvm.create_lljit_compiler(_machine(), suppress_errors=True)


def link(code: MachineCode, arguments: Arguments) -> Loop:
    """The function, linked by LLVM, ready to be called with arguments of the types of these; it stays to the end of the
    process.

    Raises `RuntimeError` where the code cannot be linked.
    """
    import llvmlite.binding as llvm

    library = llvm.JITLibraryBuilder().add_object_img(code.content).add_current_process().export_symbol(code.symbol)
    linked = library.link(_linker(), f"loop_{next(_NUMBERS)}")
    linked.detach()  # nothing is unlinked, not even at the end, when parts of llvmlite may be gone
    return _loop(linked[code.symbol], code, arguments)


def link_kept(kept: Path, code: MachineCode, arguments: Arguments) -> Loop:
    """The function as `link` gives it, from the file where its code is kept: without LLVM where this system lets it."""
    address = flat_code.address(kept, code.flat) if code.flat else None
    return _loop(address, code, arguments) if address is not None else link(code, arguments)


def _loop(address: int, code: MachineCode, arguments: Arguments) -> Loop:
    words = [_C_TYPES[kind] for argument in arguments for kind in _layout(argument)]
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *words)(address)
    size, room = abs(code.returned), ctypes.c_int64 * max(abs(code.returned), 1)

    def run(arguments: Arguments) -> Any:
        result, error = room(), ctypes.c_void_p()
        words = [word for argument in arguments for word in _words(argument)]
        if status := call(ctypes.addressof(result), ctypes.addressof(error), *words):
            raise RuntimeError(f"{code.symbol} ended with status {status}")
        if code.returned == 1:
            return result[0]
        return tuple(result[:size]) if size else None

    return run


def dispatcher(function: FunctionType, options: dict[str, bool]) -> Any:
    """What numba makes of the function, without anything by which Python could call it."""
    import numba

    without: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return numba.njit(nogil=True, **without, **options)(function)  # type: ignore[call-overload]


def translate(dispatcher: Any, arguments: Arguments) -> MachineCode:
    """What numba makes of a function for arguments of the types of these.

    Raises `TypeError` for a function that returns what this module has no way for, `RuntimeError` where numba hands
    arguments over otherwise than is told above, or left something open that only numba has.
    """
    import llvmlite.binding as llvm

    with _collector_paused():
        signature = tuple(map(_numba_type, arguments))
        dispatcher.compile(signature)
    made = dispatcher.overloads[signature]
    module = llvm.parse_assembly(dispatcher.inspect_llvm(signature) + _MEMSET)
    symbol = made.fndesc.llvm_func_name
    _check(module, symbol, arguments)
    content = _machine().emit_object(module)
    return MachineCode(content, symbol, _returned(made.signature.return_type), flat_code.flat(content, symbol))


def _check(module: Any, symbol: str, arguments: Arguments) -> None:
    found = tuple(str(argument.type) for argument in module.get_function(symbol).arguments)
    expected = (*_RESULT, *_ERROR, *(kind for argument in arguments for kind in _layout(argument)))
    if found != expected:
        raise RuntimeError(f"{symbol} takes its arguments as {found}, not as {expected}")
    missing = [f.name for f in module.functions if f.is_declaration and not f.name.startswith("llvm.")]
    if missing:
        raise RuntimeError(f"{symbol} needs what only numba has: {', '.join(missing)}")


def _numba_type(argument: Any) -> Any:
    from numba import from_dtype, types

    together: Any = types.BaseTuple.from_types
    if isinstance(argument, np.ndarray):
        return types.Array(from_dtype(argument.dtype), argument.ndim, "C" if argument.flags.c_contiguous else "A")
    if isinstance(argument, tuple):
        return together(tuple(map(_numba_type, argument)), type(argument))
    return types.int64


def _returned(kind: Any) -> int:
    from numba import types

    if kind == types.none:
        return 0
    if kind == types.int64:
        return 1
    if not isinstance(kind, types.BaseTuple) or set(kind) != {types.int64}:  # type: ignore[call-overload]
        raise TypeError(f"a compiled function returns {kind}, which is neither nothing nor integers")
    return len(kind) if len(kind) > 1 else -1


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Without Python's garbage collector, which goes through everything again and again while numba makes 80,000
    objects that stay."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
