"""Kernels that only compute more slowly are told from a program that changed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.profiles import compared_runs, loaded_run, run_path
from tests.views.flat import only_pair, words
from tests.xspace.plain import xplane_pb2
from tfcompare import compare, load
from tfcompare.compare.pairs import pair_with
from tfcompare.comparison import Comparison
from tfcompare.run import Run
from tfcompare.views import answer
from tfcompare.views.kernels.clock_change import ClockChange, clock_change

NAME = "filters_512_128_simulated"


def with_kernels_shortened(folder: Path, name: str, factor: float, *, moving_too: bool = False) -> Run:
    """The simulated run with the kernels of convolutions and matrix products (or all) by a factor shorter."""
    (file,) = run_path(NAME).rglob("*.xplane.pb*")
    data = file.read_bytes()
    space = xplane_pb2().XSpace.FromString(gzip.decompress(data) if file.suffix == ".gz" else data)
    for plane in space.planes:
        if plane.name.startswith("/device:GPU"):
            for line in plane.lines:
                for event in line.events:
                    is_product = "gemm" in plane.event_metadata[event.metadata_id].name
                    if line.name.startswith("Stream") and (is_product or moving_too):
                        event.duration_ps = int(event.duration_ps * factor)
    target = folder / name / "plugins" / "profile" / "2026_01_01_00_00_00" / "host.xplane.pb"
    target.parent.mkdir(parents=True)
    target.write_bytes(space.SerializeToString())
    return load(folder / name)


def of(baseline: Run, candidate: Run) -> ClockChange | None:
    return of_comparison(compare(baseline, candidate))


def of_comparison(comparison: Comparison) -> ClockChange | None:
    return clock_change(pair_with(comparison))


def test_a_slower_clock_is_told_by_what_computes_and_what_moves_memory(tmp_path: Path) -> None:
    fast, slow = with_kernels_shortened(tmp_path, "fast", 0.625), loaded_run(NAME)
    comparison = compare(fast, slow)
    found = of_comparison(comparison)
    assert found.compute == pytest.approx((1.6, 1.6), rel=0.01)
    assert found.memory == pytest.approx((1.0, 1.0), rel=0.01)
    back = of(slow, fast)
    assert back is not None and back.compute == pytest.approx((0.625, 0.625), rel=0.01)
    (text,) = [one for one in words(answer.first(only_pair(comparison))) if one.startswith("This looks like another")]
    assert "clock or power limit, not like the program: of " in text
    assert "those that compute take **1.60× to 1.60×** as long" in text


def test_what_else_changes_the_time_is_no_clock(tmp_path: Path) -> None:
    slow = loaded_run(NAME)
    assert of(with_kernels_shortened(tmp_path, "all", 0.625, moving_too=True), slow) is None, "memory is slower, too"
    assert of(with_kernels_shortened(tmp_path, "little", 0.97), slow) is None, "within what captures differ by"
    assert of_comparison(compared_runs(NAME, "filters_16_8_simulated")) is None, "it is another program"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("jax_conv_legacy", "jax_conv_08"),
        pytest.param("tf_gpu", "filters_512_128_simulated", marks=pytest.mark.thorough),
        ("filters_16_8", "filters_16_8_again"),
    ],
)
def test_no_pair_of_real_runs_differs_in_the_clock_alone(one: str, other: str) -> None:
    assert of_comparison(compared_runs(one, other)) is None


def test_the_clock_that_devices_tell_is_in_the_environment() -> None:
    assert loaded_run(NAME).info.clock_mhz == 1700
    assert loaded_run("filters_16_8").info.clock_mhz == 0
