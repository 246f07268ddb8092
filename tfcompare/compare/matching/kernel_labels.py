"""Short labels for GPU kernels: `void ns::f<a::b<int>, 4>(float*)` becomes `f<b<int>, 4>`.

For display only: rows are identified and matched by their full names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tfcompare.compare.matching.kernel_names import canonical_kernel, kernel_name, split_top_level

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
        return f"Eigen {_assigned(arguments[0])}"
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
    """The last component of a name, split into what precedes its template arguments, those, and what follows them.

    `Policy<8>::Inner*` has the last component `Inner*`.
    """
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


def _assigned(evaluator: str) -> str:
    """The expression that an Eigen evaluator computes, with the result type if the terms do not show it."""
    _, template, _ = _around_template(_plain_type(evaluator))
    arguments = _template_arguments(template)
    name, inner, _ = _around_template(_plain_type(arguments[0])) if arguments else ("", "", "")
    if name != "TensorAssignOp":
        return _expression(arguments[0] if arguments else evaluator, 0)
    sides = _template_arguments(inner)
    if len(sides) != 2:
        return _short(evaluator)
    result, term = _expression(sides[0], 0), _expression(sides[1], 0)
    return term if re.search(rf"(?<!\w){re.escape(result)}(?!\w)", term) else f"{term} → {result}"


def _expression(text: str, level: int) -> str:
    """An Eigen expression as a formula: `product(half, half)`, `float(half)`."""
    name, template, _ = _around_template(_plain_type(text))
    arguments = _template_arguments(template)
    if name == "TensorMap" and arguments:
        return _tensor(arguments[0])
    op = _TENSOR_OP.match(name)
    if not op or level >= MOST_LEVELS or not arguments:
        return _short(text, level)
    terms = [_expression(a, level + 1) for a in arguments if _is_expression(a)]
    what = _last_name(_around_template(_plain_type(arguments[0]))[0])
    if op[1] == "Conversion":
        return f"{what}({', '.join(terms)})"
    if op[1].startswith("Cwise") or op[1] == "Reduction":
        return _applied(arguments[0], terms, level)
    return f"{op[1].lower()}({', '.join(terms)})"


def _applied(functor: str, terms: list[str], level: int) -> str:
    """A functor applied to terms; `scalar_left` and `scalar_right` bind a constant to one side."""
    name, template, _ = _around_template(_plain_type(functor))
    arguments = _template_arguments(template)
    if name in ("scalar_left", "scalar_right") and len(arguments) >= 3 and level < MOST_LEVELS:
        bound = ["scalar", *terms] if name == "scalar_left" else [*terms, "scalar"]
        return _applied(arguments[2], bound, level + 1)
    if name == "scalar_cmp_op" and len(terms) == 2 and arguments and arguments[-1].isdecimal():
        number = int(arguments[-1][:2])
        return f" {_COMPARISONS[number]} ".join(terms) if number < len(_COMPARISONS) else f"compare({', '.join(terms)})"
    readable = _FUNCTOR.match(name)
    return f"{readable[1] if readable else name}({', '.join(terms)})"


def _is_expression(text: str) -> bool:
    name = _around_template(_plain_type(text))[0]
    return name == "TensorMap" or bool(_TENSOR_OP.match(name))


def _tensor(text: str) -> str:
    """The element type of a tensor, with its rank unless that is 1."""
    _, template, _ = _around_template(_plain_type(text))
    arguments = _template_arguments(template)
    if not arguments:
        return _short(text)
    rank = arguments[1] if len(arguments) > 1 else "1"
    element = _short(arguments[0])
    return element if rank == "1" else f"{element}[{rank}D]"


def _plain_type(text: str) -> str:
    return _QUALIFIERS.sub("", text.strip())
