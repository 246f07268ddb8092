"""Decodes texts of a profile, and limits their length."""

from __future__ import annotations

from hashlib import blake2b

LONGEST_BYTES = 2_048
"""Longer texts are shortened: names are repeated in table rows, so a long one could be stored a million times."""

_START_BYTES, _END_BYTES, _DIGEST_BYTES = 1_024, 512, 8
_LONGEST_LETTER = 4  # bytes
_CONTROLS = {code: " " if chr(code).isspace() else "" for code in (*range(0x20), *range(0x7F, 0xA0))}
"""Control characters, which would break lines of tables, CSV and C programs: line breaks and tabs become a space."""


def text_of(content: memoryview) -> str:
    """The text in these bytes; invalid UTF-8 becomes U+FFFD, and control characters are removed (`_CONTROLS`).

    A text longer than `LONGEST_BYTES` is reduced to its start and end, with its length and a digest between them, so
    that different texts remain different. The result only has characters that are valid in op names.
    """
    if len(content) <= LONGEST_BYTES:
        text = str(content, "utf-8", "replace")
    else:
        start, end = (str(part, "utf-8", "replace") for part in (content[:_START_BYTES], content[-_END_BYTES:]))
        middle = f"...{len(content)}_bytes_{blake2b(content, digest_size=_DIGEST_BYTES).hexdigest()}..."
        text = start + middle + end
    return text if text.isprintable() else text.translate(_CONTROLS)


def shortened(text: str) -> str:
    """A text that was put together, reduced as by `text_of` if it is long."""
    return text if len(text) <= LONGEST_BYTES // _LONGEST_LETTER else text_of(memoryview(text.encode()))
