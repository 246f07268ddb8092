"""The frames of a host file from a store of runs, kept on this machine as well for the next time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from tfcompare.errors import TfcompareError
from tfcompare.frames import HostFrames
from tfcompare.sources.logdir import HostFile
from tfcompare.sources.remote.places import shown
from tfcompare.store.cached_frames import KeptFrames, pack_name
from tfcompare.store.files import StoreFiles, is_own, store_files
from tfcompare.store.packing import Damaged, pack, unpack
from tfcompare.text import text_of


def stored_frames(
    file: HostFile, kept: KeptFrames | None, remarks: dict[str, None], made: Callable[[HostFile], HostFrames]
) -> HostFrames:
    """The frames in the file's pack; where that is damaged or gone, those that `made` gives, if they are the same.

    What was wrong is put among `remarks`. Raises `NotFetched` where the store cannot be asked, and `TfcompareError`
    where there is no pack that can be used, nor the profile that it was made from.
    """
    assert file.stored is not None
    name, store = file.stored.name, store_files(file.stored.store)
    if kept is not None and (frames := _kept(kept, name)) is not None:
        return frames
    try:
        data = store.read(name)
        frames = _checked(unpack(data), name)
    except FileNotFoundError:
        return _made_again(file, store, "is not there any more", remarks, made)
    except Damaged:
        return _made_again(file, store, "is damaged", remarks, made)
    if kept is not None and not is_own(file.stored.store):
        kept.put(name, data)
    return frames


def _kept(kept: KeptFrames, name: str) -> HostFrames | None:
    """Those of an earlier time. Damaged ones are had from the store."""
    try:
        return _checked(unpack(kept.files.read(name)), name)
    except Damaged:
        kept.files.remove(name)
    except OSError:
        pass
    return None


def _checked(frames: HostFrames, name: str) -> HostFrames:
    """The frames, if they belong under that name."""
    if pack_name(frames.host, frames.digest) != name:
        raise Damaged
    return frames


def _made_again(
    file: HostFile,
    store: StoreFiles,
    what: str,
    remarks: dict[str, None],
    made: Callable[[HostFile], HostFrames],
) -> HostFrames:
    """Frames made from the profile itself, and put into the store again, where they are those that were there."""
    assert file.stored is not None
    name, of = file.stored.name, text_of(str(file.where))
    told = f"{shown(file.stored.store)}/{name}: what the store held of {of} {what}"
    frames = None
    with suppress(TfcompareError):
        frames = made(file)
    if frames is None or pack_name(file.host, frames.digest) != name:
        why = "cannot be read here" if frames is None else "is another one now"
        raise TfcompareError(f"{told}, and the profile {why}; run `tfcompare ingest` again where it is")
    with suppress(TfcompareError):  # one that only lets itself be read
        store.write(name, pack(frames))
    remarks[f"{told}; it was made anew from the profile"] = None
    return frames
