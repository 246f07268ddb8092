"""Which version of the reader made a frame: frames of another one are not used."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path

_MADE_BY = (
    "__init__.py",
    "xspace",
    "frames",
    "schema",
    "store/packing.py",
    "store/records.py",
    "run.py",
    "tools/listing.py",
)
"""What a profile's way into a pack, and a run's into its record, leads through, and the package's version."""


@cache
def reader_version() -> str:
    """A digest of the code that turns a profile into frames, so that nobody has to remember to count a version up."""
    package = Path(__file__).parent.parent
    digest = blake2b(digest_size=8)
    for part in _MADE_BY:
        place = package / part
        for source in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            digest.update(source.relative_to(package).as_posix().encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()
