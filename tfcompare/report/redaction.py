"""Other names for what a report must not tell: runs, hosts, and paths in the names of ops, files and devices.

They are given before anything is made of a comparison, so that all of its tables, texts and charts have only these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from threading import Lock

import pyarrow as pa

from tfcompare.charts.style import letter
from tfcompare.compare import Comparison
from tfcompare.frames.arrow import TEXT, texts
from tfcompare.frames.host import HostTables, Late, memory_bytes
from tfcompare.run import Run
from tfcompare.sources.logdir.metadata import Metadata
from tfcompare.tools.caveats import runs_of

_PATHS = re.compile(
    r"""
    (?: (?<![\w./<~)\]}-]) | (?<=[\s"'(=:,;]-[A-Za-z]) | (?<=\A-[A-Za-z]) )  # a path may follow on -I
    (?: ~[\w.-]*/ | /(?!/)[^\s:/"'<>|]+/ )  # the first part of /device:GPU:0 has a colon, which no path has
    (?: [^"'<>|\n]*/ )? [^\s"'<>|,;)]*  # up to the last part, whatever stands between: folders have blanks and commas
    |\b[A-Za-z]:\\[^\s"'`<>|]+  # C:\Users\ada\train.py
    |(?<!\\)\\\\[\w.$-]+(?:\\[\w.$-]+)+  # \\server\share\train.py
    |\b(?!https://www\.tensorflow\.org/)[a-z][a-z0-9+.-]*:\u2060?//[^\s"'`<>)]+  # gs://bucket/train.py
    """,
    re.VERBOSE,
)
"""Absolute paths with at least two parts, and URLs; names of ops and devices are neither. Of two paths, all between the
first slash and the last counts: too much is left out rather than less."""
_FEWEST_LETTERS = 3


class OtherNames:
    """The texts of profiles without paths. Different texts stay different, the same ones are the same in all runs."""

    def __init__(self) -> None:
        self._given: dict[str, str] = {}
        self._taken: set[str] = set()
        self._lock = Lock()

    def of(self, text: str) -> str:
        """The other name of a text, which is that text where it has no path."""
        with self._lock:
            if text not in self._given:
                name = other = _PATHS.sub(_last_part, text)
                number = 1
                while other in self._taken:
                    number += 1
                    other = f"{name} ({number})"
                self._given[text] = other
                self._taken.add(other)
            return self._given[text]


class _Renamed(Mapping[str, pa.Table]):
    """Tables of a host with other names in all their texts; each is renamed when it is asked for."""

    def __init__(self, tables: Mapping[str, pa.Table], names: OtherNames) -> None:
        self._tables = tables
        self._names = names
        self.memory_bytes = memory_bytes(tables)

    def __getitem__(self, name: str) -> pa.Table:
        table = self._tables[name]
        for place, field in enumerate(table.schema):
            if field.type == TEXT and len(table):
                column = table.column(place).combine_chunks()
                labels = map(self._names.of, column.dictionary.to_pylist())
                table = table.set_column(place, field, texts(column.indices.to_numpy(), labels))
        return table

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def redacted(comparison: Comparison) -> Comparison:
    """The comparison without paths, its runs called `A`, `B`, …, their replicates `A 2`, `A 3`, …, and its hosts
    `host 1`, …"""
    own = runs_of(comparison)
    names: dict[str, str] = {}
    runs = []
    for i, run in enumerate(own):
        for number, one in enumerate((run, *comparison.repeats_of(run)), start=1):
            names.setdefault(one.id, letter(i) if number == 1 else f"{letter(i)} {number}")
            runs.append(one)
    hosts = list(dict.fromkeys(host for run in runs for host in run.host_names))
    digits = len(str(len(hosts)))
    host_names = {host: f"host {number:0{digits}}" for number, host in enumerate(hosts, start=1)}
    others = OtherNames()
    return comparison.with_runs(
        lambda run: renamed(run, names.get(run.id, run.id), host_names, others), host_names, others.of
    )


def renamed(run: Run, name: str, hosts: Mapping[str, str], others: OtherNames) -> Run:
    """The run under other names, in its tables and remarks, too."""
    words = {host: other for host, other in hosts.items() if len(host) >= _FEWEST_LETTERS}
    words |= {str(file.where): file.where.name for file in run.found.files}
    words |= {str(run.path): name, run.id: name, run.name: name}
    tables = [_host(one, hosts[one.host], words, others) for one in run.hosts]
    found = run.found
    return replace(
        run,
        id=name,
        name=name,
        path=PurePath(name),
        host_names=tuple(sorted(one.host for one in tables)),
        remarks=tuple(_without(remark, words) for remark in run.remarks),
        found=replace(
            found,
            id=name,
            name=name,
            problems=tuple(_without(problem, words) for problem in found.problems),
            metadata=_metadata(found.metadata, words),
        ),
        hosts=tuple(sorted(tables, key=lambda one: one.host)),
        choice=replace(run.choice, marker=run.choice.marker and others.of(run.choice.marker)),
    )


def _host(one: HostTables, name: str, words: Mapping[str, str], others: OtherNames) -> HostTables:
    late = one.late
    return replace(
        one,
        host=name,
        origin=replace(
            one.origin,
            host_name=name,
            framework=others.of(one.origin.framework),
            device_name=others.of(one.origin.device_name),
            remarks=tuple(_without(remark, words) for remark in one.origin.remarks),
        ),
        step_source=others.of(one.step_source),
        likely_markers=tuple(map(others.of, one.likely_markers)),
        remarks=tuple(_without(remark, words) for remark in one.remarks),
        why_untimed=_without(one.why_untimed, words),
        tables=_Renamed(one.tables, others),
        late=None if late is None else Late(lambda group: _Renamed(late[group], others)),
    )


def _metadata(metadata: Metadata, words: Mapping[str, str]) -> Metadata:
    values = ((key, _without(value, words)) for key, value in metadata.values)
    return Metadata(tuple(values), tuple(_without(tag, words) for tag in metadata.tags))


def _without(text: str, words: Mapping[str, str]) -> str:
    """The sentence with other names for these, and without paths."""
    longest_first = sorted(words, key=lambda word: (-len(word), word))
    pattern = "|".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in longest_first)
    return without_paths(re.sub(pattern, lambda found: words[found[0]], text))


def without_paths(text: str) -> str:
    """The sentence with the last part of each path, or `…` if that is a folder near the root."""
    return _PATHS.sub(_last_part, text)


def _last_part(found: re.Match[str]) -> str:
    parts = [part for part in re.split(r"/|\\", found[0]) if part]
    return parts[-1] if len(parts) > 2 or "." in parts[-1] else "…"
