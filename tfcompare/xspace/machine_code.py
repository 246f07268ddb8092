"""Machine code of single functions: made by numba, linked by LLVM, called through ctypes.

Arguments are handed over as numba lays them out: an array as the owner of its memory and its Python object (none of
which is told), its number of elements, their size, its address, its shape and its strides; an integer as 64 bits. The
result comes back in 64-bit words. That this is so is checked when a function is compiled.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

Arguments = tuple[Any, ...]
Loop = Callable[[Arguments], Any]

_POINTER, _INTEGER = "ptr", "i64"
_C_TYPES = {_POINTER: ctypes.c_void_p, _INTEGER: ctypes.c_int64}
_RESULT, _ERROR = (_POINTER,), (_POINTER,)
_NUMBERS = count()


class MachineCode(NamedTuple):
    """An object file, the symbol of the function in it, and how many integers it returns: 0 none, 1 one, else a tuple
    of `returned` ones (−1 of a tuple of one)."""

    content: bytes
    symbol: str
    returned: int

    def to_bytes(self) -> bytes:
        """To be kept."""
        return b"%d %s\0%s" % (self.returned, self.symbol.encode(), self.content)

    @classmethod
    def from_bytes(cls, kept: bytes) -> MachineCode:
        """What was kept; raises `ValueError` for what was not."""
        head, _, content = kept.partition(b"\0")
        returned, _, symbol = head.decode().partition(" ")
        return cls(content, symbol, int(returned))


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
    import llvmlite

    cpu, features = _host()
    return f"{llvmlite.__version__} {_numba_version()} {cpu} {features}"


def _numba_version() -> str:
    from importlib.metadata import version

    return version("numba")


def _host() -> tuple[str, str]:
    import llvmlite.binding as llvm

    try:
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # not told on every platform
        return llvm.get_host_cpu_name(), ""


@cache
def _machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = _host()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=cpu, features=features, opt=3, jit=True, reloc="pic")


@cache
def _linker() -> Any:
    import llvmlite.binding as llvm

    return llvm.create_lljit_compiler(_machine(), suppress_errors=True)


def link(code: MachineCode, arguments: Arguments) -> Loop:
    """The function, ready to be called with arguments of the types of these; it stays to the end of the process.

    Raises `RuntimeError` where the code cannot be linked.
    """
    import llvmlite.binding as llvm

    library = llvm.JITLibraryBuilder().add_object_img(code.content).add_current_process().export_symbol(code.symbol)
    linked = library.link(_linker(), f"loop_{next(_NUMBERS)}")
    linked.detach()  # nothing is unlinked, not even at the end, when parts of llvmlite may be gone
    words = [_C_TYPES[kind] for argument in arguments for kind in _layout(argument)]
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *words)(linked[code.symbol])
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
    module = llvm.parse_assembly(dispatcher.inspect_llvm(signature))
    symbol = made.fndesc.llvm_func_name
    _check(module, symbol, arguments)
    return MachineCode(_machine().emit_object(module), symbol, _returned(made.signature.return_type))


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
