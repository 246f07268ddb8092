"""The drawing of a flame graph: JavaScript for a canvas (`canvas/`), without Streamlit or any library, and its data.

`mount.js` says what the drawing is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tfcompare.views.blocks import FlameGraph
from tfcompare.views.flame.layout import layout
from tfcompare.views.verdict_marks import SIGNS, text_of

_CANVAS = Path(__file__).parent / "canvas"
_SCRIPTS = ("bars.js", "describe.js", "paint.js", "mount.js")


def script() -> str:
    """JavaScript that exports `mountFlame(element, data, onChoose)`; it needs that of `views.canvas`."""
    return "\n".join((_CANVAS / name).read_text(encoding="utf-8") for name in _SCRIPTS)


def style() -> str:
    """The CSS of the drawing."""
    return (_CANVAS / "flame.css").read_text(encoding="utf-8")


def subtitle(*, is_alone: bool, is_neutral: bool, per: str) -> str:
    """What widths and colours mean."""
    each = f" per {per}" if per else ""
    if is_alone:
        return f"Width: time{each}."
    colour = "" if is_neutral else " Colour: its change."
    return f"Width: the longer time{each}.{colour}"


def drawing(graph: FlameGraph) -> tuple[dict[str, Any], list[str]] | None:
    """The `data` of `mountFlame`, of which `nodes` is a frame, and the id of each of its nodes; None for an empty tree.

    It does not depend on which node is selected.
    """
    tree, is_alone = graph.draw(), len(graph.sides) == 1
    if is_alone:
        tree = tree.assign(**{f"{graph.metric}_candidate": tree[f"{graph.metric}_baseline"]})
    nodes = layout(tree, graph.metric)
    if nodes.empty:
        return None
    ids = nodes["node"].tolist()
    label, labels = pd.factorize(nodes["label"])
    verdict, verdicts = _verdicts(tree, nodes)
    is_plain = is_alone or graph.is_neutral
    # JavaScript has no numbers for integers of 64 bits.
    whole = dict.fromkeys(["parent", "depth", "status", "label", "verdict"], "int32")
    columns = nodes.assign(label=label, verdict=verdict).drop(columns="node").astype(whole)
    if is_plain:
        columns = columns.assign(change=0.0)
    token = int(pd.util.hash_pandas_object(nodes["node"]).sum()) % 2**32
    about = subtitle(is_alone=is_alone, is_neutral=graph.is_neutral, per=graph.per)
    data = {
        "nodes": columns,
        "labels": [str(one) for one in labels],
        "verdicts": verdicts,
        "sides": list(graph.sides),
        "title": graph.title,
        "about": about,
        "isPlain": is_plain,
        "isJudged": bool(verdicts),
        "token": token,
        "chooses": bool(graph.chooses),
    }
    return data, ids


def position(node: str, ids: Sequence[str]) -> int:
    """The position of the node with this id, −1 without it."""
    return ids.index(node) if node in ids else -1


def _verdicts(tree: pd.DataFrame, nodes: pd.DataFrame) -> tuple[np.ndarray[Any, Any], list[str]]:
    """For each node the position of its verdict in a list of texts, −1 without one; and that list."""
    if "verdict" not in tree:
        return np.full(len(nodes), -1), []
    judged = tree.set_index("node").loc[nodes["node"], ["verdict", "evidence"]].reset_index(drop=True)
    judged = judged[judged["verdict"].isin(list(SIGNS))]
    found = judged.groupby(["verdict", "evidence"], dropna=False, observed=True).ngroup()
    verdict = np.full(len(nodes), -1)
    verdict[judged.index] = found
    first = judged.assign(found=found).drop_duplicates("found").sort_values("found")
    return verdict, [text_of(*one) for one in zip(first["verdict"], first["evidence"], strict=True)]
