"""More of anything than any real profile has is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.xspace_builder import chunk, event, integer, line, plane, space
from tfcompare.errors import NotAProfile
from tfcompare.frames import build
from tfcompare.xspace import parse, read
from tfcompare.xspace.limits import Limits

EMPTY = b""
CROWDED = {
    "planes": lambda: space(plane("/host:CPU"), chunk(1, EMPTY) * 10),
    "lines": lambda: of_host(chunk(3, EMPTY) * 11),
    "events": lambda: of_host(line("t", chunk(4, EMPTY) * 11)),
    "event_stats": lambda: of_host(line("t", chunk(4, chunk(4, EMPTY) * 11))),
    "event_metadata": lambda: of_host(chunk(4, EMPTY) * 11),
    "stat_metadata": lambda: of_host(chunk(5, EMPTY) * 11),
    "other_stats": lambda: of_host(chunk(6, EMPTY) * 5 + chunk(4, integer(1, 7) + chunk(2, chunk(5, EMPTY) * 6))),
    "texts": lambda: space(plane("/host:CPU"), chunk(2, EMPTY) * 5, chunk(3, EMPTY) * 5, chunk(4, EMPTY)),
}


def of_host(content: bytes) -> bytes:
    return space(plane("/host:CPU", content))


@pytest.mark.parametrize("limit", CROWDED)
def test_a_count_above_its_limit_is_refused(limit: str) -> None:
    data = CROWDED[limit]()
    parse(data, Limits(**{limit: 11}))
    with pytest.raises(NotAProfile, match=r"expected an XSpace of at most 10 .*, found one of 11;"):
        parse(data, Limits(**{limit: 10}))


def test_a_file_above_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    with path.open("wb") as file:
        file.truncate(3 << 30)  # takes no space on the disk
    with pytest.raises(NotAProfile, match=r"vm.xplane.pb: .* at most 2,147,483,648 bytes, found a file of 3,221,225,"):
        read(path)


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        (Limits(table_rows=5), "expected at most 5 rows of op_parts, found 9"),
        (Limits(table_bytes=1000), "expected a profile whose tables take at most 1,000 bytes, found"),
    ],
)
def test_tables_above_the_limits_are_refused(limits: Limits, text: str) -> None:
    profile = parse(space(plane("/host:CPU", line("t", *(event(f"o{i}:M{i}", 10 * i, 9) for i in range(9))))))
    build(profile, "vm", "")
    with pytest.raises(NotAProfile, match=text):
        build(profile, "vm", "", limits=limits)
