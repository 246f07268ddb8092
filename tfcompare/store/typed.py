"""JSON from files that anybody may have written, as dataclasses: every value is checked against its annotation."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from tfcompare.errors import TfcompareError

_T = TypeVar("_T")

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
    converted: _T = _converted(value, kind, kind.__name__)
    return converted


def _converted(value: object, hint: Any, where: str) -> Any:
    if is_dataclass(hint) and isinstance(hint, type):
        return _as_dataclass(value, hint, where)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (other,) = (one for one in arguments if one is not type(None))
        return None if value is None else _converted(value, other, where)
    if origin is tuple:
        return tuple(_converted(one, arguments[0], where) for one in _instance(value, list, where))
    if origin in (dict, Mapping):
        items = _instance(value, dict, where).items()
        return {_converted(k, arguments[0], where): _converted(v, arguments[1], where) for k, v in items}
    return _checks()[hint](value, where)


def _as_dataclass(value: object, kind: Any, where: str) -> Any:
    content, hints = _instance(value, dict, where), _hints(kind)
    if content.keys() != hints.keys():
        raise Damaged(f"{where} has other fields than {', '.join(hints)}")
    return kind(**{name: _converted(content[name], hint, f"{where}.{name}") for name, hint in hints.items()})


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {f.name: hints[f.name] for f in fields(kind) if f.init}


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
def _checks() -> dict[Any, Any]:
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
