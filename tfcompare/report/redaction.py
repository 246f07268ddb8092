"""Other names for what a report must not tell: runs, hosts, and paths in the names of ops, files and devices.

They are given before anything is made of a comparison, so that all of its tables, texts and charts have only these. Ops
whose names are paths are therefore paired by what is left of their names; other numbers are those of the full report.
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
    (?P<option>(?<![\w-])-[A-Za-z]\w{0,30})?  # a path may follow on -I
    (?(option)|(?<![\w./<~)\]}-]))
    (?: ~[\w.-]*/ | (?:(?<!:)/)?/[^\s:/"<>|]+/ )  # the first part of /device:GPU:0 has a colon, which no path has
    (?: [^"<>|\n]*/ )? (?: [^\s"'<>|,;)] | '(?=\w) )*  # up to the last part: folders have blanks, commas and quotes
    |\b[A-Za-z]:\\[^\s"'`<>|]+  # C:\Users\ada\train.py
    |(?<!\\)\\\\[\w.$-]+(?:\\[\w.$-]+)+  # \\server\share\train.py
    |(?<![A-Za-z0-9+.-])(?!https://www\.tensorflow\.org/)[A-Za-z][A-Za-z0-9+.-]{0,30}:\u2060?//[^\s"'`<>)]+  # gs://bucket/x
    """,
    re.VERBOSE,
)
"""Absolute paths with at least two parts, and URLs; names of ops and devices are neither. Of two paths, all between the
first slash and the last counts: too much is left out rather than less."""
_FEWEST_LETTERS = 3


class OtherNames:
    """The texts of a run's profile without paths: different ones stay different.

    `given` is shared by the runs of a comparison, so that a text has the same name in all of them. Those that differ in
    their folders alone may have the same name in two runs: these usually are of the same program.
    """

    def __init__(self, given: dict[str, str]) -> None:
        self._given = given
        self._names: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._lock = Lock()

    def of(self, text: str) -> str:
        """The other name of a text, which is that text where it has no path."""
        with self._lock:
            if text not in self._names:
                name = without_paths(text)
                other = self._given.get(text, name)
                while other in self._texts:
                    self._numbers[name] = self._numbers.get(name, 1) + 1
                    other = f"{name} ({self._numbers[name]})"
                self._names[text] = other
                self._texts[other] = text
                self._given.setdefault(text, other)
            return self._names[text]


class Sentences:
    """Sentences with other names for words such as those of runs and hosts, and without paths."""

    def __init__(self, words: Mapping[str, str]) -> None:
        longest_first = sorted(words, key=lambda word: (-len(word), word))
        self._words = words
        self._pattern = re.compile("|".join(rf"(?<![\w-]){re.escape(word)}(?![\w-])" for word in longest_first))

    def of(self, text: str) -> str:
        """The sentence with the other names, and without paths."""
        return without_paths(self._pattern.sub(lambda found: self._words[found[0]], text))


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
    words = {host: other for host, other in host_names.items() if len(host) >= _FEWEST_LETTERS}
    for run in runs:
        words |= {str(file.where): file.where.name for file in run.found.files}
        words |= {str(run.path): names[run.id], run.id: names[run.id], run.name: names[run.id]}
    given: dict[str, str] = {}
    others = {run.id: OtherNames(given) for run in runs}
    sentences = Sentences(words)
    return comparison.with_runs(
        lambda run: renamed(run, names[run.id], host_names, others[run.id], sentences),
        host_names,
        lambda run, text: others[run.id].of(text),
        sentences.of,
    )


def renamed(run: Run, name: str, hosts: Mapping[str, str], others: OtherNames, sentences: Sentences) -> Run:
    """The run under other names, in its tables and remarks, too."""
    tables = [_host(one, hosts[one.host], others, sentences) for one in run.hosts]
    found, metadata = run.found, run.found.metadata
    return replace(
        run,
        id=name,
        name=name,
        path=PurePath(name),
        host_names=tuple(sorted(one.host for one in tables)),
        remarks=tuple(map(sentences.of, run.remarks)),
        found=replace(
            found,
            id=name,
            name=name,
            problems=tuple(map(sentences.of, found.problems)),
            metadata=Metadata(
                tuple((key, sentences.of(value)) for key, value in metadata.values),
                tuple(map(sentences.of, metadata.tags)),
            ),
        ),
        hosts=tuple(sorted(tables, key=lambda one: one.host)),
        choice=replace(run.choice, marker=run.choice.marker and others.of(run.choice.marker)),
    )


def _host(one: HostTables, name: str, others: OtherNames, sentences: Sentences) -> HostTables:
    late = one.late
    return replace(
        one,
        host=name,
        origin=replace(
            one.origin,
            host_name=name,
            framework=others.of(one.origin.framework),
            device_name=others.of(one.origin.device_name),
            versions=tuple((name, sentences.of(text)) for name, text in one.origin.versions),
            remarks=tuple(map(sentences.of, one.origin.remarks)),
        ),
        step_source=others.of(one.step_source),
        likely_markers=tuple(map(others.of, one.likely_markers)),
        remarks=tuple(map(sentences.of, one.remarks)),
        why_untimed=sentences.of(one.why_untimed),
        tables=_Renamed(one.tables, others),
        late=None if late is None else Late(lambda group: _Renamed(late[group], others)),
    )


def without_paths(text: str) -> str:
    """The text with the last part of each path, or `…` if that is a folder near the root."""
    return _PATHS.sub(_last_part, text)


def _last_part(found: re.Match[str]) -> str:
    option = found["option"] or ""
    parts = [part for part in re.split(r"/|\\", found[0].removeprefix(option)) if part]
    return option + (parts[-1] if len(parts) > 2 or "." in parts[-1] else "…")
