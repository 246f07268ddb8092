"""Damaged profiles by the thousand: only a `TfcompareError` may come out of reading one.

    python -m tests.xspace.fuzz --first 0 --count 20000        # in a child process that may crash
    python -m tests.xspace.fuzz --seed 4711 --keep bad.pb      # one again, in this process

An input follows from its seed alone: a small profile, taken apart field by field, edited (fields dropped, doubled,
moved, taken from another profile, numbers and names replaced by awkward ones) and put together again, then perhaps
damaged byte by byte. `NUMBA_DISABLE_JIT=1` runs the loops as plain Python, where a bad index shows.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from tests.profiles import CORPUS, CORPUS_RUNS, SAMPLE_RUNS
from tests.xspace import fuzz_inputs
from tests.xspace_builder import chunk, varint
from tfcompare import schema
from tfcompare.errors import TfcompareError
from tfcompare.logdir import FoundRun, HostFile, check_file
from tfcompare.run import load

SECONDS_ALLOWED = 10
BYTES_ALLOWED, BYTES_ALLOWED_PER_BYTE = 64 << 20, 200

# Fields of an XSpace that hold messages, by message.
MESSAGES = {
    "space": {1: "plane"},
    "plane": {3: "line", 4: "entry", 5: "entry", 6: "stat"},
    "line": {4: "event"},
    "event": {4: "stat"},
    "entry": {2: "metadata"},
    "metadata": {5: "stat"},
    "stat": {},
}


@dataclass
class Node:
    """A field: `content` is a number, bytes (of wires 1, 2, 5), or the fields of a message of that `kind`."""

    number: int
    wire: int
    content: int | bytes | list[Node]
    kind: str = ""

    def copy(self) -> Node:
        content = [n.copy() for n in self.content] if isinstance(self.content, list) else self.content
        return Node(self.number, self.wire, content, self.kind)

    def encode(self) -> bytes:
        head = varint(self.number << 3 | self.wire)
        if isinstance(self.content, int):
            return head + varint(self.content)
        content = self.content if isinstance(self.content, bytes) else encode(self.content)
        return head + (varint(len(content)) if self.wire == 2 else b"") + content


def encode(nodes: list[Node]) -> bytes:
    return b"".join(node.encode() for node in nodes)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """(number, wire, content) of each field of a well-formed message."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = read_varint(data, at)
            yield tag >> 3, wire, value
            continue
        length, at = read_varint(data, at) if wire == 2 else ({1: 8, 5: 4}[wire], at)
        yield tag >> 3, wire, data[at : at + length]
        at += length


def take_apart(data: bytes, kind: str = "space") -> list[Node]:
    out = []
    for number, wire, content in fields(data):
        inner = MESSAGES[kind].get(number, "") if wire == 2 else ""
        out.append(Node(number, wire, take_apart(content, inner) if inner else content, inner))
    return out


# Inputs


def cut_down(data: bytes, events_per_line: int, lines_per_plane: int) -> bytes:
    """The beginning of each line of a real profile, and the names that are in use there."""
    return b"".join(
        chunk(1, _cut_plane(content, events_per_line, lines_per_plane)) if number == 1 else chunk(number, content)
        for number, _, content in fields(data)
    )


def _cut_plane(plane: bytes, events_per_line: int, lines_per_plane: int) -> bytes:
    nodes = [Node(*f) for f in fields(plane)]
    lines = [n for n in nodes if n.number == 3][:lines_per_plane]
    for line in lines:
        kept = [Node(*f) for f in fields(line.content)]
        events = [n for n in kept if n.number == 4][:events_per_line]
        line.content = encode([n for n in kept if n.number != 4] + events)
    used: dict[int, set[int]] = {4: set(), 5: set()}
    for line in lines:
        for event in take_apart(line.content, "line"):
            _note_ids(event, used)
    entries = [n for n in nodes if n.number in used and next(fields(n.content))[2] in used[n.number]]
    for entry in entries:
        for metadata in take_apart(entry.content, "entry"):
            _note_ids(metadata, used)
    entries = [n for n in nodes if n.number in used and next(fields(n.content))[2] in used[n.number]]
    return encode([n for n in nodes if n.number < 3] + lines + [e for e in entries if len(e.content) < 2000])


def _note_ids(node: Node, used: dict[int, set[int]]) -> None:
    if not isinstance(node.content, list):
        return
    for inner in node.content:
        if node.kind == "event" and inner.number == 1:
            used[4].add(inner.content)
        elif node.kind == "stat" and inner.number in (1, 7):
            used[5].add(inner.content)
        else:
            _note_ids(inner, used)


@cache
def bases(with_corpus: bool) -> tuple[bytes, ...]:
    """The small profiles that are edited: built ones, and the beginnings of real ones."""
    real = [next(SAMPLE_RUNS["filters_16_8"].rglob("*.xplane.pb"))]
    if with_corpus:
        real += [next((CORPUS / run).glob("*.xplane.pb")) for run in CORPUS_RUNS.values()]
    cut = [cut_down(path.read_bytes(), 12, 6) for path in real]
    return (*fuzz_inputs.built(), *cut)


def damaged(seed: int, with_corpus: bool = False) -> bytes:
    """The input of that seed."""
    rng = random.Random(seed)
    every = bases(with_corpus)
    data = rng.choice(every)
    if rng.random() < 0.85:
        tree = take_apart(data)
        donor = take_apart(rng.choice(every))
        for _ in range(rng.choice((1, 1, 2, 3, 5, 8, 20))):
            _edit(tree, donor, rng)
        data = encode(tree)
    if rng.random() < 0.35:
        data = _damage(bytearray(data), rng)
    return data[: 4 << 20]


def _messages(nodes: list[Node], kind: str = "space") -> Iterator[tuple[str, list[Node]]]:
    yield kind, nodes
    for node in nodes:
        if isinstance(node.content, list):
            yield from _messages(node.content, node.kind)


def _edit(tree: list[Node], donor: list[Node], rng: random.Random) -> None:
    """One change of structure or content."""
    found = [(kind, nodes) for kind, nodes in _messages(tree) if nodes]
    if not found:
        return
    kinds = sorted({kind for kind, _ in found})
    kind = rng.choice(kinds)
    nodes = rng.choice([n for k, n in found if k == kind])
    at = rng.randrange(len(nodes))
    node = nodes[at]
    what = rng.randrange(11)
    if what == 0:
        del nodes[at]
    elif what == 1:
        nodes.insert(rng.randrange(len(nodes) + 1), node.copy())
    elif what == 2:
        rng.shuffle(nodes)
    elif what == 3:
        others = [n for k, n in _messages(donor) if k == kind and n]
        if others:
            nodes.insert(at, rng.choice(rng.choice(others)).copy())
    elif what == 4 and rng.random() < 0.3:
        nodes[at:at] = [node.copy() for _ in range(rng.choice((10, 100, 2000) if _size(node) < 50 else (10,)))]
    elif what == 5:
        node.number = rng.choice((rng.randrange(1, 12), rng.randrange(1, 1 << 29)))
    elif what == 6:
        forms = ((0, 5), (1, b"12345678"), (2, b"abc"), (5, b"1234"), (3, b""), (4, b""), (7, b""))
        (node.wire, node.content), node.kind = rng.choice(forms), ""
    else:
        _replace_value(rng.choice([n for _, ns in found for n in ns if not isinstance(n.content, list)] or [node]), rng)


def _size(node: Node) -> int:
    return len(node.encode())


def _replace_value(node: Node, rng: random.Random) -> None:
    if isinstance(node.content, int):
        node.content = rng.choice((rng.choice(fuzz_inputs.NUMBERS), rng.randrange(40), node.content + 1))
    elif isinstance(node.content, bytes) and node.wire == 2:
        node.content = rng.choice((rng.choice(fuzz_inputs.TEXTS), rng.choice(fuzz_inputs.TEXTS), node.content * 2))
        if rng.random() < 0.002:
            node.content = node.content * (1 + (1 << 20) // (1 + len(node.content)))
    elif isinstance(node.content, bytes):
        node.content = rng.randbytes(len(node.content))


def _damage(data: bytearray, rng: random.Random) -> bytes:
    """Some changes to single bytes and stretches, without regard to structure."""
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        if not data:
            break
        at = rng.randrange(len(data))
        length = min(rng.choice((1, 2, 8, 64, 512)), len(data) - at)
        what = rng.randrange(7)
        if what == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif what == 1:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif what == 2:
            del data[at : at + length]
        elif what == 3:
            data[at:at] = data[at : at + length]
        elif what == 4:
            data[at:at] = b"\xff" * rng.randrange(1, 12)
        elif what == 5:
            data[at:at] = rng.randbytes(length)
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


# Runs


@dataclass(frozen=True)
class Outcome:
    """What reading one input came to: `result` is `read`, the kind of the `TfcompareError`, or what went wrong."""

    seed: int
    size: int
    result: str
    is_fine: bool
    detail: str
    seconds: float
    peak_bytes: int


def attempt(seed: int, data: bytes, path: Path, watch_memory: bool = True) -> Outcome:
    """Read that input through all tables."""
    path.write_bytes(data)
    before = _start_watch() if watch_memory else 0
    began = time.perf_counter()
    fine, detail = True, ""
    try:
        check_file(path)
        run = load(_found(path, len(data)))
        for name in schema.TABLES:
            _check(name, run.table(name))
        result = "read"
    except TfcompareError as error:
        result, detail = type(error).__name__, str(error)
        fine = bool(detail) and "\n" not in detail
    except Exception:
        result, fine, detail = "exception", False, traceback.format_exc()
    seconds = time.perf_counter() - began
    peak = _peak_bytes() - before if watch_memory else 0
    if fine and seconds > SECONDS_ALLOWED:
        result, fine = "slow", False
    if fine and peak > BYTES_ALLOWED + BYTES_ALLOWED_PER_BYTE * len(data):
        result, fine = "memory", False
    return Outcome(seed, len(data), result, fine, detail, seconds, peak)


def _found(path: Path, size: int) -> FoundRun:
    """The file as a run, whatever a first look at it would say."""
    file = HostFile("vm", path, size, 0)
    return FoundRun("run", "run", path, (file,), (), datetime.fromtimestamp(0, UTC), "file time")


def _check(name: str, frame: object) -> None:
    """What holds of any table, however odd the profile."""
    import pandas as pd

    assert isinstance(frame, pd.DataFrame)
    numbers = frame.select_dtypes("number")
    if name in ("steps", "op_stats", "op_steps"):
        told = frame.drop(columns=list(schema.STEP_PRECISIONS), errors="ignore")
        assert not told.isna().any().any(), "an absent value"
    if "occurrences" in numbers:
        assert (numbers["occurrences"] >= 0).all(), "negative occurrences"
    for column in ("duration_us", "total_time_us"):
        if column in numbers:
            assert (numbers[column] >= 0).all(), f"negative {column}"


def _start_watch() -> int:
    Path("/proc/self/clear_refs").write_text("5")
    return _peak_bytes()


def _peak_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def _child(first: int, count: int, with_corpus: bool, memory_limit: int, log: Path, every_seconds: float) -> None:
    """Tell each seed before it runs and, after, what came of it."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_limit, memory_limit))
    faulthandler.enable()
    warnings.simplefilter("error")
    if os.environ.get("NUMBA_DISABLE_JIT"):  # hashes overflow on purpose
        warnings.filterwarnings("ignore", "overflow encountered in scalar multiply", RuntimeWarning)
    with log.open("a", buffering=1) as out, tempfile.TemporaryDirectory(dir=_fast_folder()) as folder:
        path = Path(folder) / "vm.xplane.pb"
        for data in fuzz_inputs.built():  # compiles what has to be
            attempt(-1, data, path)
        for seed in range(first, first + count):
            out.write(f"{seed}\n")
            faulthandler.dump_traceback_later(every_seconds, exit=True)
            outcome = attempt(seed, damaged(seed, with_corpus), path)
            faulthandler.cancel_dump_traceback_later()
            out.write(json.dumps(vars(outcome)) + "\n")


def _fast_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _run(first: int, count: int, with_corpus: bool, memory_limit: int) -> int:
    """Run that many in child processes, a new one after each crash; tell what came of them."""
    outcomes: list[dict[str, object]] = []
    at, end = first, first + count
    with tempfile.TemporaryDirectory() as folder:
        while at < end:
            log = Path(folder) / f"{at}.log"
            call = [sys.executable, "-m", "tests.xspace.fuzz", "--child", str(log), "--first", str(at)]
            call += ["--count", str(end - at), "--memory-limit", str(memory_limit)]
            call += ["--corpus"] if with_corpus else []
            done = subprocess.run(call, stderr=subprocess.PIPE, text=True)
            lines = log.read_text().splitlines() if log.exists() else []
            outcomes += [json.loads(line) for line in lines if line.startswith("{")]
            if done.returncode == 0 or not lines:
                sys.stderr.write(done.stderr)
                break
            at = int(next(line for line in reversed(lines) if not line.startswith("{"))) + 1
            outcomes.append(
                {"seed": at - 1, "size": 0, "result": f"child ended with {done.returncode}", "is_fine": False,
                 "detail": done.stderr[-3000:], "seconds": 0.0, "peak_bytes": 0}
            )  # fmt: skip
    return _report(outcomes)


def _report(outcomes: list[dict[str, object]]) -> int:
    bad = [o for o in outcomes if not o["is_fine"]]
    say = sys.stdout.write
    say(f"{len(outcomes):,} inputs: {dict(Counter(str(o['result']) for o in outcomes))}\n")
    for key in ("seconds", "peak_bytes", "size"):
        top = sorted(outcomes, key=lambda o: -float(o[key]))[:3]
        say(f"most {key}: " + ", ".join(f"{o[key]:,} (seed {o['seed']}, {o['size']:,} bytes)" for o in top) + "\n")
    by_last_line = Counter(str(o["detail"]).strip().rpartition("\n")[2][:150] for o in bad)
    for line, times in by_last_line.most_common(20):
        example = next(o for o in bad if str(o["detail"]).strip().rpartition("\n")[2][:150] == line)
        say(f"--- {times} × {example['result']}, e.g. seed {example['seed']} ({example['size']:,} bytes)\n")
        say(str(example["detail"])[-1500:] + "\n")
    return 1 if bad else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, help="this one only, in this process")
    parser.add_argument("--keep", type=Path, help="with --seed: where to write the input")
    parser.add_argument("--corpus", action="store_true", help="edit the profiles of the corpus as well")
    parser.add_argument("--memory-limit", type=int, default=6 << 30, help="bytes of address space")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        _child(args.first, args.count, args.corpus, args.memory_limit, args.child, 3 * SECONDS_ALLOWED)
        return 0
    if args.seed is None:
        return _run(args.first, args.count, args.corpus, args.memory_limit)
    data = damaged(args.seed, args.corpus)
    if args.keep:
        args.keep.write_bytes(data)
    with tempfile.TemporaryDirectory() as folder:
        outcome = attempt(args.seed, data, Path(folder) / "vm.xplane.pb")
    sys.stdout.write(json.dumps(vars(outcome), indent=1).replace("\\n", "\n") + "\n")
    return 0 if outcome.is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
