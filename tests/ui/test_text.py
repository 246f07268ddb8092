"""Text from files is data: it reads as it is and steers nothing."""

from __future__ import annotations

import pytest

from tfcompare.markdown import as_code, as_markdown


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a_b_c", r"a\_b\_c"),
        ("<script>", r"\<script\>"),
        ("[x](http://y)", "\\[x\\]\\(http\\:\u2060//y\\)"),
        ("HTTPS://evil.test", "HTTPS\\:\u2060//evil\\.test"),
        ("www.evil.test", "www\u2060\\.evil\\.test"),
        ("me@evil.test", "me\u2060@evil\\.test"),
        ("a\u202eb\x1b[31m\udcff", r"a\\u202eb\\x1b\[31m\\xff"),
        (":red[x] :material/home: $x$", r"\:red\[x\] \:material/home\: \$x\$"),
        ("two\n\nlines", "two lines"),
        ("* item # head", r"\* item \# head"),
    ],
)
def test_markdown_is_escaped(text: str, markdown: str) -> None:
    assert as_markdown(text) == markdown


def test_code_cannot_be_left() -> None:
    assert as_code("a`b") == "`a'b`"
    assert as_code("a\n\n![i](//elsewhere)\0") == "`a ![i](//elsewhere)\\x00`"
    assert as_code(" ") == "` `"
