"""Keep one comment on the pull request up to date: it is found by a marker that is not shown.

Reads BODY, the file with the comment in Markdown; TOKEN, NAME and REPORT_URL; and what GitHub sets. What goes wrong is
a warning, since the result is in the job's summary and its exit status as well: workflows of forks may not comment.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.request
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

MOST_CHARACTERS = 60_000
"""GitHub takes 65,536."""
MOST_PAGES = 100
"""Of 100 comments each."""
TIMEOUT_S = 30


def main() -> None:
    """Write the comment; print a warning if that fails."""
    try:
        event = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        number = event.get("pull_request", {}).get("number")
        if number is None:
            sys.stdout.write("tfcompare: this is no job of a pull request, so there is nothing to comment on\n")
            return
        update(f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}", int(number))
    except (OSError, HTTPException, ValueError, KeyError, AttributeError, TypeError) as error:
        why = re.sub(r"\s+", " ", str(error)).replace("%", "%25")
        sys.stdout.write(
            f"::warning title=tfcompare::could not comment on the pull request: {why}; the token needs "
            "`pull-requests: write`, which workflows of forks do not get. The result is in the summary of the job.\n"
        )


def update(repository: str, number: int) -> None:
    """Change the comment with the marker, or write one."""
    marker = f"<!-- tfcompare:{re.sub('[^A-Za-z0-9._]', '-', os.environ['NAME'])} -->"
    text = f"{marker}\n{comment(Path(os.environ['BODY']).read_text(encoding='utf-8'), os.environ['REPORT_URL'])}"
    comments = f"{repository}/issues/{number}/comments"
    for page in range(1, MOST_PAGES + 1):
        found = request("GET", f"{comments}?per_page=100&page={page}")
        for one in found:
            if str(one.get("body") or "").startswith(marker) and is_changed(repository, int(one["id"]), text):
                return
        if not found:
            break
    request("POST", comments, text)


def is_changed(repository: str, comment_id: int, text: str) -> bool:
    """Change a comment; not that of somebody else, who wrote the marker first."""
    try:
        request("PATCH", f"{repository}/issues/comments/{comment_id}", text)
    except HTTPError as error:
        if error.code in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            return False
        raise
    return True


def comment(body: str, report_url: str) -> str:
    """The comment, which mentions nobody and nothing, as long as it may be."""
    quiet = re.sub(r"@|#(?=\d)", lambda found: f"{found[0]}\N{WORD JOINER}", body)
    if len(quiet) > MOST_CHARACTERS:
        quiet = quiet[:MOST_CHARACTERS].rpartition("\n")[0]
        quiet += "\n</details>" * (quiet.count("<details>") - quiet.count("</details>"))
        quiet += "\n\n… The rest is in the summary of the job."
    return f"{quiet}\n\n[Report]({report_url})\n" if re.fullmatch(r"https?://[^\s()<>]+", report_url) else quiet


def request(method: str, url: str, text: str = "") -> Any:
    """What the API answers. Raises `OSError` or `ValueError`."""
    data = json.dumps({"body": text}).encode() if text else None
    asked = urllib.request.Request(url, data, method=method)
    asked.add_header("Accept", "application/vnd.github+json")
    asked.add_header("Content-Type", "application/json")
    asked.add_unredirected_header("Authorization", f"Bearer {os.environ['TOKEN']}")
    with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:
        return json.load(answer)


if __name__ == "__main__":
    main()
