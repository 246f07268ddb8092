"""The sample runs: small, free of what their recorder's machine was called, and still what their README says."""

from __future__ import annotations

import gzip
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.profiles import WORKER_RUNS
from tests.protobufs import messages
from tfcompare import compare, load
from tfcompare.compare.pairs import pair_with

SAMPLES = Path(__file__).parents[1] / "sample_logs"
LOGDIRS = ["filters_512_128", "filters_16_8", "filters_16_8_again", "filters_16_8_better_input"]
XLA_LOGDIRS = [
    f"{framework}_filters_{filters}" for framework in ("jax", "tensorflow") for filters in ("128_32", "16_8")
]
GPU_LOGDIRS = [
    *("h100_512_128", "h100_16_8", "h100_16_8_command_buffers", "h100_store_activations", "h100_recompute_activations"),
    "h100_no_command_buffers",
]
NIGHTS = sorted(SAMPLES.glob("nightly/night_[012][0-9]/plugins/profile/*/localhost.xplane.pb.gz"))
GPU_PROFILES = sorted(SAMPLES.glob("*_gpu/h100_*/h100_*_run-[123]/plugins/profile/*/localhost.xplane.pb"))


def sample(logdir: str) -> Path:
    (path,) = SAMPLES.glob(f"autoencoder*/{logdir}/plugins/profile/*/*.xplane.pb")
    return path


def profile_id(path: Path) -> str:
    return "/".join(path.relative_to(SAMPLES).parts[:-4])


@cache
def space(logdir: str) -> Any:
    return messages("tsl.profiler.protobuf.xplane_pb2").XSpace.FromString(sample(logdir).read_bytes())


def test_nothing_but_profiles_and_what_made_them_lies_in_the_samples() -> None:
    recorded = ("autoencoder", "autoencoder_gpu", "autoencoder_xla", "transformer_gpu", "workers", "nightly")
    scripts = {SAMPLES / name / "record.py" for name in recorded}
    workers = [path for run in WORKER_RUNS.values() for path in run.glob("plugins/profile/*/worker[012].xplane.pb")]
    profiles = {
        *map(sample, LOGDIRS + XLA_LOGDIRS),
        *workers,
        *GPU_PROFILES,
    }
    expected = {
        SAMPLES / "README.md",
        *scripts,
        *profiles,
        *NIGHTS,
        *(path.parent / "tfcompare_load.json" for path in NIGHTS),
    }
    gpu = 3 * (len(GPU_LOGDIRS) - 1) + 1  # one capture without command buffers tells the truth about the others
    assert len(NIGHTS) == 20
    assert len(profiles) == len(LOGDIRS) + len(XLA_LOGDIRS) + 3 * len(WORKER_RUNS) + gpu
    found = {path for path in SAMPLES.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert found == expected


@pytest.mark.parametrize("profile", [*map(sample, LOGDIRS + XLA_LOGDIRS), *GPU_PROFILES], ids=profile_id)
def test_sample_is_small_and_holds_no_path_of_the_recording_machine(profile: Path) -> None:
    assert profile.stat().st_size < 3_000_000
    found = profile.read_bytes()
    assert not [trace for trace in (b"/home/", b"/root/", b"/tmp/", b"/work", b"/Users/", b".venv") if trace in found]


@pytest.mark.parametrize("profile", NIGHTS, ids=profile_id)
def test_a_night_is_small_and_holds_no_path_of_the_recording_machine(profile: Path) -> None:
    assert profile.stat().st_size < 100_000
    found = gzip.decompress(profile.read_bytes())
    assert not [trace for trace in (b"/home/", b"/root/", b"/tmp/", b"/work", b"/Users/", b".venv") if trace in found]


def test_the_nights_are_a_series_with_one_change_and_its_layers_explain_it(tfcompare) -> None:
    status, out, _ = tfcompare("series", str(SAMPLES / "nightly"))
    assert status == 0
    assert re.search(r"^Step time rose by \d.* at night_13 ", out, re.MULTILINE)
    assert re.search(r"explained by \S*inserted\S*/dot_general ", out)


@pytest.mark.parametrize("logdir", LOGDIRS)
def test_sample_does_not_name_the_recording_machine(logdir: str) -> None:
    assert list(space(logdir).hostnames) == ["localhost"]
    assert sample(logdir).name == "localhost.xplane.pb"


@pytest.mark.parametrize("logdir", LOGDIRS + GPU_LOGDIRS)
def test_readme_tells_of_every_sample(logdir: str) -> None:
    assert f"`{logdir}`" in (SAMPLES / "README.md").read_text(encoding="utf-8")


def test_three_captures_on_a_gpu_make_the_change_of_filters_plain() -> None:
    """The device has little left to do at 16/8; what the host does for each step stays."""
    baseline, candidate = (
        [load(SAMPLES / "autoencoder_gpu" / name / f"{name}_run-{number}") for number in (1, 2, 3)]
        for name in ("h100_512_128", "h100_16_8")
    )
    repeats = {runs[0].id: runs[1:] for runs in (baseline, candidate)}
    comparison = compare(baseline[0], candidate[0], repeats=repeats)
    verdict = comparison.verdict[candidate[0].id]
    assert verdict.is_claim
    assert 0.2 < verdict.low < verdict.ratio < verdict.high < 0.3
    parts = {
        part: [run.table("steps").query("included")[part].mean() for run in (*baseline, *candidate)]
        for part in ("device_compute_us", "host_compute_us")
    }
    assert min(parts["device_compute_us"][:3]) > 35 * max(parts["device_compute_us"][3:])
    assert max(parts["host_compute_us"][:3]) < 1.5 * min(parts["host_compute_us"][3:])


def test_activations_that_are_recomputed_take_training_longer_and_less_memory() -> None:
    """Evaluation has no gradients for which it could recompute any."""
    baseline, candidate = (
        [load(SAMPLES / "transformer_gpu" / name / f"{name}_run-{number}") for number in (1, 2, 3)]
        for name in ("h100_store_activations", "h100_recompute_activations")
    )
    comparison = compare(baseline[0], candidate[0], repeats={runs[0].id: runs[1:] for runs in (baseline, candidate)})
    kind = pair_with(comparison).main_kind
    assert kind is not None
    assert kind.name == "train_step"
    verdict = pair_with(comparison).headline_verdict
    assert verdict.is_claim
    assert 1.1 < verdict.low < verdict.high < 1.5
    busy = [run.table("steps").query("included")["device_compute_us"].mean() for run in (*baseline, *candidate)]
    assert min(busy[3:]) > 1.15 * max(busy[:3])
    peaks = [run.table("memory_summary")["peak_bytes"].max() for run in (*baseline, *candidate)]
    assert max(peaks[3:]) < 0.65 * min(peaks[:3])


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_the_samples_of_xla_hold_their_programs(framework: str) -> None:
    """Fewer filters make the step shorter, and its time is matched instruction by instruction."""
    from tests.profiles import compared_runs

    comparison = compared_runs(f"{framework}_filters_128_32", f"{framework}_filters_16_8")
    assert comparison.verdict[comparison.candidates[0].id].ratio < 0.5
    ops = comparison.table("hlo_ops")
    assert {"convolution", "loop fusion"} <= set(ops["category"])
    matched = ops.loc[ops["status"] == "matched", "self_time_us_per_step_baseline"].sum()
    assert matched > 0.85 * ops["self_time_us_per_step_baseline"].sum()


@pytest.mark.parametrize("name", WORKER_RUNS)
def test_workers_are_named_and_no_path_was_recorded(name: str) -> None:
    files = sorted(WORKER_RUNS[name].glob("plugins/profile/*/*.xplane.pb"))
    assert [file.name for file in files] == [f"worker{number}.xplane.pb" for number in range(3)]
    for file in files:
        assert file.stat().st_size < 100_000
        assert not any(text in file.read_bytes() for text in (b"/tmp", b"/home", b"/root", b"localhost"))
    steps = load(WORKER_RUNS[name]).table("steps").query("included").groupby("host").size()
    assert steps.min() >= 19
