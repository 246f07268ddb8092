"""Recognizes files that are no profiles, by their first bytes and their names: what they are, and what to do."""

from __future__ import annotations

from dataclasses import dataclass

from tfcompare.sources.logdir.files import is_event_file

START_BYTES = 512
"""How much of a file is needed: a tar names itself at byte 257."""
ZIP_STARTS = (b"PK\3\4", b"PK\5\6")
"""The first bytes of a zip, and of one without members."""

_RECORD_ANEW = "tfcompare does not read it: record a .xplane.pb with the profiler of TensorFlow, JAX or PyTorch/XLA"
_UNPACK = "if it holds the profile, unpack it, or upload it on the Home page"


@dataclass(frozen=True)
class OtherFormat:
    """What a file is (completes "is …"), and what to do."""

    what: str
    advice: str


GIT_LFS = OtherFormat("a Git LFS pointer", "run `git lfs pull` in its repository")
WEB_PAGE = OtherFormat("a web page", "download the file itself, not the page that shows it")
ZIP = OtherFormat("a zip archive", _UNPACK)
TAR = OtherFormat("a tar archive", _UNPACK)
PACKED = OtherFormat("an archive", "if it holds the profile, unpack it")
PYTORCH = OtherFormat("a PyTorch trace", _RECORD_ANEW)
CHROME = OtherFormat("a trace in Chrome's JSON format", _RECORD_ANEW)
PERFETTO = OtherFormat("a Perfetto trace", _RECORD_ANEW)
NSIGHT = OtherFormat("an Nsight Systems report", _RECORD_ANEW)
SQLITE = OtherFormat("an SQLite database, as the profilers of NVIDIA and AMD export", _RECORD_ANEW)
EVENTS = OtherFormat(
    "a TensorBoard event file (training summaries)",
    "name the folder that holds plugins/profile, or record a run with tf.profiler.experimental.start",
)
JSON = OtherFormat("JSON text", _RECORD_ANEW)

_STARTS = {
    b"version https://git-lfs.": GIT_LFS,
    b"SQLite format 3\0": SQLITE,
    **dict.fromkeys(ZIP_STARTS, ZIP),
}
_WEB_PAGES = (b"<!doctype html", b"<html")
_OF_PYTORCH = (b'"schemaVersion"', b'"deviceProperties"')
_ENDINGS = {
    ".zip": ZIP,
    **dict.fromkeys((".tar", ".tar.gz", ".tgz"), TAR),
    **dict.fromkeys((".tar.bz2", ".tar.xz", ".tar.zst", ".7z", ".rar"), PACKED),
    **dict.fromkeys((".pt.trace.json", ".pt.trace.json.gz"), PYTORCH),
    **dict.fromkeys((".nsys-rep", ".qdrep", ".qdstrm"), NSIGHT),
    **dict.fromkeys((".pftrace", ".perfetto-trace"), PERFETTO),
    **dict.fromkeys(("trace.json", "trace.json.gz"), CHROME),
    **dict.fromkeys((".sqlite", ".rocpd"), SQLITE),
}
"""From what may hold a profile to what does not; of several that fit the first counts."""


def recognize(name: str, start: bytes = b"") -> OtherFormat | None:
    """What a file is, by its first `START_BYTES` (uncompressed), else by its name; None if neither tells."""
    by_name = [EVENTS] if is_event_file(name) else [_ENDINGS[end] for end in _ENDINGS if name.lower().endswith(end)]
    by_text = [JSON] if start.lstrip().startswith((b"{", b"[")) else []
    return _by_start(start) or next(iter(by_name + by_text), None)


def _by_start(start: bytes) -> OtherFormat | None:
    for begin, known in _STARTS.items():
        if start.startswith(begin):
            return known
    text = start.lstrip()
    if text[:15].lower().startswith(_WEB_PAGES):
        return WEB_PAGE
    if text.startswith(b"{") and any(key in text for key in _OF_PYTORCH):
        return PYTORCH
    if text.startswith(b"{") and b'"traceEvents"' in text:
        return CHROME
    if start[257:262] == b"ustar":
        return TAR
    return EVENTS if b"brain.Event:" in start[:64] else None
