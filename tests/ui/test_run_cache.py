"""The shared memory of loaded runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from concurrent.futures import wait
from dataclasses import dataclass, replace
from time import monotonic, sleep
from typing import cast

import pytest

from tests.ui.found_runs import found
from tfcompare.errors import NotFetched, TfcompareError
from tfcompare.run import Run
from tfcompare.sources.logdir import FoundRun
from tfcompare.sources.step_choice import OWN_STEPS, StepChoice
from tfcompare.ui.frame.run_cache import AT_ONCE, RETRY_AFTER_S, RunCache, outcome


@dataclass
class FakeRun:
    name: str
    memory_bytes: int


class Loader:
    """Makes runs of the given size and counts how often."""

    def __init__(self, memory_bytes: int = 10) -> None:
        self.memory_bytes = memory_bytes
        self.loaded: list[str] = []
        self.clients: list[Hashable] = []
        self.is_quick: Hashable = None
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, run: FoundRun, steps: StepChoice, client: Hashable) -> Run:
        if client is None or client != self.is_quick:
            self.gate.wait(10)
        self.loaded.append(run.id)
        self.clients.append(client)
        if run.id == "bad":
            raise TfcompareError("bad: cannot be read")
        if run.id == "away":
            raise NotFetched("away: cannot be reached")
        if run.id == "bug":
            raise ZeroDivisionError
        return cast(Run, FakeRun(run.id if steps.is_default else f"{run.id} by {steps.key}", self.memory_bytes))


def in_the_end(is_so: Callable[[], object]) -> bool:
    """Whether that comes to be true: who waits for a run may have it before the cache has taken note of it."""
    until = monotonic() + 60
    while not is_so():
        if monotonic() > until:
            return False
        sleep(0.01)
    return True


def kept_in_the_end(cache: RunCache, runs: str, expected: str) -> bool:
    """Whether of these runs the expected ones are kept, once the last one that was read is weighed."""
    return in_the_end(lambda: [run for run in runs if cache.peek(found(run)) is not None] == list(expected))


def test_a_run_with_other_steps_is_another() -> None:
    loader = Loader()
    cache = RunCache(100, loader)
    choices = [OWN_STEPS, StepChoice("x"), OWN_STEPS, StepChoice("y"), StepChoice("x"), StepChoice("x", 5, 25)]
    runs = [cache.request(found("a"), steps).result() for steps in choices]
    assert [run.name for run in runs] == ["a", "a by x", "a", "a by y", "a by x", "a by 5:25 x"]
    assert loader.loaded == ["a", "a", "a", "a"]
    assert outcome(cache.request_together([found("a")], StepChoice("x"))[found("a")]) is runs[1]


def test_a_run_is_read_once_however_many_ask() -> None:
    loader = Loader()
    loader.gate.clear()
    cache = RunCache(100, loader)
    requests = [cache.request(found("a")) for _ in range(5)]
    assert cache.peek(found("a")) is None
    loader.gate.set()
    assert {id(request.result(10)) for request in requests} == {id(cache.peek(found("a")))}
    assert loader.loaded == ["a"]


@pytest.mark.parametrize(
    ("room", "asked", "left"),
    [(100, "abacc", "ac"), (5, "a", "a"), (5, "abb", "b")],
    ids=["the least recently used go first", "one that is too large stays", "until the next"],
)
def test_what_is_left_of_runs_of_40_bytes(room: int, asked: str, left: str) -> None:
    loader = Loader(memory_bytes=40)
    cache = RunCache(room, loader)
    for run_id in asked:
        cache.request(found(run_id)).result(10)
    assert kept_in_the_end(cache, "abc", left)
    assert loader.loaded == list(dict.fromkeys(asked))


def test_runs_that_are_asked_for_together_stay_however_large_until_others_are() -> None:
    loader = Loader(memory_bytes=40)
    cache = RunCache(50, loader)
    large = [found("a"), found("b")]
    for _ in range(3):
        wait(cache.request_together(large).values())
    assert sorted(loader.loaded) == ["a", "b"]
    wait([cache.request(found("c"))])
    wait([cache.request(found("d"))])
    assert kept_in_the_end(cache, "abcd", "abd")
    wait(cache.request_together([found("d"), found("e")]).values())
    assert kept_in_the_end(cache, "abcde", "de")


def test_runs_are_measured_again_at_each_request_since_pages_derive_tables_from_them() -> None:
    cache = RunCache(100, Loader(memory_bytes=30))
    grown = cache.request(found("a")).result(10)
    for run_id in "bc":
        wait([cache.request(found(run_id))])
    assert kept_in_the_end(cache, "abc", "abc")
    grown.memory_bytes = 50  # type: ignore[misc]
    cache.request(found("c"))
    assert kept_in_the_end(cache, "abc", "bc")


def test_a_file_that_changed_is_read_again() -> None:
    loader = Loader()
    cache = RunCache(100, loader)
    run = found("a")
    changed = replace(run, files=(replace(run.files[0], modified_ns=2),))
    cache.request(run).result(10)
    cache.request(changed).result(10)
    assert loader.loaded == ["a", "a"]


def test_what_cannot_be_read_is_remembered_as_its_error() -> None:
    loader = Loader()
    cache = RunCache(100, loader)
    for _ in range(2):
        error = outcome(cache.request(found("bad")))
        assert isinstance(error, TfcompareError)
    assert loader.loaded == ["bad"]


def test_what_could_not_be_fetched_is_asked_for_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("tfcompare.ui.frame.run_cache.monotonic", lambda: now[0])
    loader = Loader()
    cache = RunCache(100, loader)
    for when in (0, RETRY_AFTER_S - 1):
        now[0] = when
        assert isinstance(outcome(cache.request(found("away"))), NotFetched)
        assert in_the_end(lambda: cache._retry_at)
    assert loader.loaded == ["away"]
    now[0] = RETRY_AFTER_S
    wait([cache.request(found("away"))])
    assert loader.loaded == ["away", "away"]


def test_a_bug_is_raised_and_not_remembered() -> None:
    cache = RunCache(100, Loader())
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            outcome(cache.request(found("bug")))
        assert in_the_end(lambda: not cache._futures)


def test_a_client_with_many_runs_does_not_keep_another_one_waiting() -> None:
    loader = Loader()
    loader.gate.clear()
    client = "greedy"
    cache = RunCache(100, loader, lambda: client)
    requests = [cache.request(found(f"{number}")) for number in range(AT_ONCE + 3)]
    client = "other"
    loader.is_quick = client
    assert cache.request(found("quick")).result(10)
    assert loader.clients == ["other"]
    loader.gate.set()
    wait(requests)
    assert loader.clients == ["other", *["greedy"] * (AT_ONCE + 3)]


def test_progress_names_a_run_that_is_being_read() -> None:
    load = Loader()
    load.gate.clear()
    cache = RunCache(1000, load)
    first, waiting = found("first"), found("waiting")
    assert cache.first_read([waiting, first]) is waiting, "none is read yet"
    request = cache.request(first)
    assert in_the_end(lambda: cache.first_read([waiting, first]) is first)
    load.gate.set()
    request.result()
    assert in_the_end(lambda: cache.first_read([waiting, first]) is waiting)
