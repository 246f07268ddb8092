"""Gzipped profiles: expanded in memory, and never further than a profile can grow."""

from __future__ import annotations

import zlib

from tfcompare.errors import NotAProfile

MAX_EXPANDED_BYTES = 8 << 30
"""A gzipped file that grows beyond this is refused."""

_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 16
_USUAL_GROWTH, _FREE_GROWTH_BYTES = 100, 64 << 20  # profiles grow by three to eight times


def is_gzipped(data: bytes | memoryview) -> bool:
    """Whether the data begins as a gzip file does."""
    return bytes(data[:2]) == _MAGIC


def expand(data: bytes) -> bytes:
    """gunzip, member by member, never beyond `MAX_EXPANDED_BYTES` nor many times what profiles grow by.

    Raises `NotAProfile` where the data is damaged, breaks off, or grows too far.
    """
    limit = min(MAX_EXPANDED_BYTES, _FREE_GROWTH_BYTES + _USUAL_GROWTH * len(data))
    out = bytearray()
    member = zlib.decompressobj(wbits=31)
    is_between = False
    for at in range(0, len(data), _CHUNK):
        piece = data[at : at + _CHUNK]
        while piece:
            if is_between:
                member, piece = zlib.decompressobj(wbits=31), piece.lstrip(b"\0")
                is_between = not piece
                continue
            try:
                out += member.decompress(piece, _CHUNK)
            except zlib.error as error:
                raise NotAProfile(None, len(out), "gzipped data", f"damaged data ({error})") from error
            if len(out) > limit:
                expected = f"a profile of at most {limit:,} bytes in a gzipped file of {len(data):,}"
                raise NotAProfile(None, len(out), expected, "more")
            is_between = member.eof
            piece = member.unused_data if member.eof else member.unconsumed_tail
    if not is_between:
        raise NotAProfile(None, len(out), "the rest of the gzipped data", "the end of the file")
    return bytes(out)
