"""The version of the reader that made a frame; frames of other versions are not used."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path

_CODE = ("__init__.py", "frames", "hlo", "schema", "store", "tables", "xspace", "run.py", "tools/runs/listing.py")
"""The modules that make packs and records, and the file with the package's version."""


@cache
def reader_version() -> str:
    """A digest of the code that turns a profile into frames, which makes manual version numbers unnecessary."""
    package = Path(__file__).parent.parent
    digest = blake2b(digest_size=8)
    for part in _CODE:
        place = package / part
        for source in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(source.relative_to(package).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()
