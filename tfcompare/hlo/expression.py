"""Instructions as text, in XLA's notation without layouts."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

import numpy as np

from tfcompare.hlo.call_config import computed_config
from tfcompare.hlo.custom_calls import BACKEND_CONFIG, TARGET
from tfcompare.hlo.donation import donations
from tfcompare.hlo.names import plain_instruction
from tfcompare.hlo.program import PARAMETER_NUMBER, Lists, Program
from tfcompare.hlo.sharding import SHARDING, sharding_text
from tfcompare.schema.arrays import Int64
from tfcompare.xspace.texts import shortened

FUSION_KIND = 11
"""The field of an instruction with the kind of a fusion."""
_ATTRIBUTES = (
    PARAMETER_NUMBER, FUSION_KIND, 13, 63, 50, 58, 31, TARGET,
    8, 14, 15, 16, 17, 20, 21, 30, 32, 33, 34, 48, 49, 51, 52, 87,
    18, 19, 23, 25, 47, 59, 60, 62, 66, 67, 69, 70, 71, 72, 81, 85, 90, 91, 92, 93, 94, 95, 96, 97,
)  # fmt: skip
"""The fields of an instruction (`xla/service/hlo.proto`) that tell what it computes: besides those with names, the
element of a tuple, the direction of a comparison, groups of features and batches, a constant's value, dimensions, the
window and dimensions of a convolution, slices and their sizes, padding, dimensions of products, gathers, scatters and
Fourier transforms, the devices that communicate, and precision. In the last row: bits of a reduced precision, the
distribution and algorithm of random numbers, options of triangular solves, Cholesky, sorts, scatters, comparisons,
top-k and scans, ragged products, accuracy, devices in other notations, and the kind of a convolution.

The ε of a batch normalization is not read: XLA replaces these instructions by others."""
_SHOWN_NUMBERS = {
    18: "exponent_bits", 19: "mantissa_bits", 25: "feature_index", 66: "delta", 81: "k",
}  # fmt: skip
_SHOWN_FLAGS = {60: "is_stable", 67: "indices_are_sorted", 69: "unique_indices", 71: "use_global_device_ids"}
"""Attributes as XLA prints them, of those whose values are plain numbers; 0 and false are left out."""
_DIGEST_BYTES = 8
_MOST_SHOWN = 50


def expressions(program: Program, rows: Int64) -> list[str]:
    """Instructions with their results, operands and what they call.

    For instance `%sum = f32[8] fusion(f32[8,4] %x), kind=kInput, calls=%fused_computation`; `sharding={…}` says how it
    is divided among devices. Long ones are shortened.
    Raises `NotAProfile` for damage.
    """
    operands = _listed(program.operands, rows, lambda some: _values(program, some), "?")
    called = _listed(program.called, rows, lambda some: [f"%{name}" for name in program.computation_names(some)], "")
    kinds, targets = (program.field_texts(rows, wanted) for wanted in (FUSION_KIND, TARGET))
    donated, plain = donations(program), _plain_attributes(program, rows)
    out, parts = (
        [],
        zip(rows.tolist(), _heads(program, rows), operands, called, kinds, targets, _shardings(program, rows), plain,
            strict=True),
    )  # fmt: skip
    for row, text, used, calls, kind, target, sharding, attributes in parts:
        text = f"{text}({', '.join(used)})"
        if kind:
            text += f", kind={kind}"
        if any(calls):
            text += f", calls={', '.join(filter(None, calls))}"
        if target:
            text += f', custom_call_target="{target}"'
        text += attributes
        if row in donated:
            text += f", {donated[row]}"
        if sharding:
            text += f", sharding={{{sharding}}}"
        out.append(shortened(text))
    return out


def _plain_attributes(program: Program, rows: Int64) -> list[str]:
    """`, is_stable=true` for a sort: the attributes that are numbers or flags."""
    shown = {**_SHOWN_NUMBERS, **_SHOWN_FLAGS}
    listed, numbers = list(shown.items()), program.fields(rows, *shown)[:, :, 2]
    out = [""] * len(rows)
    for at, which in np.argwhere(numbers).tolist():
        field, name = listed[which]
        out[at] += f", {name}={'true' if field in _SHOWN_FLAGS else numbers[at, which]}"
    return out


def signatures(program: Program, rows: Int64) -> list[str]:
    """Instructions with their results, without their operands, for instance `%sum = f32[8] fusion`."""
    return list(map(shortened, _heads(program, rows)))


def digests(program: Program, rows: Int64) -> list[str]:
    """A digest of each instruction that is equal for instructions which compute the same of their operands.

    Of its name without numbers at the end, shape, opcode, shapes of operands, sharding, donation and attributes; not of
    layouts, names of operands, and options of the backend except those of custom calls that say what these compute.
    Raises `NotAProfile` for damage.
    """
    names = map(plain_instruction, program.names(rows))
    opcodes = [program.opcodes[code] for code in program.opcode[rows].tolist()]
    operands = _listed(program.operands, rows, lambda some: _shapes(program, some), "?")
    attributes = program.fields(rows, *_ATTRIBUTES)
    integers = attributes[:, :, 2].tolist()
    configs, donated = _call_configs(program, rows), donations(program)
    out = []
    described = zip(names, _shapes(program, rows), opcodes, operands, integers, _shardings(program, rows), strict=True)
    for at, texts in enumerate(described):
        digest = blake2b(repr(texts).encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES)
        for number, place in zip(_ATTRIBUTES, attributes[at], strict=True):
            if (content := program.content(place)) is not None:
                digest.update(b"%d %d " % (number, len(content)))
                digest.update(content)
        digest.update(configs.get(at, b""))
        digest.update(donated.get(int(rows[at]), "").encode())
        out.append(digest.hexdigest())
    return out


def _call_configs(program: Program, rows: Int64) -> dict[int, bytes]:
    """The configurations of custom calls, by their position in `rows`."""
    calls = np.flatnonzero(program.has_opcode(rows, "custom-call".__eq__))
    targets, places = program.field_texts(rows[calls], TARGET), program.fields(rows[calls], BACKEND_CONFIG)[:, 0]
    return {
        at: computed_config(target, program.content(place))
        for at, target, place in zip(calls.tolist(), targets, places, strict=True)
    }


def _shardings(program: Program, rows: Int64) -> list[str]:
    """How each instruction is divided among devices, empty where it does not say."""
    contents = (program.content(place) for place in program.fields(rows, SHARDING)[:, 0])
    return ["" if content is None else sharding_text(content) for content in contents]


def _heads(program: Program, rows: Int64) -> list[str]:
    opcodes = [program.opcodes[code] for code in program.opcode[rows].tolist()]
    cells = zip(program.names(rows), _shapes(program, rows), opcodes, strict=True)
    return [f"%{name} = {shape} {opcode}" for name, shape, opcode in cells]


def _values(program: Program, rows: Int64) -> list[str]:
    """Instructions as operands: `f32[8] %x`."""
    return [f"{shape} %{name}" for shape, name in zip(_shapes(program, rows), program.names(rows), strict=True)]


def _shapes(program: Program, rows: Int64) -> list[str]:
    texts: list[str] = program.of_shapes(rows, lambda shape: shape.text, object).tolist()
    return texts


def _listed(lists: Lists, rows: Int64, texts_of: Callable[[Int64], list[str]], missing: str) -> list[list[str]]:
    """The texts of the first numbers of each row, `…` for further ones."""
    owner, place, number = lists.flat(rows, _MOST_SHOWN + 1)
    found, which = np.unique(number, return_inverse=True)
    known = found[found >= 0]
    labels = np.array([missing] * (len(found) - len(known)) + texts_of(known) + ["…"], object)
    each = labels[np.where(place < _MOST_SHOWN, which, len(found))].tolist()
    ends = np.cumsum(np.bincount(owner, minlength=len(rows))).tolist()
    return [each[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
