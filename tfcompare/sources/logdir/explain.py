"""Messages about places, folders and files without a profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from tfcompare.errors import NotAProfile
from tfcompare.sources.logdir.files import DERIVED_FILE, TOOL_FILE, TRACE_FILE, host_of, is_event_file, text_of
from tfcompare.sources.logdir.found_run import Folder
from tfcompare.sources.logdir.other_formats import JSON, OtherFormat, recognize
from tfcompare.text import some_of

_MOST_NAMED = 3
_HOW_TO_RECORD = "record a run with tf.profiler.experimental.start, or name the folder that holds plugins/profile"


def is_run_folder(path: PurePath) -> bool:
    """Whether a folder is where profilers put the folder of a run."""
    return path.parts[-3:-1] == ("plugins", "profile")


def run_folder_without_profile(folder: Folder) -> str:
    """Why a folder without a profile is listed as a run; empty if it is not a run."""
    path = text_of(str(folder.path))
    is_where_runs_are = is_run_folder(folder.path)
    tools = [n for n in folder.files if TOOL_FILE.search(n) or (is_where_runs_are and TRACE_FILE.search(n))]
    if tools:
        return (
            f"{path}: holds only tool files of an older profiler ({_some(tools)}); tfcompare reads .xplane.pb: "
            "record the run again with TensorFlow 2.3 or later"
        )
    if not is_where_runs_are or folder.has_folders:
        return ""
    if not folder.files:
        return f"{path}: is empty where a .xplane.pb was expected; record the run again"
    if any(map(DERIVED_FILE.search, folder.files)):
        return (
            f"{path}: holds only what xprof made of a profile ({_some(folder.files)}) and not the .xplane.pb itself; "
            "copy that file here anew or record the run again"
        )
    advice = "copy the profile here or record the run again"
    only = _some(folder.files)
    if found := _of_other_format([folder]):
        only, advice = f"{_with_format(*found)}{_and_more(len(folder.files) - 1)}", found[1].advice
    return f"{path}: holds no .xplane.pb, only {only}; {advice}"


def other_file(path: PurePath) -> str:
    """Why a file that was given itself cannot be a profile, judging by its name; empty if it can."""
    if known := recognize(path.name):
        return other_format(path, known)
    if TOOL_FILE.search(path.name) or TRACE_FILE.search(path.name):
        kind = "a tool file of an older profiler"
    elif DERIVED_FILE.search(path.name):
        kind = "what xprof made of a profile"
    else:
        return ""
    return f"{text_of(str(path))}: is {kind}; tfcompare reads .xplane.pb: name that file or its folder"


def other_format(path: PurePath, known: OtherFormat) -> str:
    """The message about a file of a known format in place of a profile."""
    return str(NotAProfile(type(path)(text_of(str(path))), 0, "a profile", known.what, known.advice))


def traces_beside(name: str) -> tuple[str, ...]:
    """The names under which profilers write a trace of what the profile in the file of that name holds."""
    return (f"{host_of(name)}.trace.json.gz", "trace.json.gz", "perfetto_trace.json.gz")


def empty(path: PurePath, *, has_trace: bool) -> str:
    """The message about an empty file; `has_trace`: whether one of `traces_beside` is in its folder, not empty."""
    if has_trace:
        return (
            f"{text_of(str(path))}: is empty (0 bytes), but the trace.json.gz beside it is not: a profile of more than "
            "2 GB cannot be saved; record the run again with fewer steps"
        )
    return (
        f"{text_of(str(path))}: is empty (0 bytes) where a profile was expected; "
        "record the profile again or copy the file anew"
    )


def no_runs(path: PurePath, folders: Sequence[Folder]) -> str:
    """What was searched for in a place and what was found instead."""
    files = [name for folder in folders for name in folder.files]
    events = sum(is_event_file(name) for name in files)
    advice = _HOW_TO_RECORD
    if other := _of_other_format(folders):
        found, advice = f"{_with_format(*other)}{_and_more(len(files) - 1)}", other[1].advice
    elif events:
        found = f"{_count(events, 'TensorBoard event file')} but no profile"
    else:
        found = _count(len(files), "other file") if files else "no file at all"
    below = f" and {_count(len(folders) - 1, 'folder')} below it" if len(folders) > 1 else ""
    return (
        f"{text_of(str(path))}: no profile run here: looked for .xplane.pb and .xplane.pb.gz files in this folder"
        f"{below}, found {found}; {advice}"
    )


def _of_other_format(folders: Sequence[Folder]) -> tuple[str, OtherFormat] | None:
    """(the name of the first file of a known format, other than TensorBoard's; that format)."""
    files = [(folder, name) for folder in folders for name in folder.files if not is_event_file(name)]
    named = [(folder, name) for folder, name in files if recognize(name)]
    texts = [(folder, name) for folder, name in files if name.endswith((".json", ".json.gz"))]
    for folder, name in (named or texts)[:_MOST_NAMED]:
        if (known := recognize(name, folder.start_of(name))) not in (None, JSON):
            return name, known
    return None


def _with_format(name: str, known: OtherFormat) -> str:
    return f"{text_of(name)} ({known.what})"


def _and_more(files: int) -> str:
    return f" and {_count(files, 'other file')}" if files else ""


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _some(names: Sequence[str]) -> str:
    return some_of(map(text_of, names), _MOST_NAMED)
