"""The command line: what it prints, where, and with which exit status."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.profiles import CORPUS, SAMPLE_RUNS, SAMPLES, run_path
from tests.sources.test_hosts_of_runs import STAMPS, files, profile
from tests.xspace_builder import plane, space
from tfcompare.commands.diff import diffable
from tfcompare.commands.shared.output import emit, json_text
from tfcompare.errors import TfcompareError

BASELINE = str(SAMPLE_RUNS["filters_512_128"])
CANDIDATE = str(SAMPLE_RUNS["filters_16_8"])
AUTOENCODER = str(SAMPLES / "autoencoder")
COMMANDS = ("runs", "show", "diff", "check", "capture", "serve", "demo")


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_runs_lists_the_samples(tfcompare) -> None:
    status, out, err = tfcompare("runs", AUTOENCODER)
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert " ".join(lines[0].split()) == "run recorded hosts device steps step time size path"
    assert len(lines) == 1 + len(SAMPLE_RUNS)
    assert len({line.rfind("CPU") for line in lines[1:]}) == 1, "columns are aligned"


def test_runs_says_in_full_what_is_wrong(tfcompare, tmp_path: Path) -> None:
    (tmp_path / "vm.xplane.pb").touch()
    status, out, _ = tfcompare("runs", BASELINE, str(tmp_path))
    assert status == 0
    assert f"{tmp_path / 'vm.xplane.pb'}: is empty (0 bytes)" in out.splitlines()[-1]


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_runs_lists_a_folder_whose_name_is_not_utf_8(tfcompare, tmp_path: Path, format: str) -> None:
    folder = tmp_path / os.fsdecode(b"a\xff\x1b[2J")
    folder.mkdir()
    (folder / os.fsdecode(b"h\xfe.xplane.pb")).write_bytes(space(plane("/host:CPU")))
    (tmp_path / os.fsdecode(b"empty\xff.xplane.pb")).touch()
    status, out, _ = tfcompare("runs", str(tmp_path), "--format", format)
    assert status == 0
    assert "\x1b" not in out and out.encode()
    assert rf"{tmp_path}/a\xff\x1b[2J" in out.replace("\\\\", "\\")


def test_what_a_file_or_server_says_steers_no_terminal(tfcompare, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(*_: object, **__: object) -> None:
        raise TfcompareError("the server says \x1b]0;evil\x07\u202e\udcff\nand more")

    monkeypatch.setattr("tfcompare.sources.logdir.find_runs", answer)
    status, out, err = tfcompare("runs", "logs")
    assert (status, out) == (2, "")
    assert err == "tfcompare: the server says \\x1b]0;evil\\x07\\u202e\\xff and more\n"
    assert str(TfcompareError("one \x9b2J\ntwo")) == "one \\x9b2J\ntwo"


def test_numbers_that_json_cannot_hold() -> None:
    frame = pd.DataFrame({"a": [math.inf, 1.5], "b": [-math.inf, math.nan]})
    assert json.loads(json_text(frame)) == [{"a": None, "b": None}, {"a": 1.5, "b": None}]


def test_csv_has_no_control_characters_and_no_formulas_in_a_pipe_either(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pd.DataFrame({"op_name": ["\x1b[2J\x9b", "=cmd()"]})
    for is_terminal in (True, False):
        monkeypatch.setattr(sys.stdout, "isatty", lambda is_terminal=is_terminal: is_terminal)
        emit(frame, argparse.Namespace(format="csv", limit=0))
        assert capsys.readouterr().out == "op_name\n\\x1b[2J\\x9b\n'=cmd()\n"


def test_runs_as_json_has_numbers_and_nulls(tfcompare, tmp_path: Path) -> None:
    (tmp_path / "vm.xplane.pb").write_bytes(b"")
    status, out, _ = tfcompare("runs", BASELINE, str(tmp_path), "--format", "json")
    by_state = {record["state"]: record for record in json.loads(out)}
    assert status == 0
    assert (by_state["read"]["name"], by_state["read"]["path"].startswith(BASELINE)) == ("filters_512_128", True)
    assert "step_times_ms" not in by_state["read"]
    assert by_state["read"]["steps"] == 22
    assert by_state["read"]["recorded"].endswith("Z")
    assert by_state["unreadable"]["step_time_ms_median"] is None
    assert "empty (0 bytes)" in by_state["unreadable"]["remarks"]


@pytest.mark.parametrize(
    "words",
    [
        ("show", "RUN", "run_info", "--format", "csv"),
        ("diff", "RUN", "RUN", "--table", "run_info", "--format", "csv"),
        ("query", "SELECT step_source, step_count FROM run_info", "RUN", "--format", "csv"),
    ],
    ids=lambda words: words[0],
)
def test_a_step_marker_is_named_where_a_profile_has_none(tfcompare, words: tuple[str, ...]) -> None:
    run = str(run_path("jax_conv_08"))
    words = tuple(run if word == "RUN" else word for word in words)
    told = [tfcompare(*words, *more)[1] for more in ((), ("--step-marker", "PjitFunction(forward_3d_conv)"))]
    assert ["whole profile" in out for out in told] == [True, False]
    assert ["chosen marker" in out for out in told] == [False, True]
    status, out, err = tfcompare(*words, "--step-marker", "train")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "tw003.xplane.pb: no event is named 'train'; a step marker is the name of a host event, such as 'Pjit" in err


def test_check_and_repeats_take_the_step_marker_too(tfcompare) -> None:
    runs = [str(run_path(name)) for name in ("jax_conv_legacy", "jax_conv_08")]
    words = ("check", *runs, "--baseline-repeat", runs[1], "--fail-if", "step_time>+1%")
    status, out, _ = tfcompare(*words)
    reason = "no step markers in the baseline and the candidate; record each step inside jax.profiler."
    assert (status, f"\nNOT JUDGED: step_time>+1%: {reason}StepTraceAnnotation(" in out) == (2, True)
    status, out, _ = tfcompare(*words, "--step-marker", "PjitFunction(forward_3d_conv)")
    few = "4 steps, 9 needed on each side; record 11 steps or more"
    assert (status, out.splitlines()[-1]) == (2, f"NOT JUDGED: step_time>+1%: {few}")


@pytest.mark.parametrize(
    "words", [("show", BASELINE, "op_stats"), ("diff", BASELINE, CANDIDATE, "--table", "op_stats")]
)
def test_idle_is_in_text_only_with_an_option_and_in_csv_unless_left_out(tfcompare, words: tuple[str, ...]) -> None:
    def has_idle(*more: str) -> bool:
        return "IDLE" in tfcompare(*words, *more)[1]

    assert [has_idle(), has_idle("--idle"), has_idle("--no-idle")] == [False, True, False]
    csv_words = ("--format", "csv")
    assert [has_idle(*csv_words), has_idle(*csv_words, "--no-idle")] == [True, False]


def test_show_sorts_by_self_time_as_far_as_the_limit(tfcompare) -> None:
    _, out, err = tfcompare("show", BASELINE, "op_stats", "--format", "csv", "--no-idle", "--limit", "30")
    times = [float(op["self_time_us"]) for op in rows(out)]
    assert times == sorted(times, reverse=True)
    assert (len(times), rows(out)[0]["op_type"]) == (30, "Conv2DBackpropFilter")
    assert "more rows (--limit 0 shows all)" in err


def test_show_puts_units_into_the_headers_and_a_single_row_upright(tfcompare) -> None:
    title, header, first = tfcompare("show", BASELINE, "steps")[1].splitlines()[:3]
    assert "Step time (µs)" in header
    assert (title, header.split()[0], first.split()[0].isdigit()) == ("steps", "Step", True)
    assert ["Steps", "22"] in map(str.split, tfcompare("show", BASELINE, "run_info")[1].splitlines())


def test_diff_of_one_table_has_the_verdict_and_coverage_above_it(tfcompare) -> None:
    status, out, err = tfcompare("diff", BASELINE, CANDIDATE, "--table", "op_stats")
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert lines[0].startswith("filters_16_8 is 20× faster than filters_512_128 ")
    outside = r"Outside of the included steps: \d.* ms of self time in all, baseline \d.* ms\."
    assert re.fullmatch(rf"Matched self time: 100 % \(100 % exactly\)\. Figures are per step\. {outside}", lines[3])
    assert (lines[5], "Self time (µs/step)" in lines[6]) == ("op_stats", True)
    assert re.split("  +", lines[7])[:2] == ["Op", "Op type"]


def test_diff_as_csv_is_nothing_but_data(tfcompare) -> None:
    status, out, err = tfcompare("diff", BASELINE, CANDIDATE, "--table", "op_stats", "--format", "csv", "--no-idle")
    ops = rows(out)
    assert (status, err, ops[0]["op_type"], ops[0]["status"]) == (0, "", "Conv2DBackpropFilter", "matched")
    deltas = [abs(float(op["self_time_us_per_step_delta"])) for op in ops]
    assert deltas == sorted(deltas, reverse=True), "biggest change first"


def test_diff_per_run_names_its_sums_so_and_tells_several_candidates_apart(tfcompare) -> None:
    again = str(SAMPLE_RUNS["filters_16_8_again"])
    found = rows(tfcompare("diff", BASELINE, CANDIDATE, again, "--per", "run", "--format", "csv")[1])
    assert {row["baseline"].partition("/")[0] for row in found} == {"filters_512_128"}
    assert len({row["candidate"] for row in found}) == 2
    assert "self_time_us_delta" in found[0] and "self_time_us_per_step_delta" not in found[0]


def test_diff_out_writes_a_file_for_each_table(tfcompare, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "changes"
    status, out, err = tfcompare("diff", BASELINE, CANDIDATE, "--out", str(folder))
    assert (status, out) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == sorted(f"{name}.csv" for name in diffable())
    assert err.count("wrote ") == len(diffable())
    assert rows((folder / "op_stats.csv").read_text(encoding="utf-8"))[0]["status"] == "matched"


BAD_FILES = {"empty": b"", "random": bytes((i * 197 + 13) % 256 for i in range(1024)), "truncated": None}
BAD_FOLDERS = {"corrupt": CORPUS / "corrupt", "tool files": CORPUS / "tool_files_only"}


def bad_place(kind: str, folder: Path) -> Path:
    """A path at which there is no run that can be read."""
    if kind in BAD_FOLDERS:
        if not CORPUS.is_dir():
            pytest.skip(f"no corpus of real profiles at {CORPUS} (set TFCOMPARE_CORPUS)")
        return BAD_FOLDERS[kind]
    if kind in BAD_FILES:
        whole = next(SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb")).read_bytes()
        data = BAD_FILES[kind]
        (folder / "vm.xplane.pb").write_bytes(whole[: len(whole) // 2] if data is None else data)
        return folder / "vm.xplane.pb"
    return folder / "nowhere" if kind == "missing" else folder


@pytest.mark.parametrize(
    ("command", "kind"),
    [("runs", "random"), ("diff", "missing"), *(("show", kind) for kind in (*BAD_FILES, *BAD_FOLDERS, "no runs"))],
)
def test_bad_input_ends_with_status_2_and_one_line(tfcompare, tmp_path: Path, kind: str, command: str) -> None:
    place = str(bad_place(kind, tmp_path))
    words = {"runs": [place], "show": [place, "op_stats"], "diff": [BASELINE, place]}[command]
    status, out, err = tfcompare(command, *words)
    assert (status, err.startswith("tfcompare: "), err.count("\n")) == (2, True, 1)
    assert out == "" or command == "runs", "a listing of what was found may stand on stdout"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["show", BASELINE, "op_stats", "--host", "h"], "unknown host of filters_512_128 'h'"),
        (["show", AUTOENCODER, "steps"], "holds 4 runs; name one of them"),
        (["diff", BASELINE, CANDIDATE, "--table", "op_steps"], "unknown table with a diff 'op_steps'"),
        (["diff", BASELINE], "the following arguments are required: CANDIDATE (see `tfcompare diff --help`)"),
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["dif"], "; did you mean 'diff'? (see `tfcompare --help`)"),
        (["show", BASELINE, "op_stat"], "; did you mean 'op_stats'?"),
        (["show", BASELINE, "steps", "--format", "jsn"], "; did you mean 'json'? (see `tfcompare show --help`)"),
        (["check", BASELINE, CANDIDATE, "--fail-if", "steptime>5%"], "; did you mean 'step_time'?"),
        (
            ["diff", BASELINE, CANDIDATE, "--tabel", "steps"],
            "tfcompare diff: unrecognized arguments: --tabel steps; did you mean '--table'? "
            "(see `tfcompare diff --help`)",
        ),
        (["diff", "--tabel"], "(see `tfcompare diff --help`)"),
        (["serve", "--prot"], "tfcompare serve: unrecognized arguments: --prot; did you mean '--root' or '--port'?"),
        (["store", "x"], "tfcompare store: unrecognized arguments: x (see `tfcompare store --help`)"),
        (["serve", "--port", "65536"], "argument --port: must be a number up to 65535; not '65536'"),
        (["serve", "/no/such/place"], "/no/such/place: no such file or folder"),
    ],
)
def test_mistakes_are_answered_in_one_line(tfcompare, words: list[str], message: str) -> None:
    status, out, err = tfcompare(*words)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_options_stand_before_between_and_after_the_runs(tfcompare) -> None:
    option = ["--format", "json"]
    orders = [
        ["view", *option, "hosts", BASELINE, CANDIDATE],
        ["view", "hosts", BASELINE, *option, CANDIDATE],
        ["view", "hosts", BASELINE, CANDIDATE, *option],
    ]
    first, *others = (tfcompare(*words) for words in orders)
    status, _, err = tfcompare("diff", "--", "-one", "-other")
    assert (status, err.startswith("tfcompare: -one: ")) == (2, True), "what follows -- is no option"
    assert first[0] == 0
    assert [run["role"] for run in json.loads(first[1])["runs"]] == ["baseline", "candidate"]
    assert others == [first, first]


def test_a_terminal_shows_colours_and_the_words_that_say_the_same(tfcompare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    words = ("diff", BASELINE, CANDIDATE)
    plain = tfcompare(*words)[1]
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    coloured = tfcompare(*words)[1]
    assert re.search("\x1b\\[38;5;67m *▼ likely faster", coloured)
    assert re.sub("\x1b\\[[0-9;]*m", "", coloured) == plain


@pytest.mark.parametrize("width", [80, 300])
def test_diff_and_show_fit_the_terminal_and_say_what_is_left_out(
    tfcompare, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for words in (("diff", BASELINE, CANDIDATE), ("show", BASELINE), ("show", BASELINE, "op_stats")):
        _, out, err = tfcompare(*words)
        assert max(map(len, out.splitlines())) <= width
        told = f"columns left out to fit {width} characters: " in f"{out}{err}".casefold()
        assert told == (width < 300 and words != ("show", BASELINE))


def test_all_columns_shows_everything_in_full(tfcompare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, err = tfcompare("show", BASELINE, "op_stats", "--all-columns")
    piped = tfcompare("show", BASELINE, "op_stats")[1]
    assert "left out" not in err
    monkeypatch.delenv("COLUMNS")
    assert tfcompare("show", BASELINE, "op_stats")[1] == out != piped


def test_a_folder_that_cannot_be_written_is_named(tfcompare, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    status, _, err = tfcompare("diff", BASELINE, CANDIDATE, "--out", str(in_the_way / "folder"))
    assert (status, str(in_the_way) in err, err.count("\n")) == (2, True, 1)


def test_an_interrupt_ends_with_status_130(tfcompare, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tfcompare.sources.logdir.find_runs", interrupted)
    assert tfcompare("runs", BASELINE)[0] == 130


def test_whoever_reads_may_go_away() -> None:
    words = [sys.executable, "-m", "tfcompare", "show", BASELINE, "op_stats", "--format", "json"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        complaints = [line for line in process.stderr.read().splitlines() if not line.startswith(b"compiling ")]
        assert complaints == []
    assert process.returncode == 141


def test_a_compilation_is_announced(tfcompare, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfcompare.xspace.reader.needs_compilation", lambda: True)
    status, _, err = tfcompare("show", BASELINE, "run_info")
    assert status == 0
    assert err.startswith("compiling the reader, once: about ")


def test_every_command_has_help_with_an_example_and_loads_nothing_heavy_for_it(tfcompare) -> None:
    heavy = "print(sorted({'pandas', 'numpy', 'numba', 'streamlit', 'plotly', 'tensorflow'} & set(sys.modules)))"
    script = f"import sys\nfrom tfcompare.cli import main\ntry: main(['--help'])\nexcept SystemExit: {heavy}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    for command in COMMANDS:
        assert f"\n    {command} " in done.stdout
        status, out, _ = tfcompare(command, "--help")
        assert (status, f"tfcompare {command} " in out.partition("example")[2]) == (0, True)


def test_a_command_that_runs_out_of_memory_ends_with_one_sentence(tfcompare, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: object) -> int:
        raise MemoryError

    monkeypatch.setattr("tfcompare.commands.runs.run", run)
    status, out, errors = tfcompare("runs", "logs")
    assert (status, out) == (2, "")
    assert errors == "tfcompare: out of memory: this takes more than the machine has free; choose fewer runs or steps\n"


def test_hosts_that_lie_in_folders_of_their_own_are_joined_on_request(tfcompare, tmp_path: Path) -> None:
    for stamp, host in zip(STAMPS, ("a", "b"), strict=True):
        files(tmp_path / "plugins" / "profile" / stamp, **{host: profile(0.0)})
    status, out, err = tfcompare("runs", str(tmp_path), "--format", "csv")
    assert (status, len(out.splitlines())) == (0, 1 + 2)
    assert "were captured at the same time on different hosts: --join makes them one run" in err
    status, out, err = tfcompare("runs", str(tmp_path), "--format", "csv", "--join")
    assert (len(out.splitlines()), "--join" in err) == (1 + 1, False)
    status, _, err = tfcompare("show", str(tmp_path))
    assert (status, "--join makes them one run" in err) == (2, True)
    status, out, _ = tfcompare("show", str(tmp_path), "op_stats", "--host", "b", "--join", "--format", "csv")
    assert (status, out.startswith("host")) == (0, True)
