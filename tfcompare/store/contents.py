"""JSON in files that anybody may have written, as dataclasses: every value is checked against its annotation."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from datetime import datetime
from hashlib import blake2b
from threading import Lock
from typing import Any, NoReturn, TypeVar

import msgspec

from tfcompare.errors import TfcompareError

_T = TypeVar("_T")
_SIZE_BYTES = 8
_DIGEST_BYTES = 32
_ONE_AT_A_TIME = Lock()
"""msgspec collects what a type is made of when it first meets it: two threads that do so at once crash the process."""
_MOST_DIGITS = 20
"""Of an integer: 64 bits have no more, and the time to read one grows with their square."""


class Damaged(TfcompareError):
    """The content of a file is not what tfcompare writes."""

    def __init__(self, what: str = "its content is not as it was written") -> None:
        super().__init__(what)


class OtherVersion(Damaged):
    """The content of a file is what another version of tfcompare wrote, and cannot be used."""


def to_json(content: Any) -> bytes:
    """A dataclass, or a list of them, as JSON."""
    return json.dumps(content, default=_plain).encode()


def from_json(data: bytes | memoryview, kind: type[_T]) -> _T:
    """The dataclass (or list of dataclasses) of that type in JSON.

    Raises `Damaged` for what is no JSON, for fields that are missing or of another type, for numbers that are not
    finite, and for integers of more than 20 digits.
    """
    try:
        # Not by msgspec's own reader: names of files may hold bytes that are no text, which JSON has as surrogates.
        content = json.loads(bytes(data), parse_int=_integer, parse_float=_number, parse_constant=_constant)
        with _ONE_AT_A_TIME:
            return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise Damaged(f"has something else in it ({error})") from None
    except (ValueError, RecursionError) as error:
        raise Damaged(f"is no JSON ({type(error).__name__})") from None


def head_bytes(head: Any) -> bytes:
    """A dataclass as the head of a file: 8 bytes with the size of its JSON, then the JSON."""
    text = to_json(head)
    return len(text).to_bytes(_SIZE_BYTES, "little") + text


def split_head(data: bytes | memoryview, kind: type[_T]) -> tuple[_T, memoryview]:
    """(the head that `head_bytes` made, the bytes behind it); raises `Damaged`."""
    size, rest = int.from_bytes(data[:_SIZE_BYTES], "little"), memoryview(data)[_SIZE_BYTES:]
    return from_json(rest[:size], kind), rest[size:]


def sealed(content: Any) -> bytes:
    """A dataclass, or a list of them, as a file: a digest, then JSON."""
    text = to_json(content)
    return _checksum(text) + text


def unsealed(data: bytes, kind: type[_T]) -> _T:
    """What `sealed` made a file of; raises `Damaged` if the file has changed since, too."""
    digest, text = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if digest != _checksum(text):
        raise Damaged
    return from_json(text, kind)


def _checksum(text: bytes) -> bytes:
    return blake2b(text, digest_size=_DIGEST_BYTES // 2).hexdigest().encode()


def digest_of(content: object) -> str:
    """32 hex digits that name this content, of plain JSON values."""
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if hasattr(value, "item"):
        return value.item()
    return {field.name: getattr(value, field.name) for field in fields(value)}  # what is inside comes here by itself


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > _MOST_DIGITS:
        raise Damaged(f"has an integer of more than {_MOST_DIGITS} digits")
    return int(text)


def _number(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise Damaged("has a number that is not finite")
    return number


def _constant(text: str) -> NoReturn:
    raise Damaged(f"has {text}, which is no number")
