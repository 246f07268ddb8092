"""How the loops over profile data are compiled: by numba once, then kept on disk and loaded without it.

Waking numba up takes longer than reading most profiles, and more memory. So a loop that was compiled before is run from
its machine code alone (`machine_code`), and numba is imported only where there is none yet for this program, this
processor and these types of arguments.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import cached_property, update_wrapper
from hashlib import blake2b
from threading import Lock
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from tfcompare.xspace import kept_code, machine_code
from tfcompare.xspace.machine_code import Loop, MachineCode

Array = npt.NDArray[Any]
Int = Any  # a 64-bit integer, of Python or of numpy: compiled code does not tell them apart
F = TypeVar("F", bound=Callable[..., Any])

EXPECTED_SECONDS = 10
"""What compiling everything takes on two slow cores, for messages to the user."""

_ONE_AT_A_TIME = Lock()


def compiled(function: F) -> F:
    """`function` compiled on first call, releasing the GIL.

    It takes arrays, tuples of them, and integers, and returns nothing, an integer, or a tuple of integers. It must not
    allocate: what it needs room for, it is handed.
    """
    return cast(F, function if _is_turned_off() else Compiled(function))


def compiled_in_place(function: F) -> F:
    """As `compiled`, and put in place wherever it is called: for the smallest and most called."""
    return cast(F, function if _is_turned_off() else Compiled(function, forceinline=True))


def _is_turned_off() -> bool:
    """As numba's own switch says, which has loops run as plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


class Compiled:
    """A function, and its machine code for each combination of argument types that it was called with."""

    def __init__(self, function: Callable[..., Any], **options: bool) -> None:
        update_wrapper(self, function)
        self.function = cast(FunctionType, function)
        self._options = options
        self._loops: dict[str, Loop] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Raises `TypeError` for arguments of types for which it cannot be compiled."""
        types = machine_code.types_of(arguments)
        loop = self._loops.get(types)
        return (loop or self._linked(types, arguments))(arguments)

    @cached_property
    def dispatcher(self) -> Any:
        """What numba makes of the function."""
        return machine_code.dispatcher(self.function, self._options)

    @property
    def _numba_type_(self) -> Any:
        """By which numba finds out what it is when another function calls it."""
        return self.dispatcher._numba_type_

    @cached_property
    def program(self) -> str:
        """A digest of all that its machine code depends on but the types of its arguments."""
        parts = [sys.version, machine_code.processor(), *_program(self.function, [])]
        return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()

    @property
    def is_at_hand(self) -> bool:
        """Whether it was called, or is kept on disk."""
        return bool(self._loops) or kept_code.has_any(self._name)

    @property
    def _name(self) -> str:
        return f"{self.function.__module__.rpartition('.')[2]}.{self.function.__name__}-{self.program}"

    def _linked(self, types: str, arguments: tuple[Any, ...]) -> Loop:
        with _ONE_AT_A_TIME:
            if types not in self._loops:
                name = f"{self._name}-{blake2b(types.encode(), digest_size=8).hexdigest()}"
                self._loops[types] = self._kept(name, arguments) or self._anew(name, arguments)
            return self._loops[types]

    def _kept(self, name: str, arguments: tuple[Any, ...]) -> Loop | None:
        kept = kept_code.read(name)
        try:
            return kept and machine_code.link_kept(kept.file, MachineCode.from_bytes(kept.code), arguments)
        except (RuntimeError, ValueError):  # of a kind that this version does not know
            return None

    def _anew(self, name: str, arguments: tuple[Any, ...]) -> Loop:
        try:
            code = machine_code.translate(self.dispatcher, arguments)
            loop = machine_code.link(code, arguments)
        except (AttributeError, ImportError, RuntimeError):
            return self._by_numba()
        kept_code.keep(name, code.to_bytes())
        return loop

    def _by_numba(self) -> Loop:
        """The function as numba itself calls it: where machine code cannot be had in the way that this was written for,
        on another system or of another numba, each process compiles anew."""
        import numba

        function = numba.njit(nogil=True, **self._options)(self.function)  # type: ignore[call-overload]
        return lambda arguments: function(*arguments)


def _program(function: FunctionType, seen: list[FunctionType]) -> list[str]:
    """Code and constants of the function and of all that it calls."""
    seen.append(function)
    code = function.__code__
    parts = [function.__name__, code.co_code.hex(), repr(code.co_consts), repr(code.co_names), repr(code.co_varnames)]
    for name in code.co_names:
        value = function.__globals__.get(name)
        if isinstance(value, Compiled):
            parts += _program(value.function, seen) if value.function not in seen else []
        elif isinstance(value, int | float | str | tuple | np.generic):
            parts.append(f"{name}={value!r}")
    return parts


def needs_compilation() -> bool:
    """Whether reading the first profile of this process will have to compile, which takes a while.

    Told by the loop over a file's bytes: it takes the most, and every profile needs it.
    """
    from tfcompare.xspace import wire

    scan: Any = wire.scan
    return isinstance(scan, Compiled) and not scan.is_at_hand
