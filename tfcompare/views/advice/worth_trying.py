"""Suggestions that no rule gives because a profile shows nothing for or against them.

They are from TensorFlow's guides on the profiler, on tf.data and on GPUs. Each has a condition on the run's facts,
without which it could not apply, and the rules that say the same with evidence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfcompare.schema import DEVICE, HOST
from tfcompare.schema.kernels import HOST_TO_DEVICE
from tfcompare.views.advice.model import DATA_GUIDE, GPU_GUIDE, GUIDE, MIXED_PRECISION_GUIDE, WORTH_IT, XLA_GUIDE

if TYPE_CHECKING:
    from tfcompare.views.advice.facts import Facts

MOST_SUGGESTIONS = 5
"""More are not read; those that fit fewer runs come first."""

_API = "https://www.tensorflow.org/api_docs/python/tf"
_GRAPH_GUIDE = "https://www.tensorflow.org/guide/graph_optimization"
_MODEL_GUIDE = "https://www.tensorflow.org/model_optimization/guide"
_CONVOLUTION = re.compile(r"Conv[23]D|conv_general_dilated")
_READING = re.compile(r"TFRecord|TextLine|FixedLengthRecord|CSV|Interleave|ReadFile", re.IGNORECASE)
_DECODING = re.compile(r"Decode(?:AndCrop)?(?:Jpeg|Png|Image|Bmp|Gif|Webp)")


@dataclass(frozen=True)
class Suggestion:
    """What may be worth trying: a title, one sentence in Markdown, and where the guide has more.

    `fits` says whether it can apply to a run; `rules` are the names of those that say the same with evidence.
    """

    name: str
    title: str
    text: str
    link: str
    fits: Callable[[Facts], bool]
    rules: tuple[str, ...] = ()


def worth_trying(facts: Facts, given: Collection[str]) -> tuple[Suggestion, ...]:
    """What may be worth trying in a run, at most `MOST_SUGGESTIONS`; `given` are the rules that gave advice on it.

    A run without any ops gets none.
    """
    if facts.ops.empty:
        return ()
    fitting = [one for one in SUGGESTIONS.values() if not set(one.rules) & set(given) and one.fits(facts)]
    return tuple(fitting[:MOST_SUGGESTIONS])


def _is_tensorflow(facts: Facts) -> bool:
    return facts.info.framework == "TensorFlow"


def _is_tensorflow_on_gpu(facts: Facts) -> bool:
    return _is_tensorflow(facts) and facts.has_device and facts.info.device_type == "GPU"


def _is_nvidia(facts: Facts) -> bool:
    return facts.has_device and facts.info.device_name.lower().startswith("nvidia")


def _reads_files(facts: Facts) -> bool:
    names = () if facts.pipeline is None else tuple(facts.pipeline.iterators["long_name"])
    return any(_READING.search(str(name)) for name in names)


def _waits_for_input(facts: Facts) -> bool:
    return facts.input_share >= WORTH_IT


def _is_unjudged_on_device(facts: Facts) -> bool:
    """Whether a device ran ops, and the profile has neither kernels nor XLA instructions, which rules could judge."""
    return facts.has_device and facts.kernels.empty and facts.hlo_ops.empty


def _has(facts: Facts, pattern: re.Pattern[str], side: str) -> bool:
    types = facts.ops.loc[facts.ops["host_or_device"] == side, "op_type"]
    return bool(types.str.contains(pattern).any())


def _exposes_launches(facts: Facts) -> bool:
    return _is_tensorflow_on_gpu(facts) and facts.part_share("kernel_launch_us") >= WORTH_IT


def _copies_to_device(facts: Facts) -> bool:
    return _is_tensorflow_on_gpu(facts) and bool((facts.copies["kind"] == HOST_TO_DEVICE).any())


SUGGESTIONS = {
    one.name: one
    for one in (
        Suggestion(
            "synthetic_data",
            "Train on synthetic data",
            "Repeat one batch (`dataset.take(1).cache().repeat()`), record that as well and compare both captures: the "
            "difference is what the input costs.",
            GPU_GUIDE,
            _waits_for_input,
        ),
        Suggestion(
            "shard_files",
            "Shard files early",
            "Give each worker its own files, by `files.shard(…)` before "
            "`interleave`, so that none reads others' records.",
            DATA_GUIDE,
            lambda f: f.info.hosts > 1 and _reads_files(f) and _is_tensorflow(f),
            ("shard", "late_shard"),
        ),
        Suggestion(
            "dali",
            "Decode on the GPU",
            "NVIDIA DALI (AMD: rocAL) decodes and augments images on the GPU, which relieves the host.",
            GPU_GUIDE,
            lambda f: f.info.device_type == "GPU" and _waits_for_input(f) and _has(f, _DECODING, HOST),
            ("decode_on_gpu",),
        ),
        Suggestion(
            "no_python_input",
            "Read without Python",
            "Python generators and `py_function` run one thread "
            "at a time: read with `tf.data` and TensorFlow ops instead of `from_generator`.",
            DATA_GUIDE,
            lambda f: _is_tensorflow(f) and _waits_for_input(f) and f.pipeline is None,
            ("python_input",),
        ),
        Suggestion(
            "tf_data_options",
            "Let tf.data optimise its graph",
            "`tf.data.Options` switches on "
            "static optimisations that are off by default, such as "
            "`options.experimental_optimization.map_parallelization` and `map_and_filter_fusion`.",
            f"{_API}/data/Options",
            lambda f: f.pipeline is not None and _waits_for_input(f) and _is_tensorflow(f),
        ),
        Suggestion(
            "gpu_private",
            "Launch from threads of their own",
            "`TF_GPU_THREAD_MODE=gpu_private` with "
            "`TF_GPU_THREAD_COUNT=2` keeps other work of the host from delaying launches.",
            GPU_GUIDE,
            _exposes_launches,
            ("launch_threads",),
        ),
        Suggestion(
            "mixed_precision",
            "Compute in 16 bits",
            "`mixed_float16` (TPU: `mixed_bfloat16`) "
            "halves the bytes that are moved; this profile has no kernels that would show the precision.",
            MIXED_PRECISION_GUIDE,
            lambda f: _is_tensorflow(f) and _is_unjudged_on_device(f),
            ("mixed_precision", "wide_products"),
        ),
        Suggestion(
            "channels_last",
            "Keep the channels last",
            "GPUs convolve fastest with "
            "`data_format='channels_last'`; this profile has no kernels that would show the layout.",
            GPU_GUIDE,
            lambda f: _is_tensorflow_on_gpu(f) and _is_unjudged_on_device(f) and _has(f, _CONVOLUTION, DEVICE),
            ("layout", "layout_changes"),
        ),
        Suggestion(
            "larger_batch",
            "Use a larger batch",
            "It gives the device more to do per step; this profile "
            "does not show how much of the device's memory is left.",
            GPU_GUIDE,
            lambda f: f.has_device and f.device_memory.empty,
            ("larger_batch", "launch_bound", "idle_device"),
        ),
        Suggestion(
            "fewer_callbacks",
            "Call less Python between steps",
            "Fewer callbacks, and metrics every few steps "
            "only, leave the device less to wait for; this profile has no steps that would show it.",
            GUIDE,
            lambda f: _is_tensorflow(f) and not f.has_parts,
            ("other_time", "between_steps", "eager"),
        ),
        Suggestion(
            "thread_pools",
            "Set the sizes of thread pools",
            "`tf.config.threading.set_inter_op_parallelism_threads(…)` and `set_intra_op_parallelism_threads(…)` help "
            "where the defaults, one thread per core, are too many; this profile does not tell the number of cores.",
            GPU_GUIDE,
            lambda f: _is_tensorflow(f) and math.isnan(f.cores) and not f.has_device,
            ("threads",),
        ),
        Suggestion(
            "nvidia_smi",
            "Log `nvidia-smi` beside the training",
            "`nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu,memory.used --format=csv -l 1` shows "
            "throttling, which no profile has.",
            GPU_GUIDE,
            _is_nvidia,
        ),
        Suggestion(
            "jit_compile",
            "Compile with XLA",
            "`tf.function(jit_compile=True)` (Keras: `model.compile(…, jit_compile=True)`) lets XLA fuse ops.",
            XLA_GUIDE,
            lambda f: _is_tensorflow(f) and f.hlo_ops.empty and f.compilations.empty and f.compute_share >= WORTH_IT,
            ("launch_bound", "layout"),
        ),
        Suggestion(
            "l2_fetch",
            "Fetch 128 bytes at a time into L2",
            "`cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 128)`, called once through `ctypes`, can raise the "
            "bandwidth of memory.",
            GPU_GUIDE,
            lambda f: _is_nvidia(f) and not f.kernels.empty,
        ),
        Suggestion(
            "force_gpu_compatible",
            "Pin the host's tensors",
            "`force_gpu_compatible=True` in `tf.compat.v1.GPUOptions` makes the host allocate memory that is copied to "
            "GPUs faster.",
            f"{_API}/compat/v1/GPUOptions",
            _copies_to_device,
            ("copies",),
        ),
        Suggestion(
            "memory_growth",
            "Let the memory of the GPU grow",
            "`tf.config.experimental.set_memory_growth(gpu, True)` takes memory as it is needed, so that other "
            "programs fit beside this one.",
            f"{_API}/config/experimental/set_memory_growth",
            _is_tensorflow_on_gpu,
        ),
        Suggestion(
            "graph_optimization",
            "Set graph optimisations",
            "`tf.config.optimizer.set_experimental_options` has optimisations of Grappler that are off by default.",
            _GRAPH_GUIDE,
            lambda f: _is_tensorflow(f) and f.hlo_ops.empty and f.compute_share >= WORTH_IT,
        ),
        Suggestion(
            "smaller_model",
            "Prune or quantise the model",
            "Fewer or narrower weights cost less to compute; check the accuracy afterwards.",
            _MODEL_GUIDE,
            lambda f: _is_tensorflow(f) and f.compute_share >= WORTH_IT,
        ),
        Suggestion(
            "oom_report",
            "Leave out the report on allocations",
            "`report_tensor_allocations_upon_oom=False` in `tf.compat.v1.RunOptions` saves its bookkeeping in programs "
            "that run sessions.",
            f"{_API}/compat/v1/RunOptions",
            _is_tensorflow_on_gpu,
        ),
    )
}
"""All suggestions by name, in the order in which they are shown."""
