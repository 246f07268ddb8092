"""JSON from files that anybody may have written, as dataclasses: every value is checked against its annotation."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from tfcompare.errors import TfcompareError

_T = TypeVar("_T")
_Converter = Callable[[object, str], Any]
"""Called with a value and where it is; raises `Damaged`."""

_SIZE_BYTES = 8

MOST = 1 << 64
"""The largest absolute value of an integer."""
FIRST_TIME, LAST_TIME = datetime(1600, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)


class Damaged(TfcompareError):
    """The content of a file is not what tfcompare writes."""

    def __init__(self, what: str = "its content is not as it was written") -> None:
        super().__init__(what)


def json_in(data: bytes) -> Any:
    """The JSON in a file; raises `Damaged`."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"is no JSON ({type(error).__name__})") from None


def head_bytes(head: Any) -> bytes:
    """A dataclass as the head of a file: 8 bytes with the size of its JSON, then the JSON."""
    text = json.dumps(asdict(head)).encode()
    return len(text).to_bytes(_SIZE_BYTES, "little") + text


def split_head(data: bytes | memoryview, kind: type[_T]) -> tuple[_T, memoryview]:
    """(the head that `head_bytes` made, the bytes behind it); raises `Damaged`."""
    size, rest = int.from_bytes(data[:_SIZE_BYTES], "little"), memoryview(data)[_SIZE_BYTES:]
    return from_json(json_in(bytes(rest[:size])), kind), rest[size:]


def from_json(value: object, kind: type[_T]) -> _T:
    """`value` as that dataclass; raises `Damaged` for missing, unknown and mistyped fields.

    Integers are at most 2^64, times lie between 1600 and 3000, and floats are finite.
    """
    converted: _T = _as_dataclass(value, kind, kind.__name__)
    return converted


@cache
def _converter(hint: Any) -> _Converter:
    """The function that checks and converts values with that annotation."""
    if is_dataclass(hint) and isinstance(hint, type):
        return lambda value, where: _as_dataclass(value, hint, where)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (other,) = (_converter(one) for one in arguments if one is not type(None))
        return lambda value, where: None if value is None else other(value, where)
    if origin is tuple:
        item = _converter(arguments[0])
        return lambda value, where: tuple([item(one, where) for one in _instance(value, list, where)])
    if origin in (dict, Mapping):
        key, item = map(_converter, arguments)
        return lambda value, where: {key(k, where): item(v, where) for k, v in _instance(value, dict, where).items()}
    return _checks()[hint]


def _as_dataclass(value: object, kind: Any, where: str) -> Any:
    content, converters = _instance(value, dict, where), _field_converters(kind)
    if content.keys() != converters.keys():
        raise Damaged(f"{where} has other fields than {', '.join(converters)}")
    return kind(**{name: convert(content[name], f"{where}.{name}") for name, convert in converters.items()})


@cache
def _field_converters(kind: Any) -> dict[str, _Converter]:
    hints = get_type_hints(kind)
    return {f.name: _converter(hints[f.name]) for f in fields(kind) if f.init}


def _integer(value: object, where: str) -> int:
    if isinstance(value, bool) or abs(number := _instance(value, int, where)) > MOST:
        raise Damaged(f"{where} is no number of at most 2^64")
    return int(number)


def _number(value: object, where: str) -> float:
    number = _integer(value, where) if isinstance(value, int) else _instance(value, float, where)
    if not math.isfinite(number):
        raise Damaged(f"{where} is no finite number")
    return float(number)


def _time(value: object, where: str) -> datetime:
    try:
        when = datetime.fromisoformat(_instance(value, str, where))
        if when.tzinfo is not None and FIRST_TIME <= when <= LAST_TIME:
            return when
    except (ValueError, OverflowError):
        pass
    raise Damaged(f"{where} is no time between {FIRST_TIME.year} and {LAST_TIME.year}")


@cache
def _checks() -> dict[Any, _Converter]:
    """The function that checks a value of each annotated type."""
    return {
        str: lambda value, where: _instance(value, str, where),
        int: _integer,
        float: _number,
        bool: lambda value, where: _instance(value, bool, where),
        datetime: _time,
    }


def _instance(value: object, kind: Any, where: str) -> Any:
    if not isinstance(value, kind):
        wanted = getattr(kind, "__name__", str(kind))
        raise Damaged(f"{where} is no {wanted}")
    return value
