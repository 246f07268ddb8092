"""A loaded profile run: its identity and its tables, and how it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Literal

import pandas as pd

from tfcompare import schema
from tfcompare.errors import NoSuchKind, NoSuchSteps, TfcompareError, Unknown
from tfcompare.frames import HostTables
from tfcompare.frames.profile_reader import FrameBuilder, OnProgress, ProfileReader, build_here
from tfcompare.frames.steps.steps import WHOLE_PROFILE
from tfcompare.sources.logdir import FoundRun, find_runs
from tfcompare.sources.machine_load import MachineLoad, read_load
from tfcompare.sources.replicates import captures_at
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice, step_choice
from tfcompare.store.cached_frames import frame_cache
from tfcompare.store.reading import HostReader, read_hosts
from tfcompare.tables.frames import frame_of_hosts
from tfcompare.tables.run_tables import RunTables
from tfcompare.tables.step_times import are_on_all_hosts, common_step_ids, ranges_of_hosts, run_steps
from tfcompare.text import some_of
from tfcompare.units import format_ms

_US_PER_MS = 1000.0
_ENDS = 2
"""Steps at the ends of captures, which hosts rarely begin and end together."""
_MOST_NAMED = 4
"""Names in a remark."""
Stray = Literal["exclude", "include"]


@dataclass(frozen=True)
class RunInfo:
    """The single row of `run_info` as a dataclass; `schema.RUN_INFO` has the units and meanings."""

    run: str
    hosts: int
    host_names: str
    framework: str
    device_type: str
    device_name: str
    device_count: int
    clock_mhz: float
    start_time: datetime
    start_time_source: str
    duration_ms: float
    step_count: int
    steps_included: int
    step_source: str
    step_time_ms_median: float
    step_time_ms_mean: float
    size_bytes: int
    versions: str
    profiler_options: str
    command_buffers: str
    warnings: str

    @property
    def has_steps(self) -> bool:
        """Whether the profile marks its steps; otherwise the whole profile counts as one step."""
        return self.step_source != WHOLE_PROFILE

    @property
    def has_step_times(self) -> bool:
        """Whether it is known how long the steps took: there are some, and their devices were recorded."""
        return self.has_steps and not math.isnan(self.step_time_ms_mean)


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A loaded run: its tables. Its timeline and the texts around instructions are read from its files when they are
    asked for, which must still be there; its other tables are in memory. A notebook shows its step time and top ops.

    `id` is the path relative to the folder it was found under, `name` the display name. `content_id` is a digest of the
    host files and the step choice: copies of a run share it wherever they are. `host_names` is sorted. `remarks` are
    sentences to read before trusting the numbers. `choice` is which steps count and what begins them. `machine_load` is
    the load of the machine during recording, None if unknown. `replicates` are further captures of the program, where
    `load` found several at one place; the tables are those of this capture.
    """

    id: str
    name: str
    path: PurePath
    content_id: str
    host_names: tuple[str, ...]
    remarks: tuple[str, ...]
    found: FoundRun
    hosts: tuple[HostTables, ...]
    choice: StepChoice = OWN_STEPS
    machine_load: MachineLoad | None = None
    replicates: tuple[Run, ...] = ()

    def __repr__(self) -> str:
        info = self.info
        steps = f"{format_ms(info.step_time_ms_mean)} per step, {info.step_count:,} steps"
        untimed = f"{info.step_count:,} steps of unknown time" if info.has_steps else "no step markers"
        return f"<Run {self.name!r}: {steps if info.has_step_times else untimed}, {info.device_type}>"

    @property
    def captures(self) -> tuple[Run, ...]:
        """This capture and its replicates: all captures of the program that were loaded, which `compare` uses."""
        return (self, *self.replicates)

    @property
    def is_under_load(self) -> bool:
        """Whether the machine is known to have been busy with other work during recording."""
        return self.machine_load is not None and self.machine_load.is_busy

    @property
    def why_untimed(self) -> str:
        """Why the profile's step markers do not count as steps, or have no time; empty if those of any host do, or if
        there are none."""
        return "" if self.info.has_step_times else next((h.why_untimed for h in self.hosts if h.why_untimed), "")

    @cached_property
    def info(self) -> RunInfo:
        """The row of `run_info`."""
        origins = [host.origin for host in self.hosts]
        included = self.steps.loc[self.steps["included"], "duration_us"] / _US_PER_MS
        started = [origin.start_ns for origin in origins if origin.start_ns]
        return RunInfo(
            run=self.id,
            hosts=len(self.hosts),
            host_names=", ".join(self.host_names),
            framework=_join_distinct(o.framework for o in origins),
            device_type=_join_distinct(o.device_type for o in origins),
            device_name=_join_distinct(o.device_name for o in origins),
            device_count=sum(o.device_count for o in origins),
            clock_mhz=max(o.clock_mhz for o in origins),
            start_time=datetime.fromtimestamp(min(started) / 1e9, UTC) if started else self.found.recorded,
            start_time_source="profile" if started else self.found.recorded_source,
            duration_ms=max(o.duration_us for o in origins) / _US_PER_MS,
            step_count=max(len(self.steps), 1),
            steps_included=max(len(included), 1),
            step_source=_join_distinct(host.step_source for host in self.hosts),
            step_time_ms_median=float(included.median()),
            step_time_ms_mean=float(included.mean()),
            size_bytes=self.found.size_bytes,
            versions=_join_distinct(" ".join(one) for o in origins for one in o.versions),
            profiler_options=_join_distinct(" ".join(one) for o in origins for one in o.profiler_options),
            command_buffers=_join_distinct(o.command_buffers for o in origins),
            warnings="; ".join(self.remarks),
        )

    @cached_property
    def tables(self) -> RunTables:
        """The tables of the run, and what else is made of those of its hosts."""
        return RunTables(self.name, self.hosts, self.choice)

    @property
    def steps(self) -> pd.DataFrame:
        """Columns `step`, `duration_us`, `included`, `stray`: each step of the run, as long as on its slowest host."""
        return self.tables.kinds.steps

    @property
    def lost_steps(self) -> int:
        """How many steps were not recorded as a whole, and do not count, among others that were."""
        return int(self.steps["duration_us"].isna().sum()) if self.info.has_step_times else 0

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices with op events, sorted, such as `/device:GPU:0`."""
        return self.tables.devices

    @property
    def likely_markers(self) -> tuple[str, ...]:
        """Host events that may begin each step, likeliest first; empty if the profile marks its steps itself."""
        return tuple(dict.fromkeys(name for h in self.hosts for name in h.likely_markers))

    @property
    def memory_bytes(self) -> int:
        """Memory used by the run's frames, in bytes, for caches with a size limit. It grows as tables are derived."""
        return self.tables.memory_bytes + sum(run.memory_bytes for run in self.replicates)

    def table(self, name: str, *, host: str | None = None, device: str | None = None) -> pd.DataFrame:
        """The table `name` with the columns that `schema` declares.

        Ops are summed over hosts and devices (with `host` set to `all`) unless one is chosen; other tables have the
        rows of every host. Choosing a device is possible for ops, which drops host ops, for copies and for
        `hosts`. Raises `Unknown` for an unknown table, host or device, and for a device if the table has no rows by
        device.
        """
        self.tables.check(name, host, device)
        if name == "run_info":
            return schema.RUN_INFO.conform(pd.DataFrame([asdict(self.info)]))
        return self.tables.table(name, host=host, device=device).copy(deep=False)

    def only(self, *hosts: str) -> Run:
        """The run with these of its hosts alone, under an id, name and content id of its own. Raises `Unknown` for an
        unknown host."""
        chosen = [frames for host in hosts for frames in self.tables.select(host)]
        of_hosts = f" ({', '.join(hosts)})"
        return replace(
            self,
            id=self.id + of_hosts,
            name=self.name + of_hosts,
            content_id=_content_id(chosen, self.choice),
            host_names=tuple(sorted(hosts)),
            hosts=tuple(chosen),
            replicates=(),
        )


def load(
    place: str | Path | FoundRun,
    *,
    step_marker: str | None = None,
    steps: str | None = None,
    stray: Stray = "exclude",
    step_kind: str | None = None,
    join: bool = False,
    progress: OnProgress | None = None,
    fetching: OnProgress | None = None,
    build: FrameBuilder = build_here,
) -> Run:
    """Load the run at `place`: a file, run folder, logdir or found run.

    A place that holds several captures of one program, by their names (`run-1`, `run-2`, …), is a run with these
    `captures`: its tables are those of the first, and comparisons use all of them.

    `step_marker` names the host event that begins each step, for profiles without suitable markers of their own.
    `steps` restricts all tables to a range of steps by position, such as `5:25` (counted from 1, inclusive), `5:` or
    `:25`, and what ran between them. `stray`: whether a step that is far longer than all others is excluded from the
    figures, or counted (`include`). `step_kind`: only steps of that marker or program are in the figures.
    `join` is that of `find_runs`.

    Remote host files are first downloaded in parallel into the user's cache folder, unless they are there. `fetching`
    is called with the progress of downloads, `progress` with that of reading. Host files that were read before and have
    not changed come from this machine's cache; `build` reads the others.

    A damaged host file among readable ones becomes a remark. Raises a `TfcompareError` if no host file can be read
    (`NotAProfile`, `NoSuchPlace`, `TooLarge`), one cannot be downloaded (`NotFetched`) or has no such steps
    (`NoOtherSteps`), `steps` or `stray` is malformed, or there is no run (`NoRuns`) or runs of several programs
    (`SeveralRuns`) at `place`.
    """
    if stray not in ("exclude", "include"):
        raise Unknown("use of a stray", stray, ["exclude", "include"])
    choice = step_choice(step_marker, steps, counts_stray=stray == "include", kind=step_kind)
    profiles = partial(ProfileReader, fetching=fetching, build=build)
    if isinstance(place, FoundRun):
        return _read(place.opened(), choice, profiles, progress)
    found, left_out = captures_at(find_runs(place, join=join), place, join=join)
    run, *others = [_read(one.opened(), choice, profiles, progress) for one in found]
    if not others:
        return run
    remark = f"the first of {len(found)} captures of one program, by their names; comparisons use all of them"
    remarks = (*run.remarks, *(f"left out: {problem}" for problem in left_out), remark)
    return replace(run, replicates=tuple(others), remarks=remarks)


def _read(
    found: FoundRun, choice: StepChoice, profiles: Callable[..., ProfileReader], progress: OnProgress | None
) -> Run:
    """One capture with the chosen steps. Raises as `load` does."""
    cache = frame_cache()
    if choice.has_range and len(found.files) > 1:
        whole = HostReader(profiles(found, StepChoice(choice.marker)), cache)
        hosts, failures = read_hosts(found, whole, progress)
        if hosts:
            part, of_host = _steps_of_hosts(found, hosts, choice)
            remarks = [*(f"left out: {failure}" for failure in failures), *whole.remarks]
            run = read_by(HostReader(profiles(part, choice, of_host=of_host), cache), part, progress)
            return replace(run, found=found, remarks=(*run.remarks, *remarks))
    return read_by(HostReader(profiles(found, choice), cache), found, progress)


def _steps_of_hosts(
    found: FoundRun, hosts: Sequence[HostTables], choice: StepChoice
) -> tuple[FoundRun, dict[str, StepChoice]]:
    """(the run with those of these hosts alone that have steps of the chosen range; which of its steps each takes).

    Raises `NoSuchSteps` if none has.
    """
    steps = frame_of_hosts("steps", hosts)
    ranges = ranges_of_hosts(steps, choice.first, choice.last)
    if not ranges:
        raise NoSuchSteps(found.name, str(choice.range), len(run_steps(steps)))
    without = [host.host for host in hosts if host.host not in ranges]
    left_out = [f"left out: host {host} has none of the chosen steps" for host in without]
    files = tuple(file for file in found.files if file.host in ranges)
    part = replace(found, files=files, problems=(*found.problems, *left_out))
    return part, {host: replace(choice, first=low, last=high) for host, (low, high) in ranges.items()}


def read_by(reader: HostReader, found: FoundRun, progress: OnProgress | None = None) -> Run:
    """The run with the host files that `reader` provides. Raises as `load` does."""
    if not found.files:
        raise TfcompareError("; ".join(found.problems) or f"{found.path}: no host file to read")
    hosts, failures = read_hosts(found, reader, progress)
    if not hosts:
        raise failures[0]
    is_here = not (found.is_remote or found.is_stored)
    load = read_load(Path(found.files[0].path).parent) if is_here else None
    busy = [f"recorded under load ({load}): step times vary more"] if load is not None and load.is_busy else []
    remarks = (
        *found.problems,
        *(f"left out: {failure}" for failure in failures),
        *_remarks(hosts),
        *busy,
        *reader.remarks,
    )
    run = Run(
        id=found.id,
        name=found.name,
        path=found.path,
        content_id=_content_id(hosts, reader.profiles.choice),
        host_names=tuple(sorted(h.host for h in hosts)),
        remarks=remarks,
        found=found,
        hosts=tuple(hosts),
        choice=reader.profiles.choice,
        machine_load=load,
    )
    if run.choice.kind is not None and not run.steps["included"].any():
        raise NoSuchKind(found.name, run.choice.kind, list(run.tables.kinds.counts))
    return run


def _content_id(hosts: list[HostTables], choice: StepChoice) -> str:
    digest = blake2b("".join(sorted(h.digest for h in hosts)).encode(), digest_size=16)
    if choice.key is not None:
        digest.update(choice.key.encode("utf-8", "surrogatepass"))
    if choice.has_range:  # which takes other steps of each host
        for host in sorted(hosts, key=lambda one: one.host):
            digest.update(host.table("steps")["step"].to_numpy().tobytes())
    if choice.counts_stray:
        digest.update(b" with stray")
    if choice.kind is not None:
        digest.update(b" of kind " + choice.kind.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _remarks(hosts: list[HostTables]) -> list[str]:
    """Cautions from the files themselves, and about files that are identical."""
    several = len(hosts) > 1
    out = [f"{h.host}: {remark}" if several else remark for h in hosts for remark in h.remarks]
    by_digest: dict[str, list[str]] = {}
    for h in hosts:
        by_digest.setdefault(h.digest, []).append(h.host)
    out += [
        f"the files of hosts {some_of(same, _MOST_NAMED)} are identical: one capture is counted {len(same)} times"
        for same in by_digest.values()
        if len(same) > 1
    ]
    if several:
        steps = frame_of_hosts("steps", hosts)
        if (partial := common_step_ids(steps)[~are_on_all_hosts(steps)].nunique()) > _ENDS:
            out.append(f"steps that were not recorded on all hosts, and do not count: {partial:,}")
    return out


def _join_distinct(values: Iterable[str]) -> str:
    """The distinct values, in order, separated by commas."""
    return ", ".join(dict.fromkeys(v for v in values if v))
