"""Text from files is data: it reads as it is and steers nothing."""

from __future__ import annotations

import pytest

from tfcompare.ui.widgets.text import as_code, as_markdown


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a_b_c", r"a\_b\_c"),
        ("<script>", r"\<script\>"),
        ("[x](http://y)", r"\[x\]\(http\://y\)"),
        (":red[x] :material/home: $x$", r"\:red\[x\] \:material/home\: \$x\$"),
        ("two\n\nlines", "two lines"),
        ("* item # head", r"\* item \# head"),
    ],
)
def test_markdown_is_escaped(text: str, markdown: str) -> None:
    assert as_markdown(text) == markdown


def test_code_cannot_be_left() -> None:
    assert as_code("a`b") == "`a'b`"
    assert as_code("a\n\n![i](//elsewhere)\0") == "`a ![i](//elsewhere)\0`"
    assert as_code(" ") == "` `"
