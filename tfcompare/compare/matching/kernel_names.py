"""Canonical names of GPU kernels, equal for all spellings that compilers produce for one kernel."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

from tfcompare.text import NAMES_KEPT

_OPENING, _CLOSING = "(<{[", ")>}]"
_SUFFIX = re.compile(r"(?:\.kd| ?\[clone [^\]]*\]|\.constprop\.\d+|\.isra\.\d+)+$")
_AFTER_ARGUMENTS = re.compile(r"(?: const| volatile| noexcept)+$")
_XLA_NUMBER = re.compile(r"(?<=[A-Za-z])[._]\d+(?:[._]\d+)*$")
_INSTRUCTION = re.compile(rf"fusion|^wrapped_|{_XLA_NUMBER.pattern}")
_OPERATOR = re.compile(r"operator(?:->|<<=?|>>=?|<=>|<=?|>=?|\(\))")


class KernelName(NamedTuple):
    """The parts of a kernel's name: `void ns::f<int>(float*)` has function `ns::f` and template `<int>`."""

    returns: str
    function: str
    template: str
    arguments: str


@lru_cache(maxsize=NAMES_KEPT)
def canonical_kernel(name: str) -> str:
    """The name without return type, arguments, compiler suffixes, and the number that XLA gives a fusion.

    Template arguments remain because they distinguish variants of a kernel.
    """
    parts = kernel_name(name)
    if parts.template or parts.arguments or "fusion" not in parts.function:
        return plain_kernel(name)
    return _XLA_NUMBER.sub("", parts.function)


def is_instruction(name: str) -> bool:
    """Whether XLA named the kernel after its instruction, as `loop_add_fusion_3`: in another program, that name belongs
    to another kernel."""
    parts = kernel_name(name)
    return not (parts.template or parts.arguments) and _INSTRUCTION.search(parts.function) is not None


def plain_kernel(name: str) -> str:
    """The name without return type, arguments and compiler suffixes."""
    parts = kernel_name(name)
    return parts.function + parts.template


@lru_cache(maxsize=NAMES_KEPT)
def kernel_name(name: str) -> KernelName:
    """Splits a C++ kernel name into its parts; a malformed name is returned as the function part."""
    plain = _SUFFIX.sub("", name.strip())
    head = _AFTER_ARGUMENTS.sub("", plain)
    groups = _top_level_groups(head)
    if groups is None:
        return KernelName("", plain, "", "")
    arguments = ""
    if groups and groups[-1][1] == len(head) and head[groups[-1][0]] == "(":
        start = groups.pop()[0]
        head, arguments = head[:start], head[start:]
    template = ""
    if groups and groups[-1][1] == len(head) and head[groups[-1][0]] == "<":
        start = groups.pop()[0]
        head, template = head[:start], head[start:]
    space = _last_space(head, groups)
    return (
        KernelName(head[: max(space, 0)], head[space + 1 :], template, arguments)
        if head
        else KernelName("", plain, "", "")
    )


def split_top_level(text: str, separator: str) -> list[str]:
    """Splits the text at separators outside brackets; unmatched brackets leave it unsplit."""
    groups = _top_level_groups(text)
    if groups is None:
        return [text]
    begins = [group[0] for group in groups]
    pieces, begin, place = [], 0, -1
    while (place := text.find(separator, place + 1)) >= 0:
        before = bisect_right(begins, place) - 1
        if before >= 0 and place < groups[before][1]:
            place = groups[before][1] - 1
        elif place >= begin:
            pieces.append(text[begin:place])
            begin = place + len(separator)
    return [*pieces, text[begin:]]


def _top_level_groups(text: str) -> list[tuple[int, int]] | None:
    """The (begin, end) of each outermost bracketed part; None if brackets are unmatched."""
    operators = {i for match in _OPERATOR.finditer(text) for i in range(match.start() + len("operator"), match.end())}
    groups: list[tuple[int, int]] = []
    open_ones: list[tuple[str, int]] = []
    for i, letter in enumerate(text):
        if i in operators or (letter == ">" and text[i - 1 : i] == "-"):
            continue
        if letter in _OPENING:
            open_ones.append((_CLOSING[_OPENING.index(letter)], i))
        elif letter in _CLOSING:
            if not open_ones or open_ones[-1][0] != letter:
                return None
            begin = open_ones.pop()[1]
            if not open_ones:
                groups.append((begin, i + 1))
    return None if open_ones else groups


def _last_space(text: str, groups: list[tuple[int, int]]) -> int:
    """The position of the last space outside brackets, −1 if there is none."""
    before = len(text)
    for begin, end in reversed(groups):
        if (place := text.rfind(" ", end, before)) >= 0:
            return place
        before = begin
    return text.rfind(" ", 0, before)
