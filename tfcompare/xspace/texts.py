"""Texts of a profile: decoded, and kept to a length that tables of many rows can bear."""

from __future__ import annotations

from hashlib import blake2b

LONGEST_BYTES = 2_048
"""Longer texts are shortened: every row of a table holds its names, so one long name would be there a million times."""

_START_BYTES, _END_BYTES, _DIGEST_BYTES = 1_024, 512, 8


def text_of(content: memoryview) -> str:
    """The text in these bytes; those that are no UTF-8 become U+FFFD.

    Of one longer than `LONGEST_BYTES`, its start and its end around its length and a digest, which keeps different
    texts apart, all in characters that names of ops may have.
    """
    if len(content) <= LONGEST_BYTES:
        return content.tobytes().decode("utf-8", errors="replace")
    start, end = (part.tobytes() for part in (content[:_START_BYTES], content[-_END_BYTES:]))
    middle = f"...{len(content)}_bytes_{blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()}..."
    return start.decode("utf-8", errors="replace") + middle + end.decode("utf-8", errors="replace")
