"""The profiles that tests are held against: the samples, and the corpus where it is at hand."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache, lru_cache
from pathlib import Path

import pytest

from tests import tf_gpu_runs
from tfcompare.compare.pair import Per
from tfcompare.comparison import Comparison, compare
from tfcompare.run import Run, load

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_logs"
CORPUS = Path(os.environ.get("TFCOMPARE_CORPUS", ROOT.parent / "shared" / "corpus"))

CORPUS_RUNS = {
    "tf_cpu_base": "tf_cpu/base/plugins/profile/2026_11_20_10_17_24",
    "tf_cpu_zoo": "tf_cpu/zoo/plugins/profile/2026_11_20_10_17_16",
    "tf_cpu_sleepy": "tf_cpu/sleepy/plugins/profile/2026_11_20_10_17_20",
    "tf_gpu": "tf_gpu_multi_worker/plugins/profile/GPU-multi-worker",
    "jax_elementwise": "jax_mi300/plugins/profile/jax08_elementwise",
    "jax_conv_08": "jax_mi300/plugins/profile/jax_conv_minimal_08",
    "jax_conv_legacy": "jax_mi300/plugins/profile/jax_conv_minimal_legacy",
    "jax_tpu": "jax_tpu_v6e/plugins/profile/tpu_inference_2",
}

MORE_CORPUS_RUNS = {"jax_te": "jax_te_mi355/plugins/profile/te_fused_attn"}

SAMPLE_RUNS = {run.name: run for run in sorted((SAMPLES / "autoencoder").glob("filters_*"))}
TRANSFORMER_RUNS = {run.name: run / f"{run.name}_run-1" for run in sorted((SAMPLES / "transformer_gpu").glob("h100_*"))}
"""Steps that train and evaluate in turn, of data that stay on the GPU."""
AUTOENCODER_GPU_RUNS = {
    run.name: run / f"{run.name}_run-1" for run in sorted((SAMPLES / "autoencoder_gpu").glob("h100_*"))
}
GPU_RUNS = AUTOENCODER_GPU_RUNS | TRANSFORMER_RUNS
XLA_RUNS = {run.name: run for run in sorted((SAMPLES / "autoencoder_xla").glob("*_filters_*"))}
WORKER_RUNS = {f"workers_{name}": SAMPLES / "workers" / name for name in ("balanced", "slow_input")}

ALL_RUNS = [*CORPUS_RUNS, *SAMPLE_RUNS, *tf_gpu_runs.FILTERS, *GPU_RUNS, *XLA_RUNS, *WORKER_RUNS]


ALIKE = (
    *("filters_16_8_again", "filters_16_8_better_input", "gpu_filters_512_128", "h100_512_128", "h100_16_8"),
    *("h100_store_activations", "h100_no_command_buffers", "jax_filters_128_32", "tensorflow_filters_128_32"),
    *("workers_balanced", "tf_cpu_sleepy", "filters_512_128", "jax_elementwise"),
)
EACH_KIND = [name for name in ALL_RUNS if name not in ALIKE]
"""The 13 runs that differ in framework, device or way of recording: what a law over real profiles is tried on."""


def run_path(name: str) -> Path:
    """The run folder or logdir of that name; skips the test where the corpus is not at hand."""
    shipped = SAMPLE_RUNS | GPU_RUNS | XLA_RUNS | WORKER_RUNS
    if name in shipped:
        return shipped[name]
    if name in tf_gpu_runs.FILTERS:
        return _tf_gpu_runs()[name]
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus of real profiles at {CORPUS} (set TFCOMPARE_CORPUS)")
    return CORPUS / (CORPUS_RUNS | MORE_CORPUS_RUNS)[name]


@cache
def _tf_gpu_runs() -> dict[str, Path]:
    folder = Path(tempfile.mkdtemp(prefix="tfcompare-runs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return tf_gpu_runs.write(folder)


@cache
def loaded_run(name: str) -> Run:
    """The run of that name, read once for all tests: reading takes longer than most of what is asked of it."""
    return load(run_path(name))


@lru_cache(maxsize=16)
def compared_runs(baseline: str, candidate: str, per: Per = "step") -> Comparison:
    """Two runs held against each other once for the tests that follow one another."""
    return compare(loaded_run(baseline), loaded_run(candidate), per=per)
