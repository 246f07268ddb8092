"""The definitions are resources, whole, in parts of a bounded size."""

from __future__ import annotations

import re

import anyio
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from tests.profiles import ROOT, SAMPLES
from tfcompare import schema
from tfcompare.mcp.answers import MOST_BYTES
from tfcompare.mcp.definitions import PAGES, sections
from tfcompare.mcp.places import Places
from tfcompare.mcp.server import server


async def read(uri: str) -> str:
    async with Client(server(Places((SAMPLES,)))) as client:
        (content,) = (await client.read_resource(uri)).contents
        assert len(content.text.encode()) <= MOST_BYTES
        return content.text


@pytest.mark.parametrize("page", PAGES)
def test_a_page_lists_its_sections_and_these_hold_all_of_it(page: str) -> None:
    listed = re.findall(r"^- (tfcompare://\S+)$", anyio.run(read, f"tfcompare://{page}"), re.MULTILINE)
    assert listed == [f"tfcompare://{page}/{name}" for name in sections(page)]
    every = "\n".join(sections(page).values())
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8").partition("\n## ")[2]
    lost = [line for line in text.splitlines()[1:] if line not in every and not line.startswith("#")]
    assert lost == []
    assert all(len(part.encode()) <= MOST_BYTES for part in sections(page).values())


def test_the_columns_of_each_table_are_a_section() -> None:
    text = anyio.run(read, "tfcompare://tables/op_stats")
    assert all(f"| `{column.name}` |" in text for column in schema.table("op_stats").columns)
    assert set(schema.TABLES) <= set(sections("tables"))


def test_an_unknown_section_says_what_may_be_meant() -> None:
    async def refused(uri: str) -> str:
        async with Client(server(Places((SAMPLES,)))) as client:
            with pytest.raises(MCPError) as error:
                await client.read_resource(uri)
        return str(error.value)

    assert "did you mean 'op_stats'" in anyio.run(refused, "tfcompare://tables/op_stat")
    assert "must be one of: numbers, verdicts, tables" in anyio.run(refused, "tfcompare://secrets/op_stats")
