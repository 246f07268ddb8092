"""What `pip install .` brings: the command, the app with its pages, its settings and its sample runs."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.profiles import ROOT
from tfcompare import __version__
from tfcompare.mcp.definitions import PAGES


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def files_below(folder: str, pattern: str = "*") -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for path in (ROOT / folder).rglob(pattern)
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_wheel_holds_the_whole_package(wheel: zipfile.ZipFile) -> None:
    assert {".py", ".js", ".css", ".json", ".svg", ".html"} == {Path(name).suffix for name in files_below("tfcompare")}
    assert files_below("tfcompare") <= set(wheel.namelist())


def test_the_wheel_holds_all_that_serve_and_mcp_need(wheel: zipfile.ZipFile) -> None:
    wanted = {"app.py", ".streamlit/config.toml"} | files_below("pages", "*.py") | files_below("sample_logs")
    wanted |= {f"docs/{name}.md" for name in PAGES}
    assert {f"tfcompare/_app/{name}" for name in wanted} <= set(wheel.namelist())


def test_the_wheel_holds_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert tops == {"tfcompare", f"tfcompare-{__version__}.dist-info"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name or name.endswith((".nbi", ".nbc"))]


def test_the_wheel_declares_the_command_and_needs_no_tensorflow(wheel: zipfile.ZipFile) -> None:
    info = f"tfcompare-{__version__}.dist-info"
    declared = wheel.read(f"{info}/entry_points.txt").decode()
    assert "[console_scripts]\ntfcompare = tfcompare.cli:main\n" in declared
    assert "[pytest11]\ntfcompare = tfcompare.pytest_plugin\n" in declared
    needs = [line for line in wheel.read(f"{info}/METADATA").decode().splitlines() if line.startswith("Requires-Dist:")]
    always = {line.split()[1].rstrip("<>=.,0123456789") for line in needs if "extra ==" not in line}
    assert always == {
        *("duckdb", "fsspec", "markdown-it-py", "msgspec", "numba", "numpy", "pandas", "platformdirs", "plotly"),
        *("pyarrow", "scipy", "streamlit", "tsdownsample"),
    }


def test_serve_finds_the_app_of_the_wheel(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    script = (
        "from pathlib import Path\nfrom tfcompare import settings\nfrom tfcompare.commands import serve\n"
        "print(settings.app_folder())\nprint(serve.command_line([], None)[4])\nprint(settings.sample_runs().is_dir())"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    folder = tmp_path / "tfcompare" / "_app"
    assert done.stdout.splitlines() == [str(folder), str(folder / "app.py"), "True"]


def test_the_settings_keep_the_app_on_this_machine_and_silent() -> None:
    config = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    assert config["server"]["address"] == "localhost"
    assert config["browser"]["gatherUsageStats"] is False
    assert config["client"]["showErrorDetails"] == "none"
    assert "http" not in str(config["theme"]), "no font or theme comes from elsewhere"


def test_requirements_hold_all_that_the_package_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert set(project["dependencies"]) <= set(lines)


@pytest.mark.parametrize("page", sorted((ROOT / "pages").glob("*.py")), ids=lambda path: path.name)
def test_pages_are_thin_and_shown_in_a_page(page: Path) -> None:
    source = page.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 12
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    assert {"ui.page", "view.show"} & {ast.unparse(call.func) for call in calls}
