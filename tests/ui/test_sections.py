"""Sections that unfold on a page."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

PATIENCE_S = 60


def _page() -> None:
    """A view of one section that unfolds, with an option inside; `made` in the session counts how often it was made."""
    from collections.abc import Iterator
    from dataclasses import dataclass
    from typing import Any

    import streamlit as st

    from tfcompare.ui.widgets.renderer import Renderer
    from tfcompare.views.blocks import MORE, Block, Section, Text
    from tfcompare.views.options import option
    from tfcompare.views.view import View

    @dataclass(frozen=True)
    class Options:
        shares: bool = option(False, "Shares")

    def more(options: Options) -> Iterator[Block]:
        st.session_state["made"] = st.session_state.get("made", 0) + 1
        yield Section("Inside", [Text(f"shares: {options.shares}")], is_open=True, choose=["shares"])

    def blocks(_subject: Any, options: Options) -> Iterator[Block]:
        yield Section(MORE, lambda: more(options))

    Renderer(None, {}).show_view(View("view", "View", blocks, options=Options))  # type: ignore[arg-type]


def test_what_unfolds_is_made_when_it_is_opened() -> None:
    page = AppTest.from_function(_page, default_timeout=PATIENCE_S).run()
    assert not page.exception
    assert "made" not in page.session_state
    assert page.expander[0].label == "More"


def test_an_address_opens_it_with_the_options_of_sections_inside() -> None:
    page = AppTest.from_function(_page, default_timeout=PATIENCE_S)
    page.query_params["more"] = "true"
    page.run()
    assert [text.value for text in page.markdown] == ["shares: False"]
    page.toggle[0].set_value(True).run()
    assert not page.exception
    assert [text.value for text in page.markdown] == ["shares: True"]
