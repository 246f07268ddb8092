"""Packs taken apart and put together again, with the digest to go with what was changed."""

from __future__ import annotations

import json
import struct
from hashlib import blake2b
from typing import Any

_MAGIC_BYTES, _SIZE_AT, _HEAD_AT = 8, 24, 32


def taken_apart(pack: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """(the head, the bytes of each table)."""
    (size,) = struct.unpack("<Q", pack[_SIZE_AT:_HEAD_AT])
    head, at, blocks = json.loads(pack[_HEAD_AT : _HEAD_AT + size]), _HEAD_AT + size, {}
    for name, block in head["tables"].items():
        blocks[name], at = pack[at : at + block["size_bytes"]], at + block["size_bytes"]
    return head, blocks


def put_together(pack: bytes, head: Any, blocks: dict[str, bytes]) -> bytes:
    """The pack with this head, which may be any JSON, and these tables."""
    text = json.dumps(head).encode()
    body = b"".join((struct.pack("<Q", len(text)), text, *blocks.values()))
    return pack[:_MAGIC_BYTES] + blake2b(body, digest_size=16).digest() + body
