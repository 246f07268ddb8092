"""What surrounds an instruction in its program, as lines of text: operands, users, and the parts of a fusion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from tfcompare.hlo.expression import expression, signature
from tfcompare.hlo.program import Instruction, Program

_PASSING = ("bitcast", "get-tuple-element", "tuple")
"""They only hand on what others computed, and never run."""
_MOST_LINES = 32
_MOST_PASSED = 100


class Neighbours:
    """The surroundings of the instructions of one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._users: dict[int, dict[int, list[Instruction]]] = {}  # by computation, then by instruction

    def operands(self, instruction: Instruction) -> str:
        """The instructions whose values it uses, one per line, for instance `%dot.1 = f32[8,4] dot`.

        Behind bitcasts, tuples and their elements, those from which they come. Raises `NotAProfile` for damage.
        """
        return _lines(signature(one) for one in self._sources(instruction))

    def users(self, instruction: Instruction) -> str:
        """The instructions that use its value, as `operands`. Raises `NotAProfile` for damage."""
        return _lines(signature(one) for one in self._readers(instruction))

    def fused(self, instruction: Instruction) -> str:
        """The instructions that a fusion consists of, one per line, as `expression`; empty for others.

        Raises `NotAProfile` for damage.
        """
        if instruction.opcode != "fusion":
            return ""
        called = (self._program.computations.get(one) for one in instruction.called)
        inner = (part for one in called if one is not None for part in one.instructions)
        return _lines(expression(self._program, part) for part in inner)

    def _sources(self, instruction: Instruction) -> Iterator[Instruction]:
        there = self._program.computations[instruction.computation].by_number
        return _reached(instruction, lambda one: (there[n] for n in one.operands if n in there))

    def _readers(self, instruction: Instruction) -> Iterator[Instruction]:
        users = self._users_in(instruction.computation)
        return _reached(instruction, lambda one: users.get(one.number, ()))

    def _users_in(self, computation: int) -> dict[int, list[Instruction]]:
        """The users of each instruction of a computation, by its number."""
        if computation not in self._users:
            users: dict[int, list[Instruction]] = defaultdict(list)
            for one in self._program.computations[computation].instructions:
                for number in set(one.operands):
                    users[number].append(one)
            self._users[computation] = users
        return self._users[computation]


def _reached(start: Instruction, following: Callable[[Instruction], Iterable[Instruction]]) -> Iterator[Instruction]:
    """The instructions that follow directly or after those that only hand on, each once."""
    seen: set[int] = set()
    waiting = [start]
    passed = 0
    while waiting and passed < _MOST_PASSED:
        passed += 1
        for one in islice(following(waiting.pop()), _MOST_LINES + 1):
            if one.number in seen:
                continue
            seen.add(one.number)
            if one.opcode in _PASSING:
                waiting.append(one)
            else:
                yield one


def _lines(texts: Iterable[str]) -> str:
    """At most `_MOST_LINES` lines, the last of which says that there are more."""
    found: list[str] = []
    for text in texts:
        if len(found) == _MOST_LINES:
            return "\n".join([*found[:-1], "…"])
        found.append(text)
    return "\n".join(found)
