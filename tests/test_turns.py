"""Who proceeds when several wait: clients in turn, and none alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tfcompare.child import FairSemaphore


def order(turns: FairSemaphore, callers: str) -> str:
    """The order in which the callers, each a letter that is its client, have their turns once the first one ends."""
    had: list[str] = []

    def have(client: str) -> None:
        with turns.turn(client):
            had.append(client)

    with ThreadPoolExecutor(len(callers)) as pool, turns.turn("first"):
        for number, client in enumerate(callers, 1):
            pool.submit(have, client)
            wait_until(lambda number=number: waiting(turns) == number)
    return "".join(had)


def waiting(turns: FairSemaphore) -> int:
    return sum(map(len, turns._waiting.values()))


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.parametrize(("callers", "expected"), [("aaa", "aaa"), ("aaabbc", "abcaba"), ("abab", "abab")])
def test_clients_take_turns(callers: str, expected: str) -> None:
    assert order(FairSemaphore(1), callers) == expected


def test_one_client_leaves_a_turn_to_others() -> None:
    turns, is_over = FairSemaphore(2, per_client=1), threading.Event()
    had: list[Hashable] = []

    def have() -> None:
        with turns.turn("a"):
            had.append("a")
            is_over.wait()

    with ThreadPoolExecutor(2) as pool:
        pool.submit(have)
        pool.submit(have)
        wait_until(lambda: had == ["a"] and waiting(turns) == 1)
        with turns.turn("b"):
            assert had == ["a"]
        is_over.set()
    assert had == ["a", "a"]


def test_who_gives_up_waiting_keeps_nobody_from_a_turn() -> None:
    turns = FairSemaphore(1)

    def give_up() -> None:
        raise InterruptedError

    with turns.turn("a"), pytest.raises(InterruptedError), turns.turn("b", give_up):
        pass
    assert not turns._waiting
    with turns.turn("c"):
        pass
