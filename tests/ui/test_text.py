"""Text from files is data: it reads as it is and steers nothing."""

from __future__ import annotations

import random

import pytest
from markdown_it import MarkdownIt

from tfcompare.text import as_code, as_markdown


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a_b_c", "a_b_c"),
        ("__init__ _x_", r"\_\_init\_\_ \_x\_"),
        ("0.5 (10 %), 1.5-2.0 + x = y!", "0.5 (10 %), 1.5-2.0 + x = y!"),
        ("12. item", r"12\. item"),
        ("- item", r"\- item"),
        ("===", r"\==="),
        ("<script>", r"\<script\>"),
        ("[x](http://y)", "\\[x\\](http:\u2060//y)"),
        ("HTTPS://evil.test", "HTTPS:\u2060//evil.test"),
        ("www.evil.test", "www\u2060.evil.test"),
        ("me@evil.test", "me\u2060@evil.test"),
        ("a\u202eb\x1b[31m\udcff", r"a\\u202eb\\x1b\[31m\\xff"),
        (":red[x] :material/home: $x$", r"\:red\[x\] \:material/home: \$x\$"),
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


PIECES = [*"*_ab1)([]!-+=#|`.:$^{}/'>\\ ", "__", "b c", "12.", "--", "==", "~~", "<b>", "&amp;", "::"]


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(n, marks=pytest.mark.thorough) for n in range(4, 20))])
def test_a_parser_of_markdown_reads_the_text_as_it_is(seed: int) -> None:
    parser, rng = MarkdownIt("commonmark").enable(["table", "strikethrough"]), random.Random(seed)
    for _ in range(300):
        text = " ".join("".join(rng.choices(PIECES, k=rng.randint(1, 12))).split())
        if not text:
            continue
        for before in ("", "A line above.\n"):
            tokens = parser.parse(before + as_markdown(text))
            assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"], text
            inline = tokens[1].children or []
            assert {token.type for token in inline} <= {"text", "text_special", "softbreak"}, text
            assert "".join(token.content or " " for token in inline).removeprefix("A line above. ") == text
