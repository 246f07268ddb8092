"""Uploads in a real browser: each way in, what is refused and what is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Start
from tests.browser.pages import add_runs, becomes, opened, table_texts
from tests.profiles import SAMPLE_RUNS, SAMPLES
from tests.server.uploads.hostile import HOSTILE, tarred, zipped

RUN = "plugins/profile/2026_01_02_03_04_05"
PROFILE = next(SAMPLE_RUNS["filters_16_8_better_input"].rglob("*.xplane.pb")).read_bytes()

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def url(start: Start) -> Iterator[str]:
    """A server of its own, since what is uploaded stays."""
    with start(SAMPLES / "autoencoder") as address:
        yield address


def send(page: Page, field: int, *files: Path) -> None:
    """Chooses files, or a folder, in one of the two fields."""
    inputs = add_runs(page, "Upload").locator("input[type=file]")
    inputs.nth(field).set_input_files(list(files) if len(files) > 1 else files[0])


def said(page: Page, text: str | re.Pattern[str]) -> None:
    expect(page.locator("[data-testid=stAlert]").filter(has_text=text)).to_be_visible()


def listed(page: Page, expected: set[str], count: int) -> None:
    """Waits until so many of the expected runs are in the table: it is drawn once more when they have been read."""
    becomes(page, lambda: len(expected & {row[2] for row in table_texts(page) if len(row) > 2}), count)


def written(folder: Path, name: str, data: bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def test_every_way_in_leads_to_a_run_that_is_listed_at_once_and_compared(page: Page, url: str, tmp_path: Path) -> None:
    opened(page, url)
    logdir = written(tmp_path, f"from_folder/{RUN}/vm.xplane.pb", PROFILE).parents[3]
    written(logdir, "events.out.tfevents.1.vm", b"events")
    send(page, 0, logdir)
    said(page, re.compile(r"from_folder was added: 1 profile, 1\.\d+ MB\. Not stored, .* no profiles: events\.out"))
    send(page, 1, written(tmp_path, "from_zip.zip", zipped((f"train/{RUN}/vm.xplane.pb", PROFILE))))
    said(page, "from_zip was added")
    send(page, 1, written(tmp_path, "from_tar.tar.gz", tarred((f"{RUN}/other.xplane.pb", PROFILE))))
    said(page, "from_tar was added")
    send(page, 1, written(tmp_path, "single.xplane.pb", PROFILE))
    said(page, "single was added")
    expected = {"from_folder", "from_zip", "from_tar", "single"}
    listed(page, expected, 4)

    send(page, 1, written(tmp_path, "again.zip", zipped((f"train/{RUN}/vm.xplane.pb", PROFILE))))
    said(page, "from_zip was uploaded before, with the same profiles")
    send(page, 1, written(tmp_path, "theirs.tgz", HOSTILE["tar, symbolic link"][0]()))
    said(page, re.compile("theirs.tgz: 'a.xplane.pb' is a link; nothing was unpacked"))
    send(page, 1, written(tmp_path, "notes.zip", zipped(("notes.txt", b"notes"))))
    said(page, re.compile("notes.zip: holds no profile .* upload a logdir"))
    becomes(page, lambda: "UploadedFileManager" in urlopen(f"{url}/_stcore/metrics").read().decode(), False)
    send(page, 1, written(tmp_path, "notes.txt", b"notes"))
    said(page, re.compile("notes.txt: holds no profile .* upload a logdir"))
    listed(page, expected, 4)

    baseline = "single/single"
    opened(page, f"{url}/Overview?baseline={baseline}&candidate=from_tar/{RUN}")
    expect(page.get_by_role("heading", name=re.compile("same recording|identical|did not change|same"))).to_be_visible()
