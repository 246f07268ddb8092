"""A dialog for the selected row of a table. It is open as long as the row is in the URL, so a link can open it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from tfcompare.markdown import as_code
from tfcompare.units import middle_ellipsis

TITLE_LENGTH = 72


def open_details(name: str, show: Callable[[], None], *, address: str = "") -> None:
    """Show `show` in a dialog titled `name`; closing it deselects the row, whose URL key is `row` after `address`.

    Only one dialog can be open on a page.
    """
    title = as_code(middle_ellipsis(name, TITLE_LENGTH))

    def body() -> None:
        if len(name) > TITLE_LENGTH:
            st.code(name, language=None, wrap_lines=True)
        show()

    st.dialog(title, width="large", on_dismiss=partial(_deselect, address))(body)()


def _deselect(address: str) -> None:
    st.query_params.pop(f"{address}row", None)
