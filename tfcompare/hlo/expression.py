"""Instructions as text, with their configuration, sharding and aliased buffers."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from hashlib import blake2b
from itertools import islice

import numpy as np

from tfcompare.hlo.contents import Lists
from tfcompare.hlo.convolution import DIMENSION_NUMBERS, dimension_labels
from tfcompare.hlo.custom_calls import BACKEND_CONFIG, TARGET, parsed_config
from tfcompare.hlo.names import plain_instruction
from tfcompare.hlo.program import ALIASES, DONORS, PARAMETER_NUMBER, Program
from tfcompare.hlo.proto_fields import Content, fields, messages, unpacked
from tfcompare.schema.arrays import Int64
from tfcompare.xspace.texts import shortened

FUSION_KIND = 11
"""The field of an instruction with the kind of a fusion."""
_ATTRIBUTES = (
    *(PARAMETER_NUMBER, FUSION_KIND, 13, 63, 50, 58, 31, TARGET),
    *(8, 14, 15, 16, 17, 20, 21, 30, 32, 33, 34, 48, 49, 51, 52, 87),
    *(18, 19, 23, 25, 47, 59, 60, 62, 66, 67, 69, 70, 71, 72, 81, 85, 90, 91, 92, 93, 94, 95, 96, 97),
)
"""The fields of an instruction (`xla/service/hlo.proto`) that tell what it computes: besides those with names, the
element of a tuple, the direction of a comparison, groups of features and batches, a constant's value, dimensions, the
window and dimensions of a convolution, slices and their sizes, padding, dimensions of products, gathers, scatters and
Fourier transforms, the devices that communicate, and precision. In the last row: bits of a reduced precision, the
distribution and algorithm of random numbers, options of triangular solves, Cholesky, sorts, scatters, comparisons,
top-k and scans, ragged products, accuracy, devices in other notations, and the kind of a convolution.

The ε of a batch normalization is not read: XLA replaces these instructions by others."""
_SHOWN_NUMBERS = {18: "exponent_bits", 19: "mantissa_bits", 25: "feature_index", 66: "delta", 81: "k"}
_SHOWN_FLAGS = {60: "is_stable", 67: "indices_are_sorted", 69: "unique_indices", 71: "use_global_device_ids"}
"""Attributes as XLA prints them, of those whose values are plain numbers; 0 and false are left out."""
_DIGEST_BYTES = 8
_MOST_SHOWN = 50
_AUTOTUNED = ("__cublas$", "__cudnn$")
"""Libraries of which XLA chooses an algorithm by measuring: it may choose another one at each compilation."""
_CHOSEN = frozenset({"algorithm", "selected_algorithm", "autotune_workspace_size"})
_PART = "_backend_config"
_CALLBACK = "callback"
"""In targets of calls into Python, whose configuration may be an address in memory."""
_ENTRIES = 1
_OUTPUT_INDEX, _PARAMETER, _PARAMETER_INDEX, _KIND = 1, 2, 3, 4
_DONOR, _DONOR_INDEX = 1, 2
_KINDS = {1: "may-alias", 2: "must-alias"}
ALIAS, DONOR = "input_output_alias", "buffer_donor"
SHARDING = 40
"""The field of an instruction with its `OpSharding` (`xla/xla_data.proto`)."""
_TYPE, _TILES, _DEVICES, _PARTS, _REPLICATES_LAST, _LAST_TILES = 1, 3, 4, 5, 6, 8
_IOTA, _TRANSPOSED = 9, 10
_MAXIMAL, _TUPLE, _OTHER = 1, 2, 3
_WORDS = {0: "replicated", 4: "manual", 5: "unknown", 6: "unreduced"}
_MOST_PARTS = 20  # of a tuple, and listed devices: more say no more to a reader
_DEEPEST = 3


def expressions(program: Program, rows: Int64) -> list[str]:
    """Instructions with their results, operands and what they call.

    For instance `%sum = f32[8] fusion(f32[8,4] %x), kind=kInput, calls=%fused_computation`; `sharding={…}` says how it
    is divided among devices, `dim_labels=…` what the dimensions of a convolution are (`dimension_labels`). Long ones
    are shortened.
    Raises `NotAProfile` for damage.
    """
    operands = _texts_in(program.operands, rows, lambda some: _values(program, some), "?")
    called = _texts_in(program.called, rows, lambda some: [f"%{name}" for name in program.computation_names(some)], "")
    kinds, targets = (program.field_texts(rows, wanted) for wanted in (FUSION_KIND, TARGET))
    donated, plain = donations(program), _plain_attributes(program, rows)
    described = rows.tolist(), _heads(program, rows), operands, called, kinds, targets, _shardings(program, rows), plain
    out = []
    for row, text, used, calls, kind, target, sharding, attributes in zip(*described, strict=True):
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
    """`, is_stable=true` for a sort: the attributes that are numbers or flags, and the dimensions of convolutions."""
    shown = {**_SHOWN_NUMBERS, **_SHOWN_FLAGS}
    fields = program.fields(rows, *shown, DIMENSION_NUMBERS)
    listed, numbers, dimensions = list(shown.items()), fields[:, :-1, 2], fields[:, -1]
    out = [""] * len(rows)
    for at, which in np.argwhere(numbers).tolist():
        field, name = listed[which]
        out[at] += f", {name}={'true' if field in _SHOWN_FLAGS else numbers[at, which]}"
    for at, content in _present(program, dimensions):
        if labels := dimension_labels(content):
            out[at] += f", dim_labels={labels}"
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
    operands = _texts_in(program.operands, rows, lambda some: _shapes(program, some), "?")
    attributes = program.fields(rows, *_ATTRIBUTES)
    integers = attributes[:, :, 2].tolist()
    calls = np.flatnonzero(program.has_opcode(rows, "custom-call".__eq__))
    targets, places = program.field_texts(rows[calls], TARGET), program.fields(rows[calls], BACKEND_CONFIG)[:, 0]
    of_calls = zip(calls.tolist(), targets, places, strict=True)
    configs = {at: computed_config(target, program.content(place)) for at, target, place in of_calls}
    donated = donations(program)
    contents: list[list[tuple[int, memoryview]]] = [[] for _ in rows]
    for at, content in _present(program, attributes.reshape(-1, attributes.shape[-1])):
        contents[at // len(_ATTRIBUTES)].append((_ATTRIBUTES[at % len(_ATTRIBUTES)], content))
    out = []
    described = zip(names, _shapes(program, rows), opcodes, operands, integers, _shardings(program, rows), strict=True)
    for at, texts in enumerate(described):
        digest = blake2b(repr(texts).encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES)
        for number, content in contents[at]:
            digest.update(b"%d %d " % (number, len(content)))
            digest.update(content)
        digest.update(configs.get(at, b""))
        digest.update(donated.get(int(rows[at]), "").encode())
        out.append(digest.hexdigest())
    return out


def _shardings(program: Program, rows: Int64) -> list[str]:
    """How each instruction is divided among devices, empty where it does not say."""
    out, places = [""] * len(rows), program.fields(rows, SHARDING)[:, 0]
    for at, content in _present(program, places):
        out[at] = sharding_text(content)
    return out


def _present(program: Program, places: Int64) -> Iterator[tuple[int, memoryview]]:
    """(position, bytes) of the fields that are there."""
    for at in np.flatnonzero(places[:, 0]).tolist():
        content = program.content(places[at])
        if content is not None:
            yield at, content


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


def _texts_in(lists: Lists, rows: Int64, texts_of: Callable[[Int64], list[str]], missing: str) -> list[list[str]]:
    """The texts of the first numbers of each row, `…` for further ones."""
    owner, place, number = lists.flat(rows, _MOST_SHOWN + 1)
    found, which = np.unique(number, return_inverse=True)
    known = found[found >= 0]
    labels = np.array([missing] * (len(found) - len(known)) + texts_of(known) + ["…"], object)
    each = labels[np.where(place < _MOST_SHOWN, which, len(found))].tolist()
    ends = np.cumsum(np.bincount(owner, minlength=len(rows))).tolist()
    return [each[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


def computed_config(target: str, config: memoryview | None) -> bytes:
    """The configuration of a custom call, without what differs between two compilations of one program.

    It decides what is computed: the triangle of a LAPACK routine, the scale of a product, the code of a Pallas kernel.
    Empty without one.
    """
    if config is None or _CALLBACK in target:
        return b""
    if not target.startswith(_AUTOTUNED):
        return config.tobytes()
    computed = {
        name: {key: value for key, value in part.items() if key not in _CHOSEN}
        for name, part in parsed_config(config).items()
        if name.endswith(_PART) and isinstance(part, dict)
    }
    return json.dumps(computed, sort_keys=True).encode() if computed else b""


def donations(program: Program) -> dict[int, str]:
    """For the row of each donated parameter of main computations, `input_output_alias={ {0}: (1, {}, may-alias) }`
    or `buffer_donor={ (1, {}) }`. Raises `NotAProfile` for damage."""
    out: dict[int, str] = {}
    for number, entry in enumerate(program.entry.tolist()):
        aliases, donors = (program.part(number, which) for which in (ALIASES, DONORS))
        if found := _donated(aliases, donors):
            rows = program.instructions_of(np.array([entry] if entry >= 0 else [], np.int64))
            rows = rows[program.has_opcode(rows, "parameter".__eq__)]
            for row, parameter in zip(rows.tolist(), program.integers(rows, PARAMETER_NUMBER).tolist(), strict=True):
                entries = found.pop(parameter, {})  # the first of its number: parameters have one each
                if entries:
                    out[row] = ", ".join(f"{how}={{ {', '.join(each)} }}" for how, each in entries.items())
    return out


def _donated(aliases: memoryview | None, donors: memoryview | None) -> dict[int, dict[str, list[str]]]:
    """How each parameter is donated, by its number."""
    found: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for entry in [] if aliases is None else messages(aliases, _ENTRIES):
        parts = list(fields(entry))
        parameter, output = _number(parts, _PARAMETER), _index(parts, _OUTPUT_INDEX)
        kind = _KINDS.get(_number(parts, _KIND), "undefined")
        found[parameter][ALIAS].append(f"{output}: ({parameter}, {_index(parts, _PARAMETER_INDEX)}, {kind})")
    for entry in [] if donors is None else messages(donors, _ENTRIES):
        parts = list(fields(entry))
        parameter = _number(parts, _DONOR)
        found[parameter][DONOR].append(f"({parameter}, {_index(parts, _DONOR_INDEX)})")
    return found


def _number(parts: list[tuple[int, Content]], wanted: int) -> int:
    return next((content for number, content in parts if number == wanted and isinstance(content, int)), 0)


def _index(parts: list[tuple[int, Content]], wanted: int) -> str:
    """The place in a tuple, `{}` for the whole."""
    return f"{{{','.join(map(str, unpacked(content for number, content in parts if number == wanted)))}}}"


def sharding_text(message: memoryview, depth: int = 0) -> str:
    """`replicated`, `devices=[2,1,2]<=[4] last_tile_dim_replicate`, `{…}, {…}` for a tuple: what XLA writes in braces.

    Where the sharding came from in the framework's program is left out. Raises `NotAProfile` for damage.
    """
    found = list(islice(fields(message), 10_000))
    kind = _number(found, _TYPE)
    if kind == _TUPLE and depth < _DEEPEST:
        parts = [part for number, part in found if number == _PARTS and not isinstance(part, int)]
        texts = [f"{{{sharding_text(part, depth + 1)}}}" for part in parts[:_MOST_PARTS]]
        return ", ".join([*texts, "…"] if len(parts) > _MOST_PARTS else texts)

    def numbers(wanted: int) -> list[int]:
        return unpacked(content for number, content in found if number == wanted)

    if kind == _MAXIMAL:
        return f"maximal device={_numbers_text(numbers(_DEVICES))}"
    if kind != _OTHER:
        return _WORDS.get(kind, f"sharding of type {kind}")

    devices, iota, transposed = numbers(_DEVICES), numbers(_IOTA), numbers(_TRANSPOSED)
    text = f"devices=[{_numbers_text(numbers(_TILES))}]"
    if iota:
        text += f"<=[{_numbers_text(iota)}]"
        if transposed != sorted(transposed):
            text += f"T({_numbers_text(transposed)})"
    elif devices:
        text += _numbers_text(devices)
    if any(numbers(_REPLICATES_LAST)):
        text += " last_tile_dim_replicate"
    if last := numbers(_LAST_TILES):
        text += f" last_tile_dims={{{', '.join(_WORDS.get(one, str(one)) for one in last[:_MOST_PARTS])}}}"
    return text


def _numbers_text(numbers: list[int]) -> str:
    shown = list(map(str, numbers[:_MOST_PARTS]))
    return ",".join([*shown, "…"] if len(numbers) > _MOST_PARTS else shown)
