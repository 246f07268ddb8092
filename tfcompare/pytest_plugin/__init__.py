"""The pytest plugin: a fixture that profiles a block of a test and compares it with a stored baseline.

pytest imports this module in every session, so it imports nothing but pytest; the fixture imports the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tfcompare.pytest_plugin.profile_check import ProfileCheck

DEFAULT_BASELINES = ".tfcompare/baselines"
INI_BASELINES = "tfcompare_baselines"
PROPERTY = "tfcompare"
"""Name of the user properties of a test's report that the summary at the end of the session lists."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options and the ini setting."""
    group = parser.getgroup("tfcompare", "profiles compared with a baseline (fixture profile_check)")
    where = f"the ini setting {INI_BASELINES}, else {DEFAULT_BASELINES}, both relative to the rootdir"
    group.addoption("--profile-baselines", metavar="DIR", help=f"folder of the baselines (default: {where})")
    meaning = "replace the baseline of each test that runs, without comparing"
    group.addoption("--profile-update", action="store_true", help=meaning)
    meaning = "add a capture to the baseline of each test that runs, without comparing; with 3 or more, the variation "
    meaning += "between processes is measured instead of assumed"
    group.addoption("--profile-add", action="store_true", help=meaning)
    parser.addini(INI_BASELINES, "folder of the profiles that tests are compared with", default=DEFAULT_BASELINES)


def pytest_configure(config: pytest.Config) -> None:
    """Reject options that contradict each other."""
    if config.getoption("profile_update") and config.getoption("profile_add"):
        raise pytest.UsageError("--profile-update and --profile-add: give one of them")


@pytest.fixture
def profile_check(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ProfileCheck:
    """Profiles a block, compares it with the test's baseline, and fails the test if a condition is met or not judged.

    with profile_check(fail_if=["step_time>+10%"]) as profile:
        for i in range(30):
            with profile.step(i):
                train_step(batch)

    The conditions are those of `tfcompare check`. `pytest --profile-update` writes the baseline.
    """
    from tfcompare.pytest_plugin.baselines import Baseline
    from tfcompare.pytest_plugin.profile_check import ProfileCheck

    item, config = request.node, request.config
    test_id = f"{item.parent.nodeid}::{item.name}"  # the item's own id has a suffix with `xdist --dist loadgroup`
    given = config.getoption("profile_baselines")
    folder = config.invocation_params.dir / given if given else config.rootpath / config.getini(INI_BASELINES)
    return ProfileCheck(
        test_id=test_id,
        baseline=Baseline.of_test(folder, test_id),
        candidate=tmp_path_factory.mktemp("profile_check") / "candidate",
        updates=config.getoption("profile_update"),
        adds=config.getoption("profile_add"),
        show=lambda text: item.add_report_section("call", "tfcompare", text),
        summarise=lambda line: item.user_properties.append((PROPERTY, line)),
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List baselines that were written, and conditions that are unclear."""
    reports = terminalreporter.getreports("passed")
    lines = [str(value) for report in reports for name, value in report.user_properties if name == PROPERTY]
    if lines:
        terminalreporter.section("tfcompare")
        for line in lines:
            terminalreporter.line(line)
