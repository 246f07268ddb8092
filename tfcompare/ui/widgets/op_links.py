"""Links to the view of one op."""

from __future__ import annotations

from tfcompare.ui.frame import sidebar, state
from tfcompare.ui.frame.pair import Pair

OP_PAGE = "pages/2_Op_stats.py"


def op_link(pair: Pair, row: str) -> None:
    """A link that opens the op with this key of the op table: in every step, its kernels and its memory."""
    detail = {} if pair.is_single else {"detail": pair.candidate.id}
    sidebar.link(OP_PAGE, "Steps, kernels and memory of this op", state.chosen(), icon=":material/open_in_new:",
                 more=detail | {"row": row})  # fmt: skip
