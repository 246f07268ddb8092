"""Rules for input-bound programs: the cause of the waiting, and tf.data features that are not used yet."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfcompare.compare.tf_data.iterator_tree import display_name, transformation
from tfcompare.frames.tf_data.tf_data_functions import RUNS_AHEAD, runs_ahead
from tfcompare.text import capitalized, some_of
from tfcompare.units import share_of
from tfcompare.views.advice.facts import CORES, longest
from tfcompare.views.advice.input_advice import GUIDE as CATEGORY_GUIDE
from tfcompare.views.advice.input_advice import TF_DATA_GUIDE as BOTTLENECK_GUIDE
from tfcompare.views.advice.input_advice import input_category_advice as category_advice
from tfcompare.views.advice.input_advice import tf_data_advice as bottleneck_advice
from tfcompare.views.advice.model import DATA_GUIDE, GPU_GUIDE, SHARE, WORTH_IT, Figure, Found, code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tfcompare.views.advice.facts import Facts

LEAST_CACHED_US = 500.0
"""Elements that take less to make are not worth a cache: tf.data takes some 100 µs to hand over any element."""
DECODING_SHARE = 0.2
"""Of the time of the host's ops: from here on, moving the decoding away relieves the host's cores noticeably."""

MOST_NAMED = 2
"""Annotations in a sentence."""
JAX_INPUT = (
    "Load the next batch while this one computes: read on worker processes (`grain`, or `tf.data` ending in "
    "`prefetch(tf.data.AUTOTUNE)`) and hand it over early with `jax.device_put`."
)

_DECODING = re.compile(r"Decode(?:AndCrop)?(?:Jpeg|Png|Image|Bmp|Gif|Webp).*")
_READERS = ("TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "RecordIO", "ArrayRecord")
_PASSING_ON = ["Root", "Model", "Options", "Prefetch", "Batch", "Repeat", "Shuffle", "ShuffleAndRepeat", "Range"]
_SEQUENTIAL = {"Map": "map", "Interleave": "interleave", "FlatMap": "flat_map"}
_BYTES = {"uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "half": 2, "bfloat16": 2, "float": 4, "double": 8}
_NARROW, _WIDE = ("uint8", "int8", "uint16", "int16"), ("half", "bfloat16", "float", "double")

INPUT_TIME = Figure("Waiting for input per step", "µs", lambda f: f.wait.input_time_us.average)
INPUT_SHARE = Figure("Share of the step time", SHARE, lambda f: f.wait.share.average)
STEP_TIME = Figure("Average step", "µs", lambda f: f.wait.step_time_us.average)
OF_PROFILE = Figure("Calls to tf.data, of the profile", SHARE, lambda f: f.wait.of_profile)
WAITING = Figure("Share of the time that waits for input", SHARE, lambda f: f.input_share)
_MEAN_CALL = Figure("Mean call to tf.data", "µs", lambda f: math.nan if f.pipeline is None else f.pipeline.mean_us)


def input_bound(facts: Facts) -> Found | None:
    """The program waits for input: its bottleneck, and how to fix it."""
    if not facts.waits_for_input:
        return None
    how, link, more = _what_to_do(facts)
    if facts.has_parts:
        title = f"The steps wait for input {INPUT_SHARE.text(facts)} of their time"
        finding = f"A step waits {INPUT_TIME.text(facts)} of {STEP_TIME.text(facts)} for its input."
        figures: tuple[Figure, ...] = (INPUT_SHARE, INPUT_TIME, STEP_TIME)
    else:
        title = f"Calls for input take {OF_PROFILE.text(facts)} of the profile"
        finding = f"The program waits in calls to tf.data for {OF_PROFILE.text(facts)} of the profile."
        figures = (OF_PROFILE,)
    return Found(title, f"{finding} {how}", (*figures, *more), link, facts.input_share)


def _what_to_do(facts: Facts) -> tuple[str, str, tuple[Figure, ...]]:
    """(what is slow and what to do, where to read on, what that rests on)."""
    bottleneck = facts.bottleneck
    if bottleneck is not None:
        name = str(bottleneck["long_name"])
        waiting = Figure("Waiting for the bottleneck, per step", "µs", lambda f: f.iterator_us([name]), name)
        own = Figure("Self time of the bottleneck, per call", "µs", lambda f: _self_us(f, name), name)
        figure, per = (waiting, "per step") if facts.has_parts else (own, "per call")
        slow = f"Slowest in the pipeline is {code(display_name(bottleneck['iterator']))}: {figure.text(facts)} {per}."
        return f"{slow} {bottleneck_advice(bottleneck)}", BOTTLENECK_GUIDE, (figure,)
    times = facts.input_ops.groupby("category")["self_time_us"].sum()
    if not times.empty and times.max() > 0:
        category = str(times.idxmax())
        rows = facts.input_ops[facts.input_ops["category"] == category]
        op_name = str(longest(rows)["op_name"])
        figure = Figure(capitalized(category), "µs", lambda f: _category_us(f, category), summed=True)
        slow = f"Most time of the input ops goes to {category}: {figure.text(facts)} {facts.each}."
        return f"{slow} {category_advice(category, op_name)}", CATEGORY_GUIDE, (figure,)
    how = (
        "The profile shows no op that prepares the input, so Python most likely does. Read it with `tf.data` and "
        "end the pipeline with `prefetch(tf.data.AUTOTUNE)`."
    )
    return JAX_INPUT if facts.is_jax else how, DATA_GUIDE, ()


def _getting_us(facts: Facts) -> float:
    return math.nan if facts.host_steps is None else float(facts.host_steps.getting_input.sum())


GETTING = Figure("Getting input outside of ops, per step", "µs", _getting_us)
GETTING_SHARE = Figure("Share of the step time", SHARE, lambda f: share_of(_getting_us(f), f.step_us))


def getting_input(facts: Facts) -> Found | None:
    """The program itself gets the input within the steps, as the names of annotations or Python functions say."""
    if facts.host_steps is None or not GETTING_SHARE.of(facts) >= WORTH_IT:
        return None
    names = facts.host_steps.getting_input.index.tolist()
    where = some_of(map(code, names), MOST_NAMED)
    text = (
        f"A step spends {GETTING.text(facts)} of {STEP_TIME.text(facts)} in {where}, by the name to get "
        f"input, and no op or device works meanwhile. {how_to_get_input(facts.info.framework, names)}"
    )
    title = f"Input from {code(names[0])} takes {GETTING_SHARE.text(facts)} of the step"
    figures = (GETTING_SHARE, GETTING, STEP_TIME)
    return Found(title, text, figures, DATA_GUIDE, GETTING_SHARE.of(facts))


def how_to_get_input(framework: str, names: Sequence[str]) -> str:
    """What to do about input that the program gets itself, in annotations or functions of these names, in Markdown."""
    if any("dataloader" in name.lower() for name in names):
        return (
            "Let the `DataLoader` work ahead of the step: `num_workers`, `prefetch_factor`, `persistent_workers=True` "
            "and `pin_memory=True`; on XLA devices, wrap it in `torch_xla.distributed.parallel_loader.MpDeviceLoader`."
        )
    if any("grain" in name.lower() for name in names):
        return (
            "Let `grain` work ahead of the step: more workers (`mp_prefetch` or `worker_count`) with a larger buffer, "
            "and hand the batch over early with `jax.device_put`."
        )
    if framework == "JAX":
        return JAX_INPUT
    others = " or `tf.data` ending in `prefetch(tf.data.AUTOTUNE)`" if framework == "TensorFlow" else ""
    return f"Load the next batch while this one computes: on another thread or in worker processes{others}."


def prefetch(facts: Facts) -> Found | None:
    """What is slow in the pipeline only begins to work when the program asks for an element."""
    bottleneck = facts.bottleneck
    if not facts.waits_for_input or bottleneck is None:
        return None
    if runs_ahead(str(bottleneck["long_name"])) or str(bottleneck["iterator"]).startswith(RUNS_AHEAD):
        return None
    text = (
        "The pipeline starts on an element only when the program requests it, and the program then waits "
        f"{_MEAN_CALL.text(facts)} on average. End the pipeline with `dataset.prefetch(tf.data.AUTOTUNE)`: the next "
        "element is then prepared while the step computes."
    )
    saves = min(facts.input_share, max(1 - facts.input_share, 0.0))  # all that the rest of the step can hide
    return Found("The input is not prefetched", text, (_MEAN_CALL, WAITING), f"{DATA_GUIDE}#prefetching", saves)


def parallel(facts: Facts) -> Found | None:
    """Beside the bottleneck, steps wait for something else that works on one element after the other."""
    if not facts.waits_for_input or facts.pipeline is None or facts.bottleneck is None or not facts.has_parts:
        return None
    rows = facts.pipeline.iterators
    beside = rows[
        (rows["long_name"] != facts.bottleneck["long_name"])
        & ~rows["iterator"].str.contains("Parallel")
        & rows["iterator"].map(transformation).isin(_SEQUENTIAL)
    ]
    beside = beside.assign(waited_us=[facts.iterator_us([name]) for name in beside["long_name"]])
    slow = beside[beside["waited_us"] >= WORTH_IT * facts.step_us]
    if slow.empty:
        return None
    row = longest(slow, "waited_us")
    name = str(row["long_name"])
    figure = Figure("Waiting for it, per step", "µs", lambda f: f.iterator_us([name]), name)
    call = _SEQUENTIAL[transformation(str(row["iterator"]))]
    to = "interleave" if call == "flat_map" else call
    text = (
        f"Apart from the bottleneck, each step waits {figure.text(facts)} for {code(call)}, which works on one element "
        f"after the other. Make it `{to}(…, num_parallel_calls=tf.data.AUTOTUNE)`."
    )
    saves = share_of(figure.of(facts), facts.step_us)
    return Found(f"{code(call)} works on one element at a time", text, (figure,), DATA_GUIDE, saves)


def cache(facts: Facts) -> Found | None:
    """The pipeline goes through its data again and again, keeps nothing of it, and takes long to make an element."""
    if not facts.waits_for_input or facts.pipeline is None or facts.bottleneck is None:
        return None
    kinds = set(facts.pipeline.iterators["iterator"].map(transformation))
    if not kinds & {"Repeat", "ShuffleAndRepeat"} or "Cache" in kinds:
        return None
    saves = share_of(_making_us(facts), facts.step_us) if facts.has_parts else facts.input_share
    if not (_making_us(facts) >= LEAST_CACHED_US and saves >= WORTH_IT):
        return None
    text = (
        f"The pipeline repeats its data and recomputes every element; the program waits {MAKING.text(facts)} each "
        "time. Where the data fits in memory, put `dataset.cache()` before `repeat`, after what is the same in every "
        "epoch (reading, decoding, resizing) and before what is random; split a `map` that does both. Too large "
        "for memory: `cache(filename)` on a local disk."
    )
    return Found("Elements are recomputed in each epoch", text, (MAKING, WAITING), f"{DATA_GUIDE}#caching", saves)


def _making_us(facts: Facts) -> float:
    """What a step, without steps a call, waits for iterators that make elements, not only pass them on."""
    if facts.pipeline is None or not facts.has_parts:
        return math.nan if facts.pipeline is None else facts.pipeline.mean_us
    rows = facts.pipeline.iterators
    return facts.iterator_us(set(rows.loc[~rows["iterator"].map(transformation).isin(_PASSING_ON), "long_name"]))


MAKING = Figure("Waiting for elements to be made", "µs", _making_us)


def shard(facts: Facts) -> Found | None:
    """Every worker reads all data and drops what belongs to the others."""
    if not facts.waits_for_input or facts.info.hosts < 2 or _readers_below_shard(facts).empty:
        return None
    hosts = Figure("Hosts", "", lambda f: float(f.info.hosts))
    label = "Reading below `shard` in the slowest call"
    time = Figure(label, "µs", lambda f: float(_readers_below_shard(f)["self_time_us"].sum(min_count=1)))
    text = (
        f"Records are read before `shard` drops those of other workers: each of the {hosts.text(facts)} hosts reads "
        f"all files, {time.text(facts)} in the slowest call. Shard the names of files: `files.shard(num_workers, "
        "index)` before `interleave`, or `options.experimental_distribute.auto_shard_policy = "
        "tf.data.experimental.AutoShardPolicy.FILE`."
    )
    return Found("Every worker reads every file", text, (hosts, time), DATA_GUIDE, facts.input_share)


def late_shard(facts: Facts) -> Found | None:
    """Elements are made that `shard` then drops, and no reader below it is known on several hosts (`shard`)."""
    if not facts.waits_for_input or shard(facts) is not None or math.isnan(_drop(facts)):
        return None
    label = "Waiting for what is below `shard`, per step"
    time = Figure(label, "µs", lambda f: f.iterator_us(set(_makers_below_shard(f)["long_name"])))
    dropped = Figure("Elements that `shard` drops", SHARE, _drop)
    saves = share_of(time.of(facts), facts.step_us) * dropped.of(facts)
    if not saves >= WORTH_IT:
        return None
    text = (
        f"Each step waits {time.text(facts)} for elements made below `shard`, which drops {dropped.text(facts)} of "
        "them by its number of calls. Shard first: `files.shard(num_workers, index)` on the names of files, before "
        "they are read, parsed and mapped."
    )
    return Found(f"`shard` drops {dropped.text(facts)} of what was made", text, (dropped, time), DATA_GUIDE, saves)


def late_casts(facts: Facts) -> Found | None:
    """Elements are widened to floats before other work is done on them."""
    if not facts.waits_for_input or math.isnan(_widen(facts)[1]):
        return None
    narrow = Figure("Element before the cast", "bytes", lambda f: _widen(f)[0])
    wide = Figure("Element after the cast", "bytes", lambda f: _widen(f)[1])
    text = (
        f"An element grows from {narrow.text(facts)} to {wide.text(facts)} by a cast to a float type, and later steps "
        "of the pipeline then move the larger one. Crop, flip, shuffle and batch the small type, and call "
        "`tf.cast(x, tf.float32)` after the augmentation, or on the device as the model's first layer."
    )
    return Found("Elements are cast to float too early", text, (narrow, wide), DATA_GUIDE, facts.input_share)


def decode_on_gpu(facts: Facts) -> Found | None:
    """The host decodes in as many threads as it has cores, and the GPU still waits."""
    bottleneck = facts.bottleneck
    if not facts.waits_for_input or bottleneck is None or facts.info.device_type != "GPU":
        return None
    cores, parallelism = CORES, Figure("Calls in parallel", "", _parallelism)
    decoding = Figure("Decoding, of the host's op time", SHARE, _decoding_share)
    if not (parallelism.of(facts) >= cores.of(facts) and decoding.of(facts) >= DECODING_SHARE):
        return None
    text = (
        f"The slowest part of the input runs {parallelism.text(facts)} calls at a time on {cores.text(facts)} cores, "
        f"so more parallelism gains nothing, and {decoding.text(facts)} of the host's op time is decoding. Decode on "
        "the GPU with NVIDIA DALI (AMD: rocAL), use a machine with more cores for each GPU, or store the images "
        "decoded and small."
    )
    figures = (cores, parallelism, decoding)
    return Found("Host cores limit the input", text, figures, GPU_GUIDE, facts.input_share)


RULES = (input_bound, getting_input, prefetch, parallel, cache, shard, late_shard, late_casts, decode_on_gpu)


def _self_us(facts: Facts, long_name: str) -> float:
    row = facts.bottleneck
    return math.nan if row is None or row["long_name"] != long_name else float(row["self_time_us"])


def _category_us(facts: Facts, category: str) -> float:
    rows = facts.input_ops[facts.input_ops["category"] == category]
    return facts.per_step(float(rows["self_time_us"].sum(min_count=1)))


def _decoding_share(facts: Facts) -> float:
    rows = facts.ops[(facts.ops["host_or_device"] == "Host") & (facts.ops["op_type"] != "Dataset")]
    decoding = rows["op_type"].str.fullmatch(_DECODING.pattern).astype(bool)
    return share_of(float(rows.loc[decoding, "self_time_us"].sum()), float(rows["self_time_us"].sum()))


def _parallelism(facts: Facts) -> float:
    calls = None if facts.bottleneck is None else facts.bottleneck["parallelism"]
    return math.nan if calls is None or pd.isna(calls) else float(calls)


def _below_shard(facts: Facts) -> pd.DataFrame:
    """The iterators below a `shard`."""
    if facts.pipeline is None:
        return pd.DataFrame({"long_name": [], "iterator": [], "self_time_us": []})
    rows = facts.pipeline.iterators
    below = [any(above.startswith("Shard") for above in name.split("::")[:-1]) for name in rows["long_name"]]
    return rows[np.array(below, dtype=bool)]


def _readers_below_shard(facts: Facts) -> pd.DataFrame:
    rows = _below_shard(facts)
    return rows[np.array([name.startswith(_READERS) for name in rows["iterator"]], dtype=bool)]


def _makers_below_shard(facts: Facts) -> pd.DataFrame:
    """Those that make elements, not only pass them on."""
    rows = _below_shard(facts)
    return rows[~rows["iterator"].map(transformation).isin(_PASSING_ON)]


def _drop(facts: Facts) -> float:
    """The share of the elements that `shard` drops: 1 − its calls ÷ those of what it asks; NaN where it asks nothing of
    what makes elements."""
    if facts.pipeline is None or _makers_below_shard(facts).empty:
        return math.nan
    rows = facts.pipeline.iterators
    shards = rows[rows["iterator"].str.startswith("Shard")]
    asked = rows[rows["parent_id"].isin(shards["iterator_id"])]
    return 1 - share_of(float(shards["calls"].sum()), float(asked["calls"].sum()))


def _widen(facts: Facts) -> tuple[float, float]:
    """Bytes of an element before and after the cast below which other work is done; NaN twice where there is none."""
    rows = pd.DataFrame() if facts.pipeline is None else facts.pipeline.iterators
    by_id = {str(row["iterator_id"]): row for _, row in rows.iterrows()}
    for _, below in rows.iterrows():
        above = by_id.get(str(below["parent_id"]))
        if above is None or not _is_worked_on(above, by_id):
            continue
        before, after = _component(below), _component(above)
        if before and after and before[0] in _NARROW and after[0] in _WIDE and before[1] == after[1]:
            return before[1] * float(_BYTES[before[0]]), after[1] * float(_BYTES[after[0]])
    return math.nan, math.nan


def _is_worked_on(row: pd.Series, by_id: dict[str, pd.Series]) -> bool:
    """Whether something that works on elements, or keeps many of them, stands above."""
    seen: set[str] = set()
    above = by_id.get(str(row["parent_id"]))
    while above is not None and str(above["iterator_id"]) not in seen:
        if transformation(str(above["iterator"])) in ("Map", "Shuffle", "Cache"):
            return True
        seen.add(str(above["iterator_id"]))
        above = by_id.get(str(above["parent_id"]))
    return False


def _component(row: pd.Series) -> tuple[str, int] | None:
    """(type, number of values) of an element's first component, None where its size is not told."""
    types, shape = str(row["types"]).split(), re.match(r"\[((?:\d{1,9},?)+)\]", str(row["shapes"]))
    if not types or shape is None or types[0] not in _BYTES:
        return None
    return types[0], math.prod(int(n) for n in shape[1].split(",") if n)
