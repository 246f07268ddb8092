"""Names from disks, buckets and profiles as text that can be shown."""

from __future__ import annotations


def text_of(name: str) -> str:
    r"""`name` as text that can be encoded and shown: `\xff` for a byte that is no UTF-8, `\n` for a line break."""
    return name if name.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in name)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # where os.fsdecode puts a byte that it cannot decode
        return f"\\x{code - 0xDC00:02x}"
    return character.encode("unicode_escape").decode("ascii")
