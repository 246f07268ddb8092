"""What tests cost, in processor time: a table by folder at the end, and a limit for each test of `make test`.

A test's own time is that of its call: fixtures are shared, and what they take is counted for the folder only. Child
processes count once they have ended. Only processor time is looked at, so a machine that is busy fails no test.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from pathlib import PurePosixPath

import pytest

NAMED_S, MOST_S = 10.0, 40.0
"""A test above the first is named, one above the second fails: the dearest take 17 s where both cores are busy, half of
that where they are not."""
_COST = "processor_s"


def _spent_s() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def _measured(item: pytest.Item) -> Generator[None, object, object]:
    before = _spent_s()
    try:
        return (yield)
    finally:
        item.user_properties.append((_COST, _spent_s() - before))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _measured(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    result = yield from _measured(item)
    spent = item.user_properties[-1][1]
    if spent > MOST_S and item.get_closest_marker("thorough") is None:
        pytest.fail(f"took {spent:.0f} s of processor time, and a test of `make test` may take {MOST_S:.0f} s")
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _measured(item))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The processor time of every folder, and the tests that are dear."""
    spent: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    dear: dict[str, float] = {}
    for report in (one for reports in terminalreporter.stats.values() for one in reports):
        if getattr(report, "when", None) != "teardown":
            continue
        phases = [seconds for name, seconds in report.user_properties if name == _COST]
        folder = "/".join(PurePosixPath(report.nodeid.partition("::")[0]).parts[:2])
        spent[folder] += sum(phases)
        tests[folder] += 1
        if len(phases) == 3 and phases[1] > NAMED_S:
            dear[report.nodeid] = phases[1]
    terminalreporter.section("processor time by folder")
    for folder, seconds in spent.most_common():
        terminalreporter.line(f"{seconds:8.1f} s {tests[folder]:6} tests  {folder}")
    terminalreporter.line(f"{sum(spent.values()):8.1f} s {sum(tests.values()):6} tests  in all")
    for test, seconds in sorted(dear.items(), key=lambda one: -one[1]):
        terminalreporter.line(f"above {NAMED_S:.0f} s: {seconds:.1f} s in {test}")
