"""The command that puts a run into its store again."""

from __future__ import annotations

import shlex
from pathlib import Path

from tfcompare.settings import STORE_OPTION
from tfcompare.sources.remote.places import shown
from tfcompare.store.files import is_own
from tfcompare.store.index import Row
from tfcompare.text import is_url, text_of


def ingest_again(row: Row, store: str) -> str:
    """What to type, in a shell, so that the run in the store at that address goes by the same id as before."""
    words = ["tfcompare", "ingest", text_of(_where_the_id_begins(row))]
    words += [] if is_own(store) else [STORE_OPTION, shown(store)]
    return shlex.join(words)


def _where_the_id_begins(row: Row) -> str:
    """The place that it was ingested from, or one that gives the same id."""
    deeper = row.run.count("/")
    if is_url(row.place):
        return row.place.rsplit("/", deeper)[0]
    place = Path(row.place)
    return str(place.parents[deeper - 1] if 0 < deeper <= len(place.parents) else place)
