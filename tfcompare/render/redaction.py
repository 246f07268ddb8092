"""Other texts for what a report must not tell: runs, hosts, users, paths and addresses, wherever a profile has them.

They are given before anything is made of a comparison, so that all of its tables, texts and charts have only these.
`Secrets` takes them out of a text, `OtherNames` keeps different texts different. Ops whose names are paths are
therefore paired by what is left of their names; other numbers are those of the full report.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePath
from threading import Lock
from typing import TypeVar

import pyarrow as pa

from tfcompare.compare.pairs import Pairs
from tfcompare.compare.side import letter
from tfcompare.errors import TfcompareError
from tfcompare.frames.arrow import TEXT, texts
from tfcompare.frames.host import HostTables, LazyTables, memory_bytes
from tfcompare.run import Run
from tfcompare.schema.host_tables import HOST_TABLES
from tfcompare.sources.logdir.found_run import FoundRun, HostFile
from tfcompare.sources.logdir.metadata import Metadata

_SLASH, _BACKSLASH = r"(?:/|%(?:25)?2[Ff])", r"(?:\\|%(?:25)?5[Cc])"
_EITHER = rf"(?:{_SLASH}|{_BACKSLASH})"
_ENCODED = r"(?:(?<=%2[Ff])|(?<=%252[Ff])|(?<=%5[Cc])|(?<=%255[Cc]))"
_URL = re.compile(
    r"""(?<![A-Za-z0-9+.-])(?!https://www\.tensorflow\.org/)[A-Za-z][A-Za-z0-9+.-]{0,30}:\u2060?//[^\s"'`<>)]+"""
)
_PATH = re.compile(
    rf"""
    (?=[-~/%hU])
    (?: (?:(?P<option>(?<![\w-])-[A-Za-z]\w{{0,30}})|(?<![\w./<~)\]}}-]))  # a path may follow on -I
        (?: ~[\w.-]*{_SLASH} | (?:(?<!:){_SLASH}+|{_SLASH})[^\s:/"<>|]+?{_SLASH} )  # /device:GPU:0 has a colon
    |   (?:(?<=/)|{_ENCODED}) (?: ~[\w.-]*{_SLASH} | (?<!:/){_SLASH}[^\s:/"<>|]+?{_SLASH} )  # model//home/ada/x.py
    |   (?P<relative>(?:{_ENCODED}|(?<![\w.-]))(?:home|Users){_SLASH}+[^\s:/"<>|]+?{_SLASH})  # home/ada/x.py
    )
    (?: [^"<>|\n]*{_SLASH} )? (?: [^\s"'<>|,;)] | '(?=\w) )*  # up to the last part: folders have blanks, commas, quotes
    """,
    re.VERBOSE,
)
"""Absolute paths with at least two parts, and those of home folders; names of ops and devices are neither. Of two
paths, all between the first slash and the last counts: too much is left out rather than less."""
_WINDOWS_PATH = re.compile(
    rf"""
    (?: (?<![^\W_])[A-Za-z](?::|%3[Aa]){_BACKSLASH} | (?<!\\)\\\\[\w.$-]+\\  # C:\Users\ada\x.py, \\server\share\x.py
    |   (?P<relative>(?:{_ENCODED}|(?<![\w.-]))Users{_EITHER}+[^\s:/\\"<>|]+?{_EITHER})
    )
    (?: [^"<>|\n]*{_EITHER} )? [^\s"'`<>|,;)]*
    """,
    re.VERBOSE,
)
_HOMES = ("home", "Users")
_USER = re.compile(rf"(?:^|{_EITHER})(?:home|Users){_EITHER}+([\w.@+-]*\w)|(?:^|/)~([\w.-]*\w)")
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]+(?:@|%40)[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")
_IPV4 = re.compile(
    r"(?<![^\W_])(?<!\.)(?:\d{1,3}(?:\.\d{1,3}){3}(?![^\W_]|\.\d)(?P<port>(?=:\d))?|ip(?:-\d{1,3}){4}(?!\d))"
)
_IPV6 = re.compile(
    r"(?<![\w:.])(?:[23][0-9a-f]{3}|f[cd][0-9a-f]{2}|fe[89ab][0-9a-f])"
    r"(?:(?::[0-9a-f]{1,4}){7}|(?=[0-9a-f:]{0,35}::)(?::[0-9a-f]{0,4}){2,7})(?![\w:])",
    re.IGNORECASE,
)
"""An IPv6 address begins as those do that are assigned, which times (10:17:24) and C++ names (c10::add) do not."""
_FEWEST_IN_CLUSTERS, _MOST_IN_PART = 10, 255
"""Four numbers of which the first is below 10 are a version, such as cuDNN's 9.1.0.70, unless a port follows: machines
of a cluster have addresses in 10.0.0.0/8 or above."""
_CUT = " …"
"""At the end of a long message of a profile."""
_FEWEST_LETTERS = 3
_COMMON = re.compile(
    "all|build|chief|cpu|data|device|gpu|host|job|localhost|main|master|model|none|public|replica|root|run|server|shared"
    "|step|task|test|tpu|train|user|worker"
)
"""Hosts and users of these names tell nothing, and the words are in the names of devices and many ops."""
_MOST_USERS = 1_000
"""Each one costs time at each word; of more, which no real profile has, the names are left out in paths alone."""


class Secrets:
    """What a report must leave out of some runs: their names, hosts, users, paths and addresses.

    `runs` and `hosts` have the other names of the runs and hosts, `places` the names of files and runs by their paths;
    users are those whose home folders are in `texts`. Hosts, by their full or short names, and users are left out as
    whole words, which no letter or digit touches, if they have three characters or more and are not in `_COMMON`; runs
    only in sentences and as the last part of a path, since they are often called as ops are.
    """

    def __init__(
        self, runs: Mapping[str, str], hosts: Mapping[str, str], places: Mapping[str, str], texts: Iterable[str]
    ) -> None:
        self._runs = runs
        self._addresses: dict[str, str] = {}
        words: dict[str, str] = {}
        for host, other in hosts.items():
            for word in (host, re.sub(r":\d+$", "", host), re.split(r"[.:]", host)[0]):
                if _is_telling(word):
                    words.setdefault(word, other)
        users = dict.fromkeys(user for text in texts for user in _users_in(text) if _is_telling(user))
        for number, user in enumerate(list(users)[:_MOST_USERS], start=1):
            words.setdefault(user, f"user {number}")
        self._of_places, self._of_words, self._of_runs = map(_Words, (places, words, {**runs, **words}))

    def in_sentence(self, text: str) -> str:
        """The sentence without secrets."""
        if text.endswith(_CUT):  # perhaps within a secret
            text = f"{text.removesuffix(_CUT).rpartition(' ')[0]} …{_CUT}"
        return self._without(self._of_places.of(text), self._of_runs)

    def in_name(self, text: str) -> str:
        """The name of an op, a device, a file, … without secrets."""
        return self._without(text, self._of_words)

    def _without(self, text: str, words: _Words) -> str:
        """The order counts: a path is none any more, and an address neither, without its words."""
        if "//" in text:
            text = _URL.sub(self._last_part, text)
        if "/" in text or "%2" in text:
            text = _PATH.sub(self._last_part, text)
        if "\\" in text or "%" in text:
            text = _WINDOWS_PATH.sub(self._last_part, text)
        if "@" in text or "%40" in text:
            text = _MAIL.sub(self._address, text)
        text = words.of(text)
        return _IPV6.sub(self._address, _IPV4.sub(self._ipv4, text))

    def _last_part(self, found: re.Match[str]) -> str:
        """The last part of a path, or `…` if that is a folder near the root, a machine, or the home of a user."""
        option = found.groupdict().get("option") or ""
        parts = ["", *filter(None, re.split(_EITHER, found[0].removeprefix(option)))]
        last = parts[-1].rpartition("…")[2]  # after the cut of a long name
        is_near_root = len(parts) <= 3 and ("." not in last or parts[1].endswith(":"))
        return option + ("…" if is_near_root or parts[-2] in _HOMES or not last else self._runs.get(last, last))

    def _ipv4(self, found: re.Match[str]) -> str:
        numbers = [int(number) for number in re.findall(r"\d+", found[0])]
        is_version = numbers[0] < _FEWEST_IN_CLUSTERS and found["port"] is None
        return found[0] if is_version or max(numbers) > _MOST_IN_PART else self._address(found)

    def _address(self, found: re.Match[str]) -> str:
        return self._addresses.setdefault(found[0], f"address {len(self._addresses) + 1}")


class _Words:
    """Other texts for whole words, which no letter or digit touches."""

    def __init__(self, others: Mapping[str, str]) -> None:
        longest_first = sorted(others, key=lambda word: (-len(word), word))
        self._others = others
        self._pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, longest_first)) or '(?!)'})(?![^\W_])")

    def of(self, text: str) -> str:
        return self._pattern.sub(lambda found: self._others[found[0]], text)


def _is_telling(word: str) -> bool:
    return len(word) >= _FEWEST_LETTERS and not word.isdigit() and not _COMMON.fullmatch(word.lower())


def _users_in(text: str) -> Iterator[str]:
    """Those whose home folders are in the text; `model/home/dense` may be a scope."""
    if "home" in text or "Users" in text or "~" in text:
        for path in chain(_PATH.finditer(text), _WINDOWS_PATH.finditer(text)):
            if path["relative"] is None:
                yield from (user or other for user, other in _USER.findall(path[0]))


class OtherNames:
    """The texts of a run without secrets: different ones stay different.

    `given` is shared by the runs of a comparison, so that a text has the same name in all of them. Those that differ in
    their folders alone may have the same name in two runs: these usually are of the same program.
    """

    def __init__(self, without_secrets: Callable[[str], str], given: dict[str, str]) -> None:
        self._without_secrets = without_secrets
        self._given = given
        self._names: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._lock = Lock()

    def of(self, text: str) -> str:
        """The other name of a text, which is that text where it has no secret."""
        with self._lock:
            if text not in self._names:
                name = self._without_secrets(text)
                other = self._given.get(text, name)
                while other in self._texts:
                    self._numbers[name] = self._numbers.get(name, 1) + 1
                    other = f"{name} ({self._numbers[name]})"
                self._names[text] = other
                self._texts[other] = text
                self._given.setdefault(text, other)
            return self._names[text]


Naming = Callable[[str], str]


class _Renamed(Mapping[str, pa.Table]):
    """Tables of a host with other names in all their texts; each is renamed when it is asked for."""

    def __init__(self, tables: Mapping[str, pa.Table], name: Naming) -> None:
        self._tables = tables
        self._name = name
        self.memory_bytes = memory_bytes(tables)

    def __getitem__(self, name: str) -> pa.Table:
        table = self._tables[name]
        for place, field in enumerate(table.schema):
            if field.type == TEXT and len(table):
                column = table.column(place).combine_chunks()
                labels = map(self._name, column.dictionary.to_pylist())
                table = table.set_column(place, field, texts(column.indices.to_numpy(), labels))
        return table

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


_Key = tuple[str, str]
P = TypeVar("P", bound=Pairs)


def redacted(comparison: P) -> P:
    """The comparison without paths, users and addresses, its runs called `A`, `B`, …, their replicates `A 2`, `A 3`, …,
    and its hosts `host 1`, …"""
    names: dict[_Key, str] = {}
    runs: dict[_Key, Run] = {}
    for i, side in enumerate(comparison.sides):
        for number, one in enumerate(side.runs, start=1):
            names.setdefault(_key(one), letter(i) if number == 1 else f"{letter(i)} {number}")
            runs.setdefault(_key(one), one)
    seen = {key: _texts_of(run) for key, run in runs.items()}
    files = [file for run in runs.values() for file in run.found.files]
    known = dict.fromkeys([*(host for run in runs.values() for host in run.host_names), *(file.host for file in files)])
    digits = len(str(len(known)))
    hosts = {host: f"host {number:0{digits}}" for number, host in enumerate(known, start=1)}
    tables = [one for run in runs.values() for one in run.hosts]
    secrets = Secrets(
        {name: names[key] for key, run in reversed(runs.items()) for name in (run.id, run.name, run.found.name)},
        {name: hosts[one.host] for one in tables for name in one.origin.host_name.split(", ")} | hosts,
        {str(file.where): file.where.name for file in files} | {str(run.path): names[key] for key, run in runs.items()},
        chain.from_iterable(seen.values()),
    )
    given: dict[str, str] = {}
    shared, sentences = OtherNames(secrets.in_name, given), OtherNames(secrets.in_sentence, {})
    others = {key: OtherNames(secrets.in_name, given) for key in runs}
    for text, count in Counter(chain.from_iterable(seen.values())).items():
        for own in (shared, *(others[key] for key in runs if text in seen[key])) if count > 1 else ():
            own.of(text)  # before those of a single run, which may not take its name
    return comparison.with_runs(
        lambda run: renamed(run, names[_key(run)], hosts, others[_key(run)].of, sentences.of),
        hosts,
        lambda run, text: others[_key(run)].of(text),
        sentences.of,
    )


def _key(run: Run) -> _Key:
    """What tells captures apart: one stands for all of its program under an id that another has as well."""
    return run.id, run.content_id


def _texts_of(run: Run) -> dict[str, None]:
    """Every text of a run, in order."""
    found = dict.fromkeys([run.name, str(run.path), *(str(file.where) for file in run.found.files)])

    def note(text: str) -> str:
        found[text] = None
        return text

    same = {host: host for host in (*run.host_names, *(file.host for file in run.found.files))}
    for host in renamed(run, run.name, same, note, note).hosts:
        for name in HOST_TABLES:
            with suppress(TfcompareError):  # its file is not there any more
                host.table(name)
    return found


def renamed(run: Run, name: str, hosts: Mapping[str, str], naming: Naming, sentence: Naming) -> Run:
    """The run under other names, in its tables and remarks, too."""
    tables = [_host(one, hosts[one.host], naming, sentence) for one in run.hosts]
    found, choice = run.found, run.choice
    return replace(
        run,
        replicates=(),
        id=name,
        name=name,
        path=PurePath(name),
        host_names=tuple(sorted(one.host for one in tables)),
        remarks=tuple(map(sentence, run.remarks)),
        found=FoundRun(
            name,
            name,
            PurePath(name),
            tuple(HostFile(hosts[f.host], Path(hosts[f.host]), f.size_bytes, f.modified_ns) for f in found.files),
            tuple(map(sentence, found.problems)),
            found.recorded,
            found.recorded_source,
            metadata=Metadata(
                tuple((sentence(key), sentence(value)) for key, value in found.metadata.values),
                tuple(map(sentence, found.metadata.tags)),
            ),
        ),
        hosts=tuple(sorted(tables, key=lambda one: one.host)),
        choice=replace(
            choice, marker=choice.marker and naming(choice.marker), kind=choice.kind and naming(choice.kind)
        ),
    )


def _host(one: HostTables, name: str, naming: Naming, sentence: Naming) -> HostTables:
    late, origin = one.late, one.origin
    return replace(
        one,
        host=name,
        origin=replace(
            origin,
            host_name=name,
            framework=naming(origin.framework),
            device_type=naming(origin.device_type),
            device_name=naming(origin.device_name),
            versions=tuple((naming(key), naming(text)) for key, text in origin.versions),
            profiler_options=tuple((naming(key), naming(text)) for key, text in origin.profiler_options),
            remarks=tuple(map(sentence, origin.remarks)),
        ),
        step_source=naming(one.step_source),
        likely_markers=tuple(map(naming, one.likely_markers)),
        remarks=tuple(map(sentence, one.remarks)),
        why_untimed=sentence(one.why_untimed),
        tables=_Renamed(one.tables, naming),
        late=None if late is None else LazyTables(lambda group: _Renamed(late[group], naming)),
    )
