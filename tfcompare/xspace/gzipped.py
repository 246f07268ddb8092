"""Decompresses gzipped profiles in memory, up to the size that a profile can have."""

from __future__ import annotations

import zlib

from tfcompare.errors import NotAProfile
from tfcompare.xspace.limits import LIMITS, Limits

_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 16
_USUAL_GROWTH, _FREE_GROWTH_BYTES = 100, 64 << 20  # profiles expand by a factor of three to eight


def is_gzipped(data: bytes | memoryview) -> bool:
    """Whether the data begins like a gzip file."""
    return bytes(data[:2]) == _MAGIC


def expand(data: bytes | memoryview, limits: Limits = LIMITS) -> memoryview:
    """Decompress gzip data with any number of members, limited to `limits.bytes` and to a plausible ratio.

    Raises `NotAProfile` if the data is damaged, truncated, or expands too much.
    """
    limit = min(limits.bytes, _FREE_GROWTH_BYTES + _USUAL_GROWTH * len(data))
    out = bytearray()
    member = zlib.decompressobj(wbits=31)
    is_between = False
    for at in range(0, len(data), _CHUNK):
        piece = bytes(data[at : at + _CHUNK])
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
    return memoryview(out).toreadonly()
