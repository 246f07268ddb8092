"""Names of GPU kernels: those that are one kernel in both runs, and short labels for reading.

For display only: rows are identified and matched by their full names.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from tfcompare.text import NAMES_KEPT

_OPENING, _CLOSING = "(<{[", ")>}]"
_SUFFIX = re.compile(r"(?:\.kd| ?\[clone [^\]]*\]|\.constprop\.\d+|\.isra\.\d+)+$")
_AFTER_ARGUMENTS = re.compile(r"(?: const| volatile| noexcept)+$")
_XLA_NUMBER = re.compile(r"(?<=[A-Za-z])[._]\d+(?:[._]\d+)*$")
_INSTRUCTION = re.compile(rf"fusion|^wrapped_|{_XLA_NUMBER.pattern}")
_OPERATOR = re.compile(r"operator(?:->|<<=?|>>=?|<=>|<=?|>=?|\(\))")
MOST_LEVELS = 12
"""Templates nested deeper than this are abbreviated to an ellipsis."""

MOST_LETTERS = 10_000
"""Names longer than this are not shortened."""

MOST_SHOWN, TAIL = 48, 13
"""The maximum length of a label, and how many characters at its end survive truncation."""

_QUALIFIERS = re.compile(r"^(?:const|volatile|typename)\s+|\s+(?:const|volatile)(?=\s*[*&]*$)")
_CAST = re.compile(r"^\((?:[\w: ]|<[^()]*>)+\)(?=-?[\w'])")
_TENSILE = re.compile(r"^(Cijk_\w*?_MT\d+x\d+x\d+(?:_MI\d+(?:x\d+)*)?)_\w+?(_WGM-?\d+)?$")
_TENSOR_OP = re.compile(r"^Tensor(\w+?)Op$")
_FUNCTOR = re.compile(r"^(?:scalar_)?(\w+?)(?:_op)?$")
_COMPARISONS = ("==", "<", "<=", "unordered", "!=", ">", ">=")
"""Eigen's `ComparisonName`, by its number."""


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
    if not head:
        return KernelName("", plain, "", "")
    space = _last_space(head, groups)
    return KernelName(head[: max(space, 0)], head[space + 1 :], template, arguments)


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


def kernel_labels(names: Iterable[str]) -> dict[str, str]:
    """A unique label for each kernel; kernels that would share a label are numbered.

    Two spellings of one kernel (`canonical_kernel`) share a label.
    """
    labels: dict[str, str] = {}
    numbers: dict[str, dict[str, int]] = {}
    for name in names:
        if name not in labels:
            label = kernel_label(name)
            spellings = numbers.setdefault(label, {})
            number = spellings.setdefault(canonical_kernel(name), len(spellings) + 1)
            labels[name] = label if number == 1 else f"{label} ({number})"
    return labels


def kernel_label(name: str) -> str:
    """The name without return type, arguments and namespaces; for Eigen kernels, the expression they compute."""
    if len(name) > MOST_LETTERS:
        return name
    parts = kernel_name(name)
    tensile = _TENSILE.match(parts.function)
    if tensile:
        return f"{tensile[1]}…{tensile[2] or ''}"
    if not parts.template and not parts.arguments:
        return _cut(parts.function)
    arguments = _template_arguments(parts.template)
    function = _last_name(parts.function)
    if function == "EigenMetaKernel" and arguments:
        return f"Eigen {_assign(arguments[0])}"
    if re.fullmatch(r"Kernel\d*", function) and parts.function.startswith("cutlass::") and arguments:
        return _cut(_short(arguments[0]))
    return _cut(function + _in_brackets(arguments, 0))


def _cut(label: str) -> str:
    """The label with its middle removed if it is too long; the start of a kernel name is the most informative part."""
    return label if len(label) <= MOST_SHOWN else f"{label[: MOST_SHOWN - TAIL - 1]}…{label[-TAIL:]}"


def _short(text: str, level: int = 0) -> str:
    """A type or value without namespaces, casts and qualifiers, recursively for its template arguments."""
    plain = _CAST.sub("", _QUALIFIERS.sub("", _QUALIFIERS.sub("", text.strip())))
    if level >= MOST_LEVELS:
        return "…"
    name, template, rest = _around_template(plain)
    return _last_name(name) + (_in_brackets(_template_arguments(template), level + 1) if template else "") + rest


def _in_brackets(arguments: list[str], level: int) -> str:
    return f"<{', '.join(_short(argument, level) for argument in arguments)}>" if arguments else ""


def _around_template(text: str) -> tuple[str, str, str]:
    """What precedes, is in and follows the template of a name's last component, as `Inner*` of `Policy<8>::Inner*`."""
    pieces = split_top_level(text, "::")
    last = pieces[-1] if pieces else text
    begin, end = last.find("<"), last.rfind(">")
    if begin <= 0 or end < begin:
        return last, "", ""
    return last[:begin], last[begin : end + 1], last[end + 1 :]


def _template_arguments(template: str) -> list[str]:
    inside = template.strip()[1:-1].strip()
    return [part.strip() for part in split_top_level(inside, ",")] if inside else []


def _last_name(function: str) -> str:
    pieces = split_top_level(function, "::")
    return (pieces[-1] if pieces else function).strip() or function


def _assign(evaluator: str) -> str:
    """The expression that an Eigen evaluator computes, with the result type if the terms do not show it."""
    arguments = _name_and_arguments(evaluator)[1]
    name, sides = _name_and_arguments(arguments[0]) if arguments else ("", [])
    if name != "TensorAssignOp":
        return _expression(arguments[0] if arguments else evaluator, 0)
    if len(sides) != 2:
        return _short(evaluator)
    result, term = _expression(sides[0], 0), _expression(sides[1], 0)
    return term if re.search(rf"(?<!\w){re.escape(result)}(?!\w)", term) else f"{term} → {result}"


def _expression(text: str, level: int) -> str:
    """An Eigen expression as a formula: `product(half, half)`, `float(half)`."""
    name, arguments = _name_and_arguments(text)
    if name == "TensorMap" and arguments:
        return _tensor(arguments[0])
    op = _TENSOR_OP.match(name)
    if not op or level >= MOST_LEVELS or not arguments:
        return _short(text, level)
    names = [_name_and_arguments(argument)[0] for argument in arguments]
    terms = [
        _expression(argument, level + 1)
        for argument, kind in zip(arguments, names, strict=True)
        if kind == "TensorMap" or _TENSOR_OP.match(kind)
    ]
    what = _last_name(names[0])
    if op[1] == "Conversion":
        return f"{what}({', '.join(terms)})"
    if op[1].startswith("Cwise") or op[1] == "Reduction":
        return _apply(arguments[0], terms, level)
    return f"{op[1].lower()}({', '.join(terms)})"


def _apply(functor: str, terms: list[str], level: int) -> str:
    """A functor applied to terms; `scalar_left` and `scalar_right` bind a constant to one side."""
    name, arguments = _name_and_arguments(functor)
    if name in ("scalar_left", "scalar_right") and len(arguments) >= 3 and level < MOST_LEVELS:
        bound = ["scalar", *terms] if name == "scalar_left" else [*terms, "scalar"]
        return _apply(arguments[2], bound, level + 1)
    if name == "scalar_cmp_op" and len(terms) == 2 and arguments and arguments[-1].isdecimal():
        number = int(arguments[-1][:2])
        return f" {_COMPARISONS[number]} ".join(terms) if number < len(_COMPARISONS) else f"compare({', '.join(terms)})"
    readable = _FUNCTOR.match(name)
    return f"{readable[1] if readable else name}({', '.join(terms)})"


def _tensor(text: str) -> str:
    """The element type of a tensor, with its rank unless that is 1."""
    arguments = _name_and_arguments(text)[1]
    if not arguments:
        return _short(text)
    rank = arguments[1] if len(arguments) > 1 else "1"
    element = _short(arguments[0])
    return element if rank == "1" else f"{element}[{rank}D]"


def _name_and_arguments(text: str) -> tuple[str, list[str]]:
    """The last component of a type's name, and its template arguments."""
    name, template, _ = _around_template(_QUALIFIERS.sub("", text.strip()))
    return name, _template_arguments(template)
