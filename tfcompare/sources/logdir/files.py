"""The meaning of file names in a logdir, and opening files without changing their access time."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO

from tfcompare.text import text_of as text_of

PROFILE_SUFFIXES = (".xplane.pb", ".xplane.pb.gz")

_OLD_TOOLS = (
    "framework_op_stats|inference_profile|input_pipeline|input_pipeline_analyzer|kernel_stats|memory_profile"
    "|memory_viewer|op_profile|overview_page|pod_stats|pod_viewer|tensorflow_stats|tf_data_bottleneck_analysis"
    "|tf_data_stats"
)
_ENDINGS = r"\.(?:pb|json)(?:\.gz)?"
TOOL_FILE = re.compile(rf"(?:^|\.)(?:{_OLD_TOOLS}){_ENDINGS}$")
"""Names of files of a tool of an older profiler, wherever they are."""
TRACE_FILE = re.compile(rf"(?:^|\.)(?:trace{_ENDINGS}|trace|tracetable)$")
"""Names of traces of an older profiler; outside of run folders, other programs use them."""
DERIVED_FILE = re.compile(r"\.(?:hlo_proto\.pb|op_stats(?:_v\d+)?\.pb|SSTABLE)$")
"""Names of files that xprof derived from a profile."""
_EVENT_FILE = re.compile(r"^events\.out\.tfevents\.|\.profile-empty$")


def is_profile(name: str) -> bool:
    """Whether the file is a host's profile, by its name; hidden files (such as macOS's `._vm.xplane.pb`) are not."""
    return name.endswith(PROFILE_SUFFIXES) and (name in PROFILE_SUFFIXES or not name.startswith("."))


def is_event_file(name: str) -> bool:
    """Whether the file contains TensorBoard events (such as scalars, or the marker of an empty profile)."""
    return _EVENT_FILE.search(name) is not None


def host_of(name: str) -> str:
    """The host in a file name: the part before `.xplane.pb`; for other names, before `.pb` or `.gz`."""
    host = name
    for suffix in (".gz", ".pb", ".xplane"):
        host = host.removesuffix(suffix)
    return text_of(host) or "unnamed"


def open_untouched(path: str | Path, flags: int = 0) -> int:
    """A descriptor to read `path`, without changing its access time if the system supports that.

    Raises OSError as `os.open` does.
    """
    flags |= os.O_RDONLY | getattr(os, "O_BINARY", 0)
    if keep_access_time := getattr(os, "O_NOATIME", 0):
        try:
            return os.open(path, flags | keep_access_time)
        except PermissionError:  # the flag is only allowed for the file's owner
            pass
    return os.open(path, flags)


def open_regular(path: str | Path, *, follows_links: bool = False) -> BinaryIO:
    """The file at `path`, opened as by `open_untouched`; a pipe is not waited for.

    Raises ValueError for what is no regular file, and OSError as `open` does, also for a folder or a link that is not
    followed.
    """
    flags = getattr(os, "O_NONBLOCK", 0) | (0 if follows_links else getattr(os, "O_NOFOLLOW", 0))
    descriptor = open_untouched(path, flags)
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise ValueError("it is not a file")


def cannot_be_opened(path: str | Path, error: OSError) -> str:
    """The message that a file or folder cannot be opened, with the reason."""
    if isinstance(error, PermissionError):
        advice = "give yourself the right to read it"
    else:
        advice = "check the disk or mount that it lies on"
    return f"{text_of(str(path))}: cannot be opened ({error.strerror or error}); {advice}"


def no_status(path: Path, error: OSError) -> str:
    """The message about a file, folder or link for which `stat` fails."""
    if not isinstance(error, FileNotFoundError) or not path.is_symlink():
        return cannot_be_opened(path, error)
    target = text_of(str(path.readlink()))
    return f"{text_of(str(path))}: is a link to {target}, which does not exist; restore the target or remove the link"
