"""Nothing outside of the roots is read, and nothing is written but new reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import unrecorded
from tests.fence_yard import WAYS_OUT, yard
from tests.mcp.agent import Agent, ask, failure, text_of
from tests.mcp.golden import write_run

__all__ = ["yard"]

TOOLS = {
    "find_runs": lambda place: {"path": place},
    "compare": lambda place: {"baseline": "inside", "candidates": [place]},
    "table": lambda place: {"baseline": place, "candidate": "inside", "name": "op_stats"},
    "query": lambda place: {"sql": "SHOW TABLES", "runs": ["inside", place]},
    "check": lambda place: {"baseline": "inside", "candidate": place, "conditions": []},
    "report": lambda place: {"baseline": "inside", "candidate": "inside", "format": "html", "path": f"{place}/r.html"},
}


@pytest.fixture
def shop(yard: Path) -> Path:
    """The yard with a run inside, and one in the secret folder, to which a link from inside leads."""
    write_run(yard / "root" / "inside", unrecorded.profile(steps=3))
    write_run(yard / "secret", unrecorded.profile(steps=3), host="classified")
    (yard / "root" / "shared" / "plugins" / "profile").mkdir(parents=True)
    linked = yard / "root" / "shared" / "plugins" / "profile" / "2026_11_30_12_00_00"
    linked.symlink_to(yard / "secret" / "plugins" / "profile" / "2026_11_30_12_00_00")
    return yard


def everything(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def test_no_tool_opens_what_lies_outside_of_the_roots(shop: Path) -> None:
    before = everything(shop)

    async def script(agent: Agent) -> str:
        for way in [*WAYS_OUT, "{yard}/root/shared", "shared"]:
            place = way.replace("{yard}", str(shop))
            for tool, arguments in TOOLS.items():
                if "shared" in way and tool in ("find_runs", "report"):
                    continue  # which lies inside; the runs there do not
                found = await agent.result(tool, **arguments(place))
                said = text_of(found).replace(place, "")
                assert found.is_error, (tool, place)
                assert "classified" not in said
                assert "Traceback" not in said
                assert "bug" not in said, (tool, place, said)
        return ""

    ask(script, shop / "root", writes=True)
    assert everything(shop) == before


def test_runs_that_a_link_leads_to_are_not_listed(shop: Path) -> None:
    async def script(agent: Agent) -> str:
        found = await agent.call("find_runs", path=".")
        assert [run["path"] for run in found["runs"] if run["state"] == "read"] == ["inside"]
        assert "classified" not in str(found)
        assert found["notes"] == ["Left out, since links lead to them outside of the roots: 3 of the runs."]
        return ""

    ask(script, shop / "root")


def test_a_path_below_another_root_is_absolute(shop: Path) -> None:
    write_run(shop / "rooted", unrecorded.profile(steps=3))

    async def script(agent: Agent) -> str:
        found = await agent.call("find_runs", path=str(shop / "rooted"))
        assert [run["path"] for run in found["runs"]] == [str(shop / "rooted")]
        await agent.call("compare", baseline="inside", candidates=[str(shop / "rooted")])
        return ""

    ask(script, shop / "root", shop / "rooted")


@pytest.mark.parametrize(
    ("path", "form", "why"),
    [
        ("inside/there.html", "html", "exists"),
        ("inside/plugins/profile/2026_11_30_12_00_00/report.html", "html", "the folder of a profile"),
        ("inside/plugins/profile/report.md", "markdown", "the folder of a profile"),
        ("loose/report.md", "markdown", "the folder of a profile"),
        ("inside/report.py", "html", ".html, .md or .json"),
        ("inside/report.md", "html", "differ"),
        ("new/report.html", "html", "its folder does not exist"),
        ("dangling.html", "html", "not below"),
    ],
)
def test_a_report_is_a_new_file_outside_of_profiles(shop: Path, path: str, form: str, why: str) -> None:
    root = shop / "root"
    (root / "inside" / "there.html").write_text("mine")
    (root / "loose").mkdir()
    (root / "loose" / "vm.xplane.pb").write_bytes(unrecorded.profile(steps=3))
    (root / "dangling.html").symlink_to(shop / "secret" / "new.html")
    before = everything(shop)

    async def script(agent: Agent) -> str:
        found = await agent.result("report", baseline="inside", candidate="inside", format=form, path=path)
        assert found.is_error
        assert why in text_of(found)
        return ""

    ask(script, root, writes=True)
    assert everything(shop) == before


def test_a_report_is_written_where_it_may_be(shop: Path) -> None:
    async def script(agent: Agent) -> str:
        runs = {"baseline": "inside", "candidate": "inside"}
        for form, path in (("html", "inside/r.html"), ("markdown", "inside/r.md"), ("json", "inside/r.json")):
            found = await agent.call("report", **runs, format=form, path=path)
            assert found == {"path": path, "size_bytes": (shop / "root" / path).stat().st_size}
        return ""

    ask(script, shop / "root", writes=True)


def test_without_permission_there_is_no_report(shop: Path) -> None:
    arguments = {"baseline": "inside", "candidate": "inside", "format": "html", "path": "r.html"}
    assert "unknown tool 'report'" in failure("report", shop / "root", **arguments)
