"""The drawing of the timeline: JavaScript for a canvas, and its style, without Streamlit or any library.

`mount.js` says what the drawing is given, and what it tells of.
"""

from pathlib import Path

_HERE = Path(__file__).parent
_SCRIPTS = ("axis.js", "find.js", "draw.js", "head.js", "controls.js", "tips.js", "pointers.js", "keys.js", "mount.js")


def script() -> str:
    """One JavaScript module that exports `mount(element, data, state, onChange)`."""
    return "\n".join((_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS)


def style() -> str:
    """The CSS of the drawing."""
    return (_HERE / "timeline.css").read_text(encoding="utf-8")
