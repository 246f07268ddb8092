"""The drawing of the timeline: JavaScript for a canvas (`canvas/`), without Streamlit or any library, and its data.

`mount.js` says what the drawing is given, and which events it reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tfcompare.views.timeline.aligned import Aligned
from tfcompare.views.timeline.drawing import Viewport, default_window_us, drawing
from tfcompare.views.timeline.selection import drawn_selection
from tfcompare.views.timeline.words import Jump

Span = tuple[int, int]
"""(side, position in its table of spans)"""

FRAMES = ("spans", "drift", "matches")
"""What `component_data` returns as frames."""

_CANVAS = Path(__file__).parent / "canvas"
_SCRIPTS = (
    "axis.js",
    "find.js",
    "draw.js",
    "ruler.js",
    "controls.js",
    "tips.js",
    "dock.js",
    "pointers.js",
    "keys.js",
    "mount.js",
)


def script() -> str:
    """JavaScript that exports `mount(element, data, state, onChange)`; it needs that of `views.canvas`."""
    return "\n".join((_CANVAS / name).read_text(encoding="utf-8") for name in _SCRIPTS)


def style() -> str:
    """The CSS of the drawing."""
    return (_CANVAS / "timeline.css").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Labels:
    """What the sides are called: `names` in texts, `marks` beside their lanes, `colours` as their sign; and `said`, the
    selection in words, for those who do not see it."""

    names: Sequence[str]
    marks: Sequence[str]
    colours: Sequence[str]
    said: str = ""


def component_data(
    aligned: Aligned, look: Viewport, labels: Labels, *, token: str, selected: Span | None = None, jumps: Sequence[Jump]
) -> dict[str, Any]:
    """The `data` of `mount`: JSON values, and the frames `FRAMES`.

    `token` changes with time 0 and the compared steps, `selected` is (side, span), and `jumps` are buttons that lead to
    places.
    """
    names = {"letters": list(labels.names), "marks": list(labels.marks), "colours": list(labels.colours)}
    place = {"home": list(default_window_us(aligned, look)), "find": look.find, "token": token}
    spans = {"selected": drawn_selection(aligned, look, *selected) if selected else [], "said": labels.said}
    return drawing(aligned, look) | names | place | spans | {"jumps": [asdict(jump) for jump in jumps]}


def state_of(
    look: Viewport, *, range_us: tuple[float, float] | None, by_type: bool, shows_idle: bool, compact: bool
) -> dict[str, Any]:
    """The `state` of `mount`, as JSON values."""
    colour, window = "type" if by_type else "change", list(look.window_us) if look.window_us else None
    lanes = {"all": shows_idle, "opened": sorted(look.opened), "folded": sorted(look.folded)}
    shown = {"view": window, "range": range_us and list(range_us), "colour": colour, "shift": look.shift_us}
    return shown | lanes | {"width": look.width_px, "compact": compact}
