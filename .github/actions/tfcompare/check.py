"""Run `tfcompare check` for the action, and write its result to the job's summary and to a file for a comment.

All inputs are environment variables. Outputs: `status`, the exit status of the check; `body`, the file with the result
in Markdown; `report`, the file of the report, empty if there is none. The exit status is 0 whatever the check's is.
"""

from __future__ import annotations

import html
import os
import re
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path


def words(body: Path) -> list[str]:
    """The arguments of `check`; with two runs it writes a report as Markdown to `body`."""
    baseline, candidate, report = (os.environ[name] for name in ("BASELINE", "CANDIDATE", "REPORT"))
    conditions = [line.strip() for line in os.environ["CONDITIONS"].splitlines() if line.strip()]
    found = ["check", "--format=markdown", *(f"--fail-if={condition}" for condition in conditions)]
    found += ["--strict"] if os.environ["STRICT"] == "true" else []
    if is_name(baseline):
        return [*found, f"--baseline={baseline}", f"--baseline-file={os.environ['BASELINE_FILE']}", "--", candidate]
    found += [f"--report={body}", *([f"--report={report}"] if report else [])]
    return [*found, "--", baseline, candidate]


def is_name(baseline: str) -> bool:
    """Whether it is the name of a baseline: neither a path that is there nor one with separators."""
    return not re.search(r"[/\\]", baseline) and not Path(baseline).exists()


def main() -> None:
    """Check, and write the outputs."""
    folder = Path(tempfile.mkdtemp(dir=os.environ.get("RUNNER_TEMP")))
    body, report = folder / "check.md", Path(os.environ["REPORT"])
    before = report.stat().st_mtime_ns if report.is_file() else None
    command = [sys.executable, "-P", "-m", "tfcompare", *words(body)]
    env = os.environ | {"PYTHONUTF8": "1"}  # also where a pipe has another encoding
    done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False, env=env)
    sys.stdout.reconfigure(encoding="utf-8")
    # What is between these two lines of a log is no command to the runner, whatever names are in it.
    token = secrets.token_hex()
    sys.stdout.write(f"::stop-commands::{token}\n{done.stdout}{done.stderr}\n::{token}::\n")
    if not body.exists():
        failed = f"### tfcompare: not judged\n\n<pre>{html.escape(done.stderr)}</pre>\n"
        body.write_text(done.stdout or failed, encoding="utf-8")
    is_new = report.is_file() and report.stat().st_mtime_ns != before
    has_judged = done.stdout and done.returncode in (0, 1, 2)  # or it has crashed, with 1 as well
    status = done.returncode if has_judged else 2
    outputs = {"status": status, "body": body, "report": report if is_new else ""}
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        for name, value in outputs.items():
            end = secrets.token_hex()
            file.write(f"{name}<<{end}\n{value}\n{end}\n")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(body.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
