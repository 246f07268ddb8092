"""The metadata of runs behind URLs: their small files are read at once when a place is listed."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from pathlib import PurePath

from tfcompare.sources.logdir.metadata import FILE_NAME, LARGEST_FILE_BYTES, NO_METADATA, Metadata, of_bytes, unused
from tfcompare.sources.remote.failures import sentence
from tfcompare.sources.remote.files import Listing, RemoteFile
from tfcompare.sources.remote.places import RemotePlace
from tfcompare.sources.remote.stores import connect
from tfcompare.text import text_of

MOST_S = 30.0
"""Files that have not arrived after this time are left out, so that listing a place does not depend on them."""
_THREADS = 16


def listed_metadata(listing: Listing) -> dict[PurePath, tuple[Metadata, str]]:
    """By folder: the metadata in its file, empty if that is unusable; why it is unusable, in a sentence, or empty."""
    files = [file for file in listing.files if file.path.name == FILE_NAME]
    if not files:
        return {}
    pool = ThreadPoolExecutor(min(_THREADS, len(files)))
    reads = {file: pool.submit(_read, file) for file in files}
    done, _ = wait(reads.values(), timeout=MOST_S)
    pool.shutdown(wait=False, cancel_futures=True)
    late = f"did not arrive within {MOST_S:g} s; look for runs again to read it"
    return {
        file.path.parent: read.result() if read in done else (NO_METADATA, f"{text_of(str(file.path))}: {late}")
        for file, read in reads.items()
    }


def _read(file: RemoteFile) -> tuple[Metadata, str]:
    try:
        content = _content(file)
    except Exception as error:  # drivers raise any exception
        return NO_METADATA, sentence(file.path, error)
    try:
        return of_bytes(content), ""
    except ValueError as error:
        return NO_METADATA, unused(file.path, str(error))


@lru_cache(maxsize=1 << 14)
def _content(file: RemoteFile) -> bytes:
    """A version of the file, up to one byte more than is allowed."""
    return connect(RemotePlace(file.path, file.address)).beginning(file, LARGEST_FILE_BYTES + 1)
