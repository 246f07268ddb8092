"""Reads what a report holds, as its own JavaScript does."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

from tests.ui.hostile_profile import EVIL, hostile
from tfcompare.comparison import Comparison, compare
from tfcompare.run import load

PAYLOAD = re.compile(r'<script type="text/plain" id="payload">([^<]*)</script>')


def payload_of(document: str) -> list[dict[str, Any]]:
    """The blocks that are drawn by scripts."""
    found = PAYLOAD.search(document)
    assert found is not None
    blocks: list[dict[str, Any]] = json.loads(gzip.decompress(base64.b64decode(found[1])))["blocks"]
    return blocks


def hostile_comparison(folder: Path) -> Comparison:
    """Two runs of which every name is hostile."""
    runs = []
    for name, scale in (("=a", 1.0), ("<b>b", 2.0)):
        file = folder / name / "plugins" / "profile" / EVIL.translate({ord("/"): "-", 0: "", 10: " "})[:80]
        file.mkdir(parents=True)
        (file / "host.xplane.pb").write_bytes(hostile(scale))
        runs.append(load(folder / name))
    return compare(*runs)
