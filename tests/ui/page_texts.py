"""What a page says."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def texts(page: AppTest) -> str:
    """Its texts with what their help says, information boxes and captions."""
    helps = (text.proto.help for text in page.markdown)
    return "\n".join([*(element.value for element in [*page.markdown, *page.info, *page.caption]), *helps])
