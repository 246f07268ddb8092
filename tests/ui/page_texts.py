"""What a page says."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def texts(page: AppTest) -> str:
    """Its texts, information boxes and captions."""
    return "\n".join(element.value for element in [*page.markdown, *page.info, *page.caption])
