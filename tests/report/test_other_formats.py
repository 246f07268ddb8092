"""Reports as Markdown and JSON, and without paths and names."""

from __future__ import annotations

import errno
import html
import json
import math
import os
import re
from dataclasses import replace
from functools import cache
from pathlib import Path, PurePath

import pandas as pd
import pytest

from tests.laws import mostly_thorough
from tests.profiles import compared_runs, loaded_run
from tests.render.documents import payload_of
from tests.ui.hostile_profile import EVIL, hostile
from tests.views.flat import only_pair, shown
from tfcompare.compare.matching.manual import ManualChoice
from tfcompare.comparison import Comparison, compare
from tfcompare.errors import Unknown
from tfcompare.render.payload import table_json
from tfcompare.render.redaction import OtherNames, Secrets, redacted, renamed
from tfcompare.render.report import Checked, compared, report, write
from tfcompare.run import load
from tfcompare.views.blocks import Table, Text
from tfcompare.views.registry import view

CPU = ("filters_512_128", "filters_16_8")
WORKERS = ("workers_balanced", "workers_slow_input")
FORMS = ["html", "json", pytest.param("markdown", marks=pytest.mark.thorough)]
"""Markdown has the texts of HTML: tables and charts are what they differ in."""


def test_markdown_has_the_answer_what_a_check_found_on_top_and_no_charts() -> None:
    checked = Checked(
        "Check FAILED (1 failed)",
        ("condition", "baseline", "candidate", "change", "interval", "outcome"),
        [("step_time>+5%", "1 ms", "2 ms", "+100 %", "", "failed")],
        ["because"],
        {"passed": False},
    )
    text = report(compared_runs(*CPU), "markdown", checked=checked)
    assert text.startswith("### B filters_16_8 compared with A filters_512_128\n")
    assert text.index("Check FAILED") < text.index("`B` is 20× faster than `A` ")
    assert "step_time\\>+5%" in text and "because" in text
    assert json.loads(report(compared_runs(*CPU), "json", checked=checked))["check"] == {"passed": False}


def test_json_has_every_diff_in_full_precision() -> None:
    comparison = compared_runs(*CPU)
    found = json.loads(report(comparison, "json"))
    assert [run["name"] for run in found["runs"]] == list(CPU)
    (candidate,) = found["candidates"]
    overview = candidate["blocks"][0]
    assert (found["view"], overview["title"], overview["blocks"][0]["findings"][0]["verdict"]) == (
        "report",
        "Overview",
        "likely faster",
    )
    diff = comparison.table("op_stats")
    table = candidate["tables"]["op_stats"]
    names = [column["name"] for column in table["columns"]]
    assert ["baseline", "candidate", *names] == list(diff.columns)
    at = names.index("self_time_us_per_step_candidate")
    assert table["columns"][at]["unit"] == "µs"
    ours = [math.nan if row[at] is None else row[at] for row in table["rows"]]
    assert ours == pytest.approx(diff["self_time_us_per_step_candidate"].astype("float64").tolist(), nan_ok=True)


def as_it_is(text: str) -> str:
    return text


def without_secrets(text: str) -> str:
    """A text of runs of which neither hosts nor users are known."""
    return Secrets({}, {}, {}, ()).in_name(text)


@cache
def without_names(name: str) -> Comparison:
    """A redacted comparison: of a run with a secret name and a remark with paths, and one that is called `name`, as its
    hosts are but for their numbers."""
    baseline, candidate = map(loaded_run, WORKERS)
    remark = "left out: /home/ada/x/host_b.xplane.pb: breaks off in worker1's profile"
    secret = replace(baseline, id="x/my_slow.run", name="my_slow.run", path=PurePath("/home/ada/x"), remarks=(remark,))
    hosts = {host: f"{name}{number}" for number, host in enumerate(candidate.host_names)}
    comparison = compare(secret, replace(candidate, id=name, name=name)).with_runs(
        lambda run: renamed(
            run, run.name, hosts if run.id == name else {host: host for host in run.host_names}, as_it_is, as_it_is
        ),
        hosts,
        lambda _, text: text,
        as_it_is,
    )
    return redacted(comparison)


def texts_of(comparison: Comparison, form: str) -> str:
    """All that a report holds, without what Markdown escapes."""
    text = report(comparison, form)  # type: ignore[arg-type]
    if form == "html":
        body = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
        text = f"{html.unescape(body)} {json.dumps(payload_of(text), ensure_ascii=False)}"
    return text.replace("\\", "")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", mostly_thorough(("step", "text", "scatter", "baseline", "vm"), "step"))
def test_a_redacted_report_has_no_names_of_runs_and_hosts_whatever_else_they_mean(name: str, form: str) -> None:
    found = texts_of(without_names(name), form)
    for secret in ("my_slow.run", "/home/ada", "ada", "worker0", "worker1", f"{name}0", f"{name}1"):
        assert secret not in found, secret
    if form == "markdown":  # which is short
        assert "`host 5` is the slowest host" in found
        return
    assert "host 2" in found and "host_b.xplane.pb" in found
    assert "Average step" in found or '"per": "step"' in found


def test_replicates_are_called_after_their_run() -> None:
    ours, more, theirs = (loaded_run(f"filters_16_8{end}") for end in ("", "_again", "_better_input"))
    comparison = compare(ours, theirs, repeats={ours.id: [more]})
    other = redacted(comparison)
    assert [run.name for run in (other.baseline, *other.candidates)] == ["A", "B"]
    assert [run.name for run in other.side_of(other.baseline).runs[1:]] == ["A 2"]
    assert other.verdict["B"] == comparison.verdict[theirs.id]


def test_only_one_host() -> None:
    other = redacted(compare(*map(loaded_run, WORKERS), host="worker1"))
    said = [block.text for block in compared(other) if isinstance(block, Text)]
    assert (other.host, said) == ("host 2", ["Sums are per step. Only the host `host 2`."])


def test_sums_per_device_and_runs_without_steps_are_not_named() -> None:
    runs = [loaded_run(name) for name in ("jax_conv_legacy", "jax_conv_08")]
    other = redacted(compare(*runs, per="device"))
    assert [block.text for block in compared(other) if isinstance(block, Text)] == ["Sums are per device."]
    table, *_ = shown(view("op_stats"), only_pair(other), Table)
    assert {"Self time (µs/device)"} <= {column["heading"] for column in table_json(table)["columns"]}
    assert not [run.name for run in runs if run.name in report(other, "json")]
    assert "no step markers were found in: A, B" in " ".join(redacted(compare(*runs)).notes)


def test_numbers_are_those_of_the_comparison_with_names() -> None:
    comparison = compared_runs(*CPU)
    other = redacted(comparison)
    for name in ("op_stats", "memory_summary", "input_pipeline"):
        plain, found = (one.table(name).select_dtypes("number") for one in (comparison, other))
        assert len(plain.columns) > 5
        pd.testing.assert_frame_equal(plain, found)


@pytest.fixture(scope="module")
def of_paths(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """A comparison of runs in which every name is hostile and ends with a path."""
    folder = tmp_path_factory.mktemp("paths")
    for run, scale in (("before", 1.0), ("after", 1.5)):
        file = folder / run / "plugins" / "profile" / "r" / "host.xplane.pb"
        file.parent.mkdir(parents=True)
        file.write_bytes(hostile(scale, f"{EVIL} /home/ada,eve/my project/x"))
    return compare(load(folder / "before"), load(folder / "after"))


@pytest.fixture(scope="module")
def without_paths_in_names(of_paths: Comparison) -> Comparison:
    return redacted(of_paths)


def test_paths_are_in_what_is_redacted(of_paths: Comparison) -> None:
    assert re.search(r"\bada\b", of_paths.baseline.table("op_stats")["op_name"].str.cat())


@pytest.mark.parametrize("form", FORMS)
def test_names_that_are_hostile_and_paths_are_others_in_all_texts_and_charts(
    form: str, without_paths_in_names: Comparison
) -> None:
    found = texts_of(without_paths_in_names, form)
    for secret in (r"\bada\b", r"\beve\b", "my project"):
        assert not re.search(secret, found), secret
    named = {"html": "<title>B compared with A", "markdown": "### B compared with A", "json": '"name": "B"'}
    assert named[form] in found


def test_different_names_of_a_run_stay_different_and_the_same_ones_of_two_runs_the_same() -> None:
    given: dict[str, str] = {}
    ours, theirs = (OtherNames(without_secrets, given) for _ in range(2))
    others = [ours.of(text) for text in ("/a/b/x.py", "/c/d/x.py", "x.py", "/a/b/x.py", "model/x.py")]
    assert others == ["x.py", "x.py (2)", "x.py (3)", "x.py", "model/x.py"]
    assert [theirs.of(text) for text in ("/c/d/x.py", "/e/f/x.py", "/a/b/x.py")] == ["x.py (2)", "x.py", "x.py (3)"]


def test_notes_and_remarks_name_neither_run() -> None:
    ours, theirs = (loaded_run(f"filters_{name}") for name in ("512_128", "16_8"))
    theirs = replace(theirs, remarks=(f"{ours.name} was captured in /home/ada/x/y before no",))
    choice = ManualChoice(True, ("/home/ada/secret/gone.py f",), ("no",))
    comparison = compare(ours, replace(theirs, id="no", name="no"), manual_pairs={"no": [choice]})
    assert any("/home/ada" in note for note in comparison.notes)
    found = " ".join((*redacted(comparison).notes, *redacted(comparison).candidates[0].remarks))
    assert "ada" not in found and ours.name not in found
    assert "gone.py" in found


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("-I/home/u/x.h", "-Ix.h"),
        ("cc -L/home/u/lib/x.so", "cc -Lx.so"),
        ("-isystem/home/u/x.h", "-isystemx.h"),
        ("//server/share/secret/x.py", "x.py"),
        ("/home/ada's things/secret/a.pb", "a.pb"),
        ("S3://bucket/secret/a", "a"),
        ("https://www.tensorflow.org/guide/data", "https://www.tensorflow.org/guide/data"),
        ("fused('/home/ada/secret/op', 3)", "fused('op', 3)"),
        ("Iterator::-I/home/u/x.h::Map", "Iterator::-Ix.h::Map"),
        ("C:\\Users\\ada\\x.py", "x.py"),
        ("/home/a,b/c", "c"),
        ("/home/ada/my project/train.py:12", "train.py:12"),
        ("~u/models/x", "x"),
        ("~u/x.py", "x.py"),
        (
            'metadata={op_name="jit(f)/dot" source_file="/home/ada/a b/x.py" source_line=3}',
            'metadata={op_name="jit(f)/dot" source_file="x.py" source_line=3}',
        ),
        ("model/dense/MatMul", "model/dense/MatMul"),
        ("transpose(jvp(Model))/Dense_0/dot_general", "transpose(jvp(Model))/Dense_0/dot_general"),
        ("/device:GPU:0", "/device:GPU:0"),
        ("/job:worker/replica:0/task:0/device:GPU:0", "/job:worker/replica:0/task:0/device:GPU:0"),
        ("void f<a, b>(a*, b / 2)", "void f<a, b>(a*, b / 2)"),
        ("add(f32[8]) // fused", "add(f32[8]) // fused"),
    ],
)
def test_of_a_name_with_a_path_the_last_part_is_left(text: str, left: str) -> None:
    assert without_secrets(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("at /home/ada/models/train.py:12", "at train.py:12"),
        ("/home/ada", "…"),
        ("/home/ada/", "…"),
        ("/mnt/user=ada/logs/x", "x"),
        ("~/ada/x.py", "x.py"),
        ("C:\\Users\\ada\\train.py", "train.py"),
        ("\\\\server\\share\\ada", "ada"),
        ("from gs://bucket/logs/run", "from run"),
        ("https://ada:secret@host/logs/x.pb", "x.pb"),
        ("~ada/x.py", "x.py"),
        ("model/dense/MatMul", "model/dense/MatMul"),
        ("jit(_normal)/jit(_uniform)/while/body/add", "jit(_normal)/jit(_uniform)/while/body/add"),
        ("transpose(jvp(Model))/Dense_0/dot_general", "transpose(jvp(Model))/Dense_0/dot_general"),
        ("/device:GPU:0", "/device:GPU:0"),
        ("/job:worker/replica:0/task:0/device:GPU:0", "/job:worker/replica:0/task:0/device:GPU:0"),
        ("2 ms/step", "2 ms/step"),
        ("[guide](https://www.tensorflow.org/guide/data)", "[guide](https://www.tensorflow.org/guide/data)"),
        ("</b> x", "</b> x"),
    ],
)
def test_of_a_path_the_last_part_is_left(text: str, left: str) -> None:
    assert without_secrets(text) == left


def test_a_full_disk_leaves_the_report_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.html"
    path.write_text("before")
    real = Path.write_text

    def full(path: Path, text: str, encoding: str) -> None:
        real(path, text[:10], encoding)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write("a report", path)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("before", [path])
    monkeypatch.undo()
    path.chmod(0o600)
    write("a report", path)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("a report", [path])
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(Unknown, match="format of a report"):
        report(compared_runs(*CPU), "pdf")  # type: ignore[arg-type]
