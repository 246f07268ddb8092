"""`results.md`: sections between marks, each of which can be measured again without the others."""

from __future__ import annotations

import re
from pathlib import Path

_SECTION = re.compile(r"<!-- (?P<name>\w+)(?P<said>:[^>]*)? -->\n(?P<text>.*?)\n<!-- end of (?P=name) -->", re.DOTALL)
_TITLE = "# tfcompare beside xprof"
_ORDER = ("how", "tf_cpu", "tf_gpu", "jax_tpu", "jax_gpu", "samples", "first_use", "bounds")


class ResultsPage:
    """The page at `path`, with what it holds already; written anew with every section that is put in."""

    def __init__(self, path: Path) -> None:
        self._path = path
        found = _SECTION.finditer(path.read_text()) if path.exists() else ()
        self._sections = {m["name"]: (m["said"] or "", m["text"].strip()) for m in found}

    def put(self, name: str, text: str) -> None:
        """Have `text` as that section."""
        said = self._sections[name][0] if name in self._sections else ""
        self._sections[name] = said, text.strip()
        self._path.write_text(self.text())

    def text(self) -> str:
        """The whole page: sections in their order, those of others behind."""
        names = sorted(self._sections, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))
        blocks = [
            f"<!-- {name}{self._sections[name][0]} -->\n\n{self._sections[name][1]}\n\n<!-- end of {name} -->"
            for name in names
        ]
        return "\n\n".join([_TITLE, *blocks]) + "\n"
