"""`tfcompare serve` and `demo`: the words that start the server, and the port that it listens on."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tfcompare import cli, settings
from tfcompare.commands import serve


def test_serve_hands_paths_and_port_on_to_streamlit() -> None:
    words = serve.command_line([Path("logs/a"), Path("-odd")], 8600)
    assert (words[1], Path(words[2]).is_file(), words[3], Path(words[4]).name) == ("-P", True, "run", "app.py")
    assert words[5:] == ["--server.port", "8600", "--", "logs/a", "./-odd"]


def test_serve_hands_roots_and_the_leave_to_record_on_to_the_app(tmp_path: Path) -> None:
    words = serve.command_line([Path("logs")], None, roots=[tmp_path, Path("-odd")], allow_capture=True)
    after = words[words.index("--") + 1 :]
    read = settings.read(after, {})
    assert (read.roots, read.allow_capture) == ((tmp_path, Path("-odd").absolute()), True)
    assert read.places == (Path("logs"),)


def test_serve_refuses_a_root_that_is_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["serve", "--root", str(tmp_path / "none")]) == 2
    assert "is not a folder; --root takes a folder" in capsys.readouterr().err


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """In place of becoming the server, the words that would start it."""
    started: list[list[str]] = []
    monkeypatch.delenv("STREAMLIT_SERVER_ADDRESS", raising=False)
    monkeypatch.setattr("os.execv", lambda _, words: started.append(words))
    return started


def test_serve_on_a_port_that_is_taken_says_what_to_do(tfcompare, no_server: list[list[str]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert tfcompare("serve", "--port", str(port)) == (
            2,
            "",
            f"tfcompare: port {port} is in use by another program; choose another with --port, or leave it out for "
            "the first free port from 8501\n",
        )
    assert no_server == []
    tfcompare("serve", "--port", str(port))
    assert [words[5:7] for words in no_server] == [["--server.port", str(port)]]


def test_serve_looks_at_the_port_of_the_address_that_it_will_listen_on(
    tfcompare, no_server: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.2", 0)) as other:
        port = str(other.getsockname()[1])
        tfcompare("serve", "--port", port)
        assert len(no_server) == 1
        for address in ("127.0.0.2", "0.0.0.0"):
            monkeypatch.setenv("STREAMLIT_SERVER_ADDRESS", address)
            assert tfcompare("serve", "--port", port)[0] == 2
    monkeypatch.setenv("STREAMLIT_SERVER_ADDRESS", "192.0.2.1")  # an address of nobody: Streamlit tells
    tfcompare("serve", "--port", port)
    assert len(no_server) == 2


def test_demo_serves_the_samples_and_prints_what_to_look_at(tfcompare, no_server: list[list[str]]) -> None:
    out = tfcompare("demo", "--port", "8699")[1]
    assert out.splitlines()[1:] == [f"  {n}. {sentence}" for n, sentence in enumerate(settings.DEMO_GUIDANCE, 1)]
    ((*_, port, dashes, place, option),) = no_server
    assert (port, dashes, place) == ("8699", "--", str(settings.sample_runs()))
    read = settings.read([place, option], {"TFCOMPARE_PLACES": "/elsewhere"})
    assert (read.places, read.is_demo) == ((settings.sample_runs(),), True)
    assert not settings.read([place], {}).is_demo


def test_the_server_imports_what_pages_need_before_anybody_comes() -> None:
    script = (
        "import runpy, sys; server = runpy.run_path(sys.argv[1]); server['import_all']();"
        "named = {'pandas', 'plotly', 'tfcompare.run', 'tfcompare.ui.pages.view', 'tfcompare.ui.widgets.tables'};"
        "named |= {'duckdb', 'xprof'};"
        "print(sorted(named & set(sys.modules)))"
    )
    words = serve.command_line([], None)
    done = subprocess.run([sys.executable, "-c", script, words[2]], capture_output=True, text=True, timeout=120)
    here = ["pandas", "plotly", "tfcompare.run", "tfcompare.ui.pages.view", "tfcompare.ui.widgets.tables"]
    assert done.stdout.splitlines()[-1] == str(here)
