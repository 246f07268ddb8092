"""The GitHub Action: its scripts on sample runs with an API of one's own, and what its declaration names."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from markdown_it import MarkdownIt

from tests.profiles import ROOT, SAMPLE_RUNS
from tests.ui.hostile_profile import hostile

ACTION = ROOT / ".github" / "actions" / "tfcompare"
SMALL, LARGE = (str(SAMPLE_RUNS[f"filters_{name}"]) for name in ("16_8", "512_128"))
MARKER = "<!-- tfcompare:tfcompare -->"
TOKEN = "secret"


class Api(ThreadingHTTPServer):
    """The comments of a pull request; it answers with `failing` if that is a status."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Comments)
        self.comments: list[dict[str, object]] = []
        self.asked: list[tuple[str, str]] = []
        self.failing, self.forbidden = 0, False
        self.answer: object = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def ours(self) -> list[str]:
        return [str(one["body"]) for one in self.comments if str(one["body"]).startswith(MARKER)]


class Comments(BaseHTTPRequestHandler):
    server: Api

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""

    def answer(self) -> None:
        api, split = self.server, urlsplit(self.path)
        api.asked.append((self.command, split.path))
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = json.loads(content)["body"] if content else ""
        found: object = {}
        if self.command == "GET":
            query = {name: int(values[0]) for name, values in parse_qs(split.query).items()}
            first = (query["page"] - 1) * query["per_page"]
            found = api.comments[first : first + query["per_page"]]
        elif self.command == "POST":
            api.comments.append({"id": len(api.comments), "body": body})
        elif not api.forbidden:
            api.comments[int(split.path.rpartition("/")[2])]["body"] = body
        status = (
            api.failing
            or 403 * (api.forbidden and self.command == "PATCH")
            or (200 if self.headers["Authorization"] == f"Bearer {TOKEN}" else 401)
        )
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(found if api.answer is None else api.answer).encode())

    do_GET = do_POST = do_PATCH = answer  # noqa: N815


@pytest.fixture
def api() -> Iterator[Api]:
    with Api() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def run(script: str, folder: Path, **environment: str) -> tuple[int, str]:
    """The exit status and the output of a script of the action, run in the folder."""
    given = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT), "RUNNER_TEMP": str(folder)}
    given |= {name: os.environ[name] for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME") if name in os.environ}
    words = [sys.executable, str(ACTION / script)]
    done = subprocess.run(words, cwd=folder, env=given | environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def checked(folder: Path, baseline: str, candidate: str, *conditions: str, **more: str) -> tuple[dict[str, str], str]:
    """The outputs of the script that checks, and its log."""
    output = folder / "output"
    output.write_text("")
    inputs = {
        "BASELINE": baseline,
        "CANDIDATE": candidate,
        "CONDITIONS": "\n".join(conditions),
        "STRICT": "false",
        "REPORT": "report.html",
        "BASELINE_FILE": "tfcompare-baseline.json",
    }
    files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    status, log = run("check.py", folder, **files, **inputs | more)
    assert status == 0, log
    return {name: value for name, _, value in re.findall(r"(\w+)<<(\w+)\n(.*)\n\2\n", output.read_text())}, log


def commented(folder: Path, api: Api, body: str, **more: str) -> tuple[int, str]:
    """The exit status and the log of the script that comments."""
    event = folder / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    inputs = {"BODY": body, "TOKEN": TOKEN, "NAME": "tfcompare", "REPORT_URL": "https://ci.test/artifacts/1"}
    of_github = {"GITHUB_API_URL": api.url, "GITHUB_REPOSITORY": "a/b", "GITHUB_EVENT_PATH": str(event)}
    return run("comment.py", folder, **of_github | inputs | more)


def test_two_runs_are_one_comment_that_is_kept_up_to_date(tmp_path: Path, api: Api) -> None:
    outputs, _ = checked(tmp_path, SMALL, LARGE, "step_time>+5%", "", "peak_memory>+10%")
    assert outputs["status"] == "1" and (tmp_path / outputs["report"]).read_text().startswith("<!DOCTYPE html>")
    assert commented(tmp_path, api, outputs["body"]) == (0, "")
    (text,) = api.ours
    for part in (
        "Check FAILED (2 failed)",
        " per step** = ",
        "| Largest changes",
        "[Report](https://ci.test/artifacts/1)",
    ):
        assert part in text, "the verdict, what the change consists of, the largest changes, and the report"
    assert (tmp_path / "summary.md").read_text() == Path(outputs["body"]).read_text()

    api.comments = [{"id": i, "body": None if i else f"see {MARKER}"} for i in range(130)] + api.comments
    api.comments[130]["id"] = 130
    outputs, _ = checked(tmp_path, SMALL, SMALL, "step_time>+5%", REPORT="")
    assert outputs["status"] == "0" and commented(tmp_path, api, outputs["body"]) == (0, "")
    (text,) = api.ours
    assert "Check passed (1 passed)" in text and len(api.comments) == 131
    assert api.asked[-1] == ("PATCH", "/repos/a/b/issues/comments/130")
    commented(tmp_path, api, outputs["body"], NAME="another model")
    assert len(api.comments) == 132, "another comparison has a comment of its own"


def test_a_comment_of_somebody_else_is_none_of_ours(tmp_path: Path, api: Api) -> None:
    api.comments, api.forbidden = [{"id": 0, "body": f"{MARKER} all is well"}], True
    outputs, _ = checked(tmp_path, SMALL, SMALL, "step_time>+5%", REPORT="")
    assert commented(tmp_path, api, outputs["body"]) == (0, "")
    assert len(api.ours) == 2 and "Check passed" in api.ours[1]


def test_a_baseline_by_name_and_what_cannot_be_judged(tmp_path: Path) -> None:
    from tfcompare import cli

    file = str(tmp_path / "tfcompare-baseline.json")
    assert cli.main(["baseline", "set", "main", SMALL, "--file", file]) == 0
    outputs, _ = checked(tmp_path, "main", LARGE, "step_time>+5%")
    assert outputs["status"] == "1" and outputs["report"] == ""
    assert "FAILED" in Path(outputs["body"]).read_text()
    for baseline, condition, status in (("main", "device_time>+5%", "2"), ("other", "step_time>+5%", "2")):
        outputs, _ = checked(tmp_path, baseline, SMALL, condition)
        assert outputs["status"] == status
    assert "unknown baseline" in Path(outputs["body"]).read_text()


def test_inputs_are_values_and_no_options(tmp_path: Path) -> None:
    evil = "--report=/tmp/x $(touch here) `touch here`; touch here"
    outputs, log = checked(tmp_path, "nowhere/--help", f"{evil}", f"step_time>+5% {evil}", STRICT=evil)
    assert outputs["status"] == "2" and not (tmp_path / "here").exists()
    assert "is no condition" in log
    before, after = log.split("\n", 1)[0], log.rstrip("\n").rsplit("\n", 1)[-1]
    assert before.removeprefix("::stop-commands::") == after.strip(":"), "nothing in between is a command to the runner"


def test_names_of_a_profile_are_text_in_the_comment(tmp_path: Path, api: Api) -> None:
    name = "</details><img src=x> @octocat #12 | [l](//evil.test) ![i](//evil.test/i.png)\n::error::x"
    for run_name, scale in (("before", 1.0), ("after", 2.0)):
        (tmp_path / run_name).mkdir()
        (tmp_path / run_name / "vm.xplane.pb").write_bytes(hostile(scale, name))
    outputs, _ = checked(tmp_path, "./before", "./after", "kernel:*>+5%", f"op:{name.splitlines()[0]}>+5%")
    assert commented(tmp_path, api, outputs["body"], REPORT_URL="javascript:alert(1)") == (0, "")
    (text,) = api.ours
    assert "octocat" in text
    tokens = [
        one
        for block in MarkdownIt("gfm-like", {"linkify": False}).parse(text)
        for one in (block, *(block.children or ()))
    ]
    html = "".join(one.content for one in tokens if one.type in ("html_block", "html_inline"))
    assert set(re.findall(r"<[^>]*>", html)) <= {
        MARKER,
        "<details>",
        "</details>",
        "<summary>",
        "</summary>",
        "<sub>",
        "</sub>",
        "<br>",
    }
    assert html.count("<details>") == html.count("</details>")
    assert not [one for one in tokens if one.type in ("link_open", "image")]
    assert not re.search(r"@\w|#\d", text), "it mentions nobody"


@pytest.mark.parametrize(
    ("failing", "answer"), [(403, None), (500, None), (0, "not a list"), (0, [{"id": "x", "body": MARKER}])]
)
def test_an_api_that_fails_is_a_warning(tmp_path: Path, api: Api, failing: int, answer: object) -> None:
    (tmp_path / "body.md").write_text("text")
    api.failing, api.answer = failing, answer
    status, log = commented(tmp_path, api, "body.md")
    assert status == 0 and re.fullmatch(r"::warning [^\n]*could not comment[^\n]*pull-requests: write[^\n]*\n", log)
    assert TOKEN not in log


def test_a_long_result_is_cut_and_other_events_have_no_comment(tmp_path: Path, api: Api) -> None:
    (tmp_path / "body.md").write_text("<details><summary>x</summary>\n" + "a line\n" * 20_000)
    assert commented(tmp_path, api, "body.md", REPORT_URL="") == (0, "")
    (text,) = api.ours
    assert len(text) < 65_000 and "</details>" in text and text.endswith("summary of the job.")
    (tmp_path / "push.json").write_text(json.dumps({"ref": "refs/heads/main"}))
    status, log = commented(tmp_path, api, "body.md", GITHUB_EVENT_PATH=str(tmp_path / "push.json"))
    assert status == 0 and "no job of a pull request" in log and len(api.comments) == 1


def test_the_declaration_fits_the_scripts() -> None:
    action = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    text = json.dumps(action)
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == set(action["inputs"]), "each input is declared and used"
    ids = {step["id"]: step for step in action["runs"]["steps"] if "id" in step}
    assert set(re.findall(r"steps\.(\w+)\.", text)) == set(ids)
    scripts = {path.name for path in ACTION.glob("*.py")}
    runs = [step["run"] for step in action["runs"]["steps"] if "run" in step]
    assert set(re.findall(r"\$GITHUB_ACTION_PATH/([\w.]+)", " ".join(runs))) == scripts
    assert not [one for one in runs if "${{" in one], "no input is read by a shell"
    for status in (0, 1, 2):
        done = subprocess.run(["bash", "-c", runs[-1]], env={"STATUS": str(status)}, check=False)
        assert done.returncode == status, "the step ends as the check does"
    for step in action["runs"]["steps"]:
        if script := next((name for name in scripts if name in step.get("run", "")), None):
            read = set(re.findall(r"\"([A-Z_]+)\"|'([A-Z_]+)'", (ACTION / script).read_text(encoding="utf-8")))
            names = {name for pair in read for name in pair if name and not name.startswith(("GITHUB_", "RUNNER_"))}
            assert names - {"GET", "POST", "PATCH"} == set(step["env"]) - {"PYTHON"}
