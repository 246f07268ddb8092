"""What differs between two runs besides their times: software, profiler, devices, inputs and programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.compare import executions
from tfcompare.compare.pair import Pair
from tfcompare.errors import TfcompareError
from tfcompare.hlo.names import plain_program
from tfcompare.text import as_code, as_markdown, some_of
from tfcompare.units import format_value
from tfcompare.views.blocks import Block, Facts, Link, Links, Section, Text
from tfcompare.views.xla.memory import program_names
from tfcompare.views.xla.program import contents_of, diff_of, recorded_programs

if TYPE_CHECKING:
    from tfcompare.compare.comparability import Mismatch
    from tfcompare.run import Run

MOST_PROGRAMS = 3
"""Programs that a sentence names, and whose differences the Overview describes, the longest first; all are compared,
and the XLA page tells of all."""
UNREACHED = "No change reached the compiler (layouts and backend options aside)"
_HELP = (
    "Besides times: devices, software, levels of the profiler's tracers, what the users noted of the runs, the inputs "
    "of compiled programs and the programs themselves, as far as the profiles have them. Programs have the same "
    "instructions if these are equal in name without numbers, shape, opcode, operands, attributes, sharding and "
    "donation; layouts, backend options and generated code are not compared."
)
_MOST_SHAPES = 3
"""Named shapes of a program: more are counted, as all parameters of a network may differ."""
_MOST_FLAGS = 20
"""Flags that only one side has: a reader looks at each."""
_MOST_IN_LINE = 3
"""Properties that a line names: as many as a sentence lists without becoming a table."""
_SHORT_VALUES = 40
"""Letters of both values of a property up to which a line has them: versions and names, not lists of shapes."""
_PARAMETER = "parameter"
_SHARDING = r" parameter\(.*, sharding=\{(.+)\}$"
_DONATED = r" = (.+) parameter\(.*, (?:input_output_alias|buffer_donor)="
"""The shape of a donated parameter, in its text."""


def section(pair: Pair) -> Iterator[Block]:
    """A section of a pair of different captures; nothing where they do not differ and ran no compiled programs."""
    if not pair.is_single and not pair.is_identical and (_differences(pair) or not pair.instructions().empty):
        yield Section(
            "What differs", partial(pair.cached, "what differs", lambda: list(_blocks(pair))), True, help=_HELP
        )


def in_a_line(pair: Pair) -> str:
    """What the section says in a line of Markdown: how the longest program differs, and which properties do; empty
    without a section."""
    blocks = [block for found in section(pair) for block in found.blocks]  # type: ignore[union-attr]
    texts = [block.text for block in blocks if isinstance(block, Links | Text)][:1]
    if found := _differences(pair):
        texts.append(f"{'Also' if texts else 'What differs'}: {some_of(map(_in_brief, found), _MOST_IN_LINE)}.")
    return " ".join(texts)


def _in_brief(one: Difference) -> str:
    """The label, with both values if they are short."""
    both = f" ({one.baseline} vs {one.candidate})"
    return as_markdown(f"{one.label}{both if len(both) <= _SHORT_VALUES else ''}")


def _differences(pair: Pair) -> list[Difference]:
    return pair.cached("differences", partial(differences, *pair.runs, pair.mismatches))


def _blocks(pair: Pair) -> Iterator[Block]:
    if not pair.are_unrelated:
        yield from _programs(pair)
    if found := _differences(pair):
        rows = [[one.label, one.baseline, one.candidate, one.meaning] for one in found]
        yield Facts(["Besides times", *pair.headings, "Why it matters"], rows, optional=(3,))
    else:
        same = known(*pair.runs)
        listed = f": same {', '.join(same)}" if same else ""
        yield Text(f"Nothing else that was recorded differs{listed}.", "quiet")


def _programs(pair: Pair) -> Iterator[Block]:
    """What differs in each of the longest programs, which are equal on both sides, and which ran on one side only.

    No change reached the compiler if all programs that ran on either side are equal, in steps or not.
    """
    equal, differing, unknown = [], [], []
    programs = list(_compiled(pair))
    for label, rows in programs:
        diff = diff_of(pair, label, rows) if all(program_names(rows)) else None
        if isinstance(diff, str):
            unknown.append(label)
        elif diff is not None and diff.summary:
            differing.append((label, diff))
        elif diff is not None:
            equal.append(label)
    alone = [_alone(pair, programs, side) for side in (0, 1)]
    uneven = [_differing_hosts(pair, side) for side in (0, 1)]
    for label, diff in differing[:MOST_PROGRAMS]:
        links = [Link("On the XLA page", "xla", {"program": label})]
        yield Links(links, f"{as_code(label)}: {diff.brief}.")
    if more := [label for label, _ in differing[MOST_PROGRAMS:]]:
        yield Text(f"{_named(more)} {'differs' if len(more) == 1 else 'differ'}, too.", more="xla")
    there = [(names, side) for names, side in zip(alone, pair.marked, strict=True) if names]
    if there:
        ran = zip(there, ("ran only", "only"), strict=False)
        yield Text(f"{', '.join(f'{_named(names)} {verb} in {side}' for (names, side), verb in ran)}.")
    for names, side in zip(uneven, pair.marked, strict=True):
        if names:
            yield Text(f"The hosts of {side} ran different programs under the name {_named(names)}.")
    if unknown and (equal or differing):
        yield Text(f"Not compared: {_named(unknown)}.", more="xla")
    if equal:
        ours, theirs = (set(side.values()) for side in _contents(pair))
        has_differences = differing or unknown or any(alone) or any(uneven) or ours != theirs
        same = f"{_named(equal)} {'has' if len(equal) == 1 else 'have'} the same instructions on both sides."
        yield Text(same if has_differences else f"{UNREACHED}: {same}")


def _compiled(pair: Pair) -> Iterator[tuple[str, pd.DataFrame]]:
    """The name and the instructions of each program that ran, the longest first."""
    every = pair.instructions()
    for key, label in executions.programs(every)[["program_key", "label"]].to_numpy().tolist():
        yield label.removeprefix(executions.ONLY_THERE), executions.of_program(every, key)


def program_changes_clause(pair: Pair) -> str:
    """`` 53 of 60 `dot` went from f32 to bf16 ``: what changed in the first program with such a change, in Markdown.

    Of the `MOST_PROGRAMS` longest, as a run may have hundreds and every surface has a headline. Empty where these are
    equal, or differ in shapes or what a compiler chooses anew only, and for unrelated runs.
    """
    if pair.is_single or pair.is_identical or pair.are_unrelated:
        return ""
    both = ((label, rows) for label, rows in islice(_compiled(pair), MOST_PROGRAMS) if all(program_names(rows)))
    diffs = (diff_of(pair, label, rows) for label, rows in both)
    return next((diff.kinds.of_program for diff in diffs if not isinstance(diff, str) and diff.kinds.of_program), "")


def _alone(pair: Pair, programs: Sequence[tuple[str, pd.DataFrame]], side: int) -> list[str]:
    """The programs that ran on that side only.

    A host without a counterpart does not count where the other side ran the same program on another host.
    """
    each = [(label, program_names(rows)) for label, rows in programs]
    paired = {name for _, names in each if all(names) for name in names[side]}
    contents = _contents(pair)
    others, found = set(contents[1 - side].values()), []
    for label, names in each:
        if names[1 - side] or names[side] <= paired:
            continue
        own = {digest for (_, name), digest in contents[side].items() if name in names[side]}
        if not own or not own <= others:
            found.append(label)
    return found


def _contents(pair: Pair) -> tuple[dict[tuple[str, str], str], ...]:
    """`contents_of`; none where the profiles are gone."""
    try:
        return contents_of(pair)
    except TfcompareError:
        return {}, {}


def _differing_hosts(pair: Pair, side: int) -> list[str]:
    """The programs of one side that differ between its hosts though they have one name and id."""
    found: dict[str, set[str]] = {}
    for (_, program), digest in _contents(pair)[side].items():
        found.setdefault(program, set()).add(digest)
    return [plain_program(program) for program, digests in found.items() if len(digests) > 1]


def _named(names: Sequence[str]) -> str:
    """Up to `MOST_PROGRAMS` programs, and how many more there are."""
    return some_of(map(as_code, names), MOST_PROGRAMS)


@dataclass(frozen=True)
class Difference:
    """A property in which two runs differ: its value in each, `none` where a run has none, and why it matters."""

    label: str
    baseline: str
    candidate: str
    meaning: str = ""


def differences(baseline: Run, candidate: Run, mismatches: Sequence[Mismatch]) -> list[Difference]:
    """All that is known to differ, the most telling first: what makes times incomparable, what the users say of their
    runs, the inputs of compiled programs, their division among devices and donation, software, the levels of the
    profiler's tracers, peaks, clocks, and other work on the machine.

    `mismatches` are those of `compare.comparability`.
    """
    found = [
        Difference(one.label, one.baseline, one.candidate, one.meaning)
        for one in sorted(mismatches, key=lambda one: not one.is_hard)
        if one.baseline != one.candidate
    ]
    found += _metadata(baseline, candidate)
    found += _inputs(baseline, candidate)
    found += _divided_and_donated(baseline, candidate)
    found += _differing_texts(
        "Version of", "versions", baseline, candidate, "another compiler version can build another program"
    )
    found += _differing_texts("Level of", "profiler_options", baseline, candidate, "recording more slows the run")
    for label, text, why in _OTHERS:
        found += _differing(label, text(baseline), text(candidate), why)
    return found


def known(baseline: Run, candidate: Run) -> list[str]:
    """What both profiles tell of, for a sentence on what does not differ."""
    both = (baseline, candidate)
    found = ["device"] if all(run.info.device_name for run in both) else []
    ours, theirs = (_of_hosts(run, "versions") for run in both)
    if named := [name for name in ours if name in theirs]:
        found.append(f"versions of {', '.join(named)}")
    return [*found, "tracer levels"] if all(run.info.profiler_options for run in both) else found


def _differing(label: str, ours: str, theirs: str, meaning: str = "") -> list[Difference]:
    return [Difference(label, ours, theirs, meaning)] if ours and theirs and ours != theirs else []


def _metadata(baseline: Run, candidate: Run) -> Iterator[Difference]:
    """The texts beside the runs, such as their commit, and their tags."""
    ours, theirs = (dict(run.found.metadata.values) for run in (baseline, candidate))
    for key in sorted(ours.keys() | theirs.keys()):
        yield from _differing(key, *_without_equal_flags(ours.get(key, "none"), theirs.get(key, "none")))
    tags = [set(run.found.metadata.tags) for run in (baseline, candidate)]
    alone = [", ".join(sorted(own - other)) or "none" for own, other in (tags, tags[::-1])]
    yield from _differing("Tags", *alone)


def _without_equal_flags(ours: str, theirs: str) -> tuple[str, str]:
    """Of two lists of flags such as `--a=1 --b=2`, those that only one side has; other texts as they are."""
    flags, others = Counter(ours.split()), Counter(theirs.split())
    shared = flags & others
    if flags == others or not shared or not all(one.startswith("--") for one in (*flags, *others)):
        return ours, theirs
    first, second = (_listing(one - shared, shared.total(), _MOST_FLAGS) for one in (flags, others))
    return first, second


def _differing_texts(label: str, name: str, baseline: Run, candidate: Run, meaning: str) -> Iterator[Difference]:
    """Of the texts by name in `Origin`, those with another value; only what both sides have."""
    ours, theirs = (_of_hosts(run, name) for run in (baseline, candidate))
    for one in ours:
        yield from _differing(f"{label} {one}", ours[one], theirs.get(one, ""), meaning)


def _of_hosts(run: Run, name: str) -> dict[str, str]:
    """The texts by name, of several hosts the distinct ones."""
    found: dict[str, set[str]] = {}
    for host in run.hosts:
        for one, text in getattr(host.origin, name):
            found.setdefault(one, set()).add(text)
    return {one: ", ".join(sorted(texts)) for one, texts in found.items()}


def _inputs(baseline: Run, candidate: Run) -> Iterator[Difference]:
    """The parameters of programs that ran on both sides, those that took longest first."""
    ours, theirs = (_parameters(run) for run in (baseline, candidate))
    why = "the program works on other shapes or types"
    return _of_programs("Inputs", _by_time(baseline, candidate), ours, theirs, why)


def _divided_and_donated(baseline: Run, candidate: Run) -> Iterator[Difference]:
    """How the parameters of programs that ran on both sides are divided among devices, and which are donated."""
    ran = [set(map(plain_program, run.table("hlo_ops")["program"].unique())) for run in (baseline, candidate)]
    recorded = [{digest for _, digest in recorded_programs(run).values()} for run in (baseline, candidate)]
    if ran[0].isdisjoint(ran[1]) or recorded[0] == recorded[1] != set():
        return
    try:
        ours, theirs = (run.table("hlo_programs") for run in (baseline, candidate))
    except TfcompareError:  # programs are read late, and a file may have gone
        return
    for label, pattern, why in (
        ("Sharding", _SHARDING, "devices work on other parts, and exchange others"),
        ("Donated inputs", _DONATED, "an output that takes the memory of an input needs none of its own"),
    ):
        texts = [rows["expression"].str.extract(pattern, expand=False) for rows in (ours, theirs)]
        own, others = map(_of_parameters, (ours, theirs), texts)
        yield from _of_programs(label, _by_time(baseline, candidate), own, others, why)


def _of_programs(
    label: str, names: Sequence[str], ours: Mapping[str, Counter[str]], theirs: Mapping[str, Counter[str]], why: str
) -> Iterator[Difference]:
    """What differs in the first of these programs that both sides have."""
    differing = [name for name in names if name in ours and name in theirs and ours[name] != theirs[name]]
    for name in differing[:MOST_PROGRAMS]:
        shared = ours[name] & theirs[name]
        before, after = (_listing(side[name] - shared, shared.total()) for side in (ours, theirs))
        yield Difference(f"{label} of {name}", before, after, why)


def _parameters(run: Run) -> dict[str, Counter[str]]:
    """The shapes of the parameters of each program that ran."""
    rows = run.table("hlo_memory")
    rows = rows[(rows["kind"] == _PARAMETER) & (rows["shape"] != "")]
    ran = run.table("hlo_ops")[["host", "program"]].drop_duplicates()
    rows = rows.merge(ran, on=["host", "program"])
    return _of_parameters(rows, rows["shape"])


def _of_parameters(rows: pd.DataFrame, texts: pd.Series) -> dict[str, Counter[str]]:
    """The texts of the rows of each program by its plain name, as often as one of these programs has them; empty for a
    program without any."""
    found: dict[str, Counter[str]] = {}
    for (_, program), own in texts.groupby([rows["host"], rows["program"]], sort=False):
        found.setdefault(plain_program(str(program)), Counter())
        found[plain_program(str(program))] |= Counter(own.dropna().tolist())
    return found


def _by_time(*runs: Run) -> list[str]:
    """The plain names of the programs that ran, those that took longest in all runs together first."""
    rows = pd.concat([run.table("hlo_ops")[["program", "self_time_us"]] for run in runs])
    times = rows.groupby(rows["program"].map(plain_program))["self_time_us"].sum()
    return list(times.sort_index().sort_values(ascending=False, kind="stable").index)


def _listing(counts: Counter[str], shared: int, most: int = _MOST_SHAPES) -> str:
    """`2 × f32[64,32], bf16[8] and 3 others; 4 on both sides`: what only this side has, and how many both have."""
    shown = counts.most_common(most)
    text = ", ".join(one if count == 1 else f"{count:,} × {one}" for one, count in shown)
    if others := counts.total() - sum(count for _, count in shown):
        text += f" and {others:,} others"
    return "; ".join(filter(None, [text, f"{shared:,} on both sides" if shared else ""])) or "none"


def _bandwidth(run: Run) -> str:
    peaks = run.table("hlo_ops")["peak_bytes_per_s"].dropna()
    return format_value(peaks.max(), "bytes/s") if len(peaks) else ""


def _load(run: Run) -> str:
    """Whether other work ran; empty if unknown."""
    return "" if run.machine_load is None else "busy" if run.is_under_load else "not busy"


_OTHERS: tuple[tuple[str, Callable[[Run], str], str], ...] = (
    ("Command buffers", lambda run: run.info.command_buffers, "they launch many kernels at once instead of one by one"),
    ("Peak memory bandwidth", _bandwidth, "it limits memory-bound ops"),
    (
        "Highest clock",
        lambda run: f"{run.info.clock_mhz:,.0f} MHz" if run.info.clock_mhz else "",
        "it limits compute-bound ops",
    ),
    ("Other work on the machine", _load, "a busy machine makes all times longer and less even"),
)
