"""Rules for programs that wait for input: what keeps them waiting, and what of tf.data they do not use yet."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import pandas as pd

from tfcompare.advice.facts import longest
from tfcompare.advice.model import DATA_GUIDE, GPU_GUIDE, SHARE, WORTH_IT, Figure, Found, code, ratio
from tfcompare.compare.iterator_tree import display_name, transformation
from tfcompare.compare.tf_data_advice import GUIDE as BOTTLENECK_GUIDE
from tfcompare.compare.tf_data_advice import advice as bottleneck_advice
from tfcompare.compare.tf_data_advice import setting
from tfcompare.input_ops import GUIDE as CATEGORY_GUIDE
from tfcompare.input_ops import advice as category_advice
from tfcompare.part_times import RUNS_AHEAD, runs_ahead

if TYPE_CHECKING:
    from tfcompare.advice.facts import Facts

PART_OF_CALL = 0.1
"""Of the slowest call: what takes less of it is not what to work on first."""
DECODING_SHARE = 0.2
"""Of the time of the host's ops: from here on, moving the decoding away relieves the host's cores noticeably."""

_PYTHON = re.compile(r"(?:Eager)?PyFunc(?:Stateless)?")
_DECODING = re.compile(r"Decode(?:AndCrop)?(?:Jpeg|Png|Image|Bmp|Gif|Webp).*")
_READERS = ("TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "RecordIO", "ArrayRecord")
_SEQUENTIAL = {"Map": "map", "Interleave": "interleave", "FlatMap": "flat_map"}
_BYTES = {"uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "half": 2, "bfloat16": 2, "float": 4, "double": 8}
_NARROW, _WIDE = ("uint8", "int8", "uint16", "int16"), ("half", "bfloat16", "float", "double")

INPUT_TIME = Figure("Waiting for input per step", "µs", lambda f: f.wait.input_time_us.average)
INPUT_SHARE = Figure("Share of the step time", SHARE, lambda f: f.wait.share.average)
STEP_TIME = Figure("Average step", "µs", lambda f: f.wait.step_time_us.average)
LONGEST_CALL = Figure("Longest call to tf.data", "µs", lambda f: f.calls.slowest_us)
SLOW_CALLS = Figure("Share of slow calls to tf.data", SHARE, lambda f: f.calls.slow_share)
_MEAN_CALL = Figure("Mean call to tf.data", "µs", lambda f: math.nan if f.pipeline is None else f.pipeline.mean_us)


def input_bound(facts: Facts) -> Found | None:
    """The program waits for input: what the bottleneck is, and what to do about it."""
    if not facts.waits_for_input:
        return None
    how, link, more = _what_to_do(facts)
    if facts.has_parts:
        title = f"The steps wait for input {INPUT_SHARE.text(facts)} of their time"
        finding = f"A step waits {INPUT_TIME.text(facts)} of {STEP_TIME.text(facts)} for its input."
        figures: tuple[Figure, ...] = (INPUT_SHARE, INPUT_TIME, STEP_TIME)
    else:
        title = f"Of the calls for input {SLOW_CALLS.text(facts)} are slow"
        finding = f"The longest call to tf.data took {LONGEST_CALL.text(facts)}."
        figures = (SLOW_CALLS, LONGEST_CALL)
    return Found(title, f"{finding} {how}", (*figures, *more), link, facts.input_share)


def _what_to_do(facts: Facts) -> tuple[str, str, tuple[Figure, ...]]:
    """(what is slow and what to do, where to read on, what that rests on)."""
    bottleneck = facts.bottleneck
    if bottleneck is not None:
        figure = Figure("Self time of the bottleneck", "µs", _bottleneck_us, str(bottleneck["long_name"]))
        name = code(display_name(bottleneck["iterator"]))
        slow = f"Slowest in the pipeline is {name}: {figure.text(facts)} in one call."
        return f"{slow} {bottleneck_advice(bottleneck)}", BOTTLENECK_GUIDE, (figure,)
    times = facts.input_ops.groupby("category")["self_time_us"].sum()
    if not times.empty and times.max() > 0:
        category = str(times.idxmax())
        rows = facts.input_ops[facts.input_ops["category"] == category]
        op_name = str(longest(rows)["op_name"])
        label = f"{category[:1].upper()}{category[1:]}"
        figure = Figure(label, "µs", lambda f: _category_us(f, category), summed=True)
        slow = f"Most time of the input ops goes to {category}: {figure.text(facts)} {facts.each}."
        return f"{slow} {category_advice(category, op_name)}", CATEGORY_GUIDE, (figure,)
    if facts.is_jax:
        how = (
            "Load the next batch while this one computes: read on worker processes (`grain`, or `tf.data` ending in "
            "`prefetch(tf.data.AUTOTUNE)`) and hand it over early with `jax.device_put`."
        )
    else:
        how = (
            "The profile shows no op that prepares the input, so Python most likely does. Read it with `tf.data` and "
            "end the pipeline with `prefetch(tf.data.AUTOTUNE)`."
        )
    return how, DATA_GUIDE, ()


def prefetch(facts: Facts) -> Found | None:
    """What is slow in the pipeline only begins to work when the program asks for an element."""
    bottleneck = facts.bottleneck
    if not facts.waits_for_input or bottleneck is None or _works_ahead(bottleneck):
        return None
    text = (
        f"No element is made before the program asks for it, and then it waits {_MEAN_CALL.text(facts)} on average. "
        "End the pipeline with `dataset.prefetch(tf.data.AUTOTUNE)`: the next one is then made while the step computes."
    )
    saves = min(
        facts.input_share, max(1 - facts.input_share, 0.0)
    )  # the rest of the step is all there is to hide it in
    return Found(
        "The input is not made ahead of the step", text, (_MEAN_CALL, SLOW_CALLS), f"{DATA_GUIDE}#prefetching", saves
    )


def parallel(facts: Facts) -> Found | None:
    """Beside the bottleneck, something works on one element after the other and takes a good part of a call."""
    if not facts.waits_for_input or facts.pipeline is None:
        return None
    path = facts.pipeline.critical_path
    slow = path[
        ~path["is_bottleneck"]
        & ~path["iterator"].str.contains("Parallel")
        & path["iterator"].map(transformation).isin(_SEQUENTIAL)
        & (path["self_time_us"] >= PART_OF_CALL * facts.pipeline.latency_us)
    ]
    if slow.empty:
        return None
    row = longest(slow)
    name = str(row["long_name"])
    figure = Figure("Self time in the slowest call", "µs", lambda f: _iterator_us(f, name), name)
    call = _SEQUENTIAL[transformation(str(row["iterator"]))]
    to = "interleave" if call == "flat_map" else call
    text = (
        f"Beside the bottleneck, {code(call)} takes {figure.text(facts)} of the slowest call, one element after the "
        f"other. Make it `{to}(…, num_parallel_calls=tf.data.AUTOTUNE)`."
    )
    part = min(ratio(figure.of(facts), facts.pipeline.latency_us), 1.0)
    return Found(f"{code(call)} works on one element at a time", text, (figure,), DATA_GUIDE, facts.input_share * part)


def cache(facts: Facts) -> Found | None:
    """The pipeline goes through its data again and again, and keeps nothing of it."""
    if not facts.waits_for_input or facts.pipeline is None or facts.bottleneck is None:
        return None
    kinds = set(facts.pipeline.iterators["iterator"].map(transformation))
    if not kinds & {"Repeat", "ShuffleAndRepeat"} or "Cache" in kinds:
        return None
    text = (
        f"The pipeline repeats its data and makes every element anew, in {_MEAN_CALL.text(facts)} a call. Where the "
        "data fits in memory, put `dataset.cache()` before `repeat`, after what is the same in every epoch (reading, "
        "decoding, resizing) and before what is random; split a `map` that does both. Too large for memory: "
        "`cache(filename)` on a local disk."
    )
    return Found(
        "Each epoch makes its elements anew", text, (_MEAN_CALL, SLOW_CALLS), f"{DATA_GUIDE}#caching", facts.input_share
    )


def python_input(facts: Facts) -> Found | None:
    """Python makes the input."""
    if not facts.waits_for_input:
        return None
    generator = facts.bottleneck is not None and transformation(str(facts.bottleneck["iterator"])) == "Generator"
    time = Figure("Python functions", "µs", lambda f: _type_us(f, _PYTHON), summed=True)
    calls = Figure("Calls of Python functions", "", _python_calls, summed=True)
    if not time.of(facts) > (WORTH_IT * facts.step_us if facts.has_parts else 0.0):
        return None
    how = (
        "Write what `Dataset.from_generator` makes to TFRecord files once and read these"
        if generator
        else "Write the function in TensorFlow ops, so that `map` can run it in parallel, or do it once and store it"
    )
    text = (
        f"Python makes the input and takes {time.text(facts)} {facts.each} (calls: {calls.text(facts)}), one call at a "
        f"time under its lock, whatever `num_parallel_calls` says. {how}; else let one call make a whole batch."
    )
    what = "`from_generator`" if generator else "`py_function`"
    return Found(f"{what} makes the input", text, (time, calls), DATA_GUIDE, facts.input_share)


def shard(facts: Facts) -> Found | None:
    """Every worker reads all data and drops what belongs to the others."""
    if not facts.waits_for_input or facts.pipeline is None or facts.info.hosts < 2:
        return None
    rows = facts.pipeline.iterators
    is_reader = rows["iterator"].str.startswith(_READERS)
    below_shard = (
        rows["long_name"].map(lambda name: any(p.startswith("Shard") for p in _stages(name)[:-1])).astype(bool)
    )
    if not (is_reader & below_shard).any():
        return None
    hosts = Figure("Hosts", "", lambda f: float(f.info.hosts))
    time = Figure("Reading below `shard` in the slowest call", "µs", _sharded_reading_us)
    text = (
        f"Records are read before `shard` drops those of other workers: each of the {hosts.text(facts)} hosts reads "
        f"all files, {time.text(facts)} in the slowest call. Shard the names of files: `files.shard(num_workers, "
        "index)` before `interleave`, or `options.experimental_distribute.auto_shard_policy = "
        "tf.data.experimental.AutoShardPolicy.FILE`."
    )
    return Found("Every worker reads every file", text, (hosts, time), DATA_GUIDE, facts.input_share)


def late_casts(facts: Facts) -> Found | None:
    """Elements are widened to floats before other work is done on them."""
    if not facts.waits_for_input or math.isnan(_widened(facts)[1]):
        return None
    narrow = Figure("Element before the cast", "bytes", lambda f: _widened(f)[0])
    wide = Figure("Element after the cast", "bytes", lambda f: _widened(f)[1])
    text = (
        f"An element grows from {narrow.text(facts)} to {wide.text(facts)} by a cast to a float type, and later steps "
        "of the pipeline then move the larger one. Crop, flip, shuffle and batch the small type, and call "
        "`tf.cast(x, tf.float32)` after the augmentation, or on the device as the model's first layer."
    )
    return Found("Elements are cast before the work on them", text, (narrow, wide), DATA_GUIDE, facts.input_share)


def decode_on_gpu(facts: Facts) -> Found | None:
    """The host decodes in as many threads as it has cores, and the GPU still waits."""
    bottleneck = facts.bottleneck
    if not facts.waits_for_input or bottleneck is None or facts.info.device_type != "GPU":
        return None
    cores, parallelism = (
        Figure("Cores that tf.data counts", "", cores_of),
        Figure("Calls in parallel", "", _parallelism),
    )
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
    return Found("The host's cores limit the input", text, figures, f"{GPU_GUIDE}", facts.input_share)


RULES = (input_bound, prefetch, parallel, cache, python_input, shard, late_casts, decode_on_gpu)


def cores_of(facts: Facts) -> float:
    """How many cores tf.data counts on the host, from its settings; NaN where they are not told."""
    if facts.pipeline is None:
        return math.nan
    for name in ("cpu_budget", "threadpool_size"):
        told = [setting(row, name) for _, row in facts.pipeline.iterators.iterrows()]
        counts = [int(text) for text in told if text.isdecimal() and int(text) > 0]
        if counts:
            return float(max(counts))
    return math.nan


def _works_ahead(row: pd.Series) -> bool:
    return runs_ahead(str(row["long_name"])) or str(row["iterator"]).startswith(RUNS_AHEAD)


def _bottleneck_us(facts: Facts) -> float:
    return math.nan if facts.bottleneck is None else float(facts.bottleneck["self_time_us"])


def _iterator_us(facts: Facts, long_name: str) -> float:
    if facts.pipeline is None:
        return math.nan
    rows = facts.pipeline.iterators
    return float(rows.loc[rows["long_name"] == long_name, "self_time_us"].sum(min_count=1))


def _category_us(facts: Facts, category: str) -> float:
    rows = facts.input_ops[facts.input_ops["category"] == category]
    return facts.per_step(float(rows["self_time_us"].sum(min_count=1)))


def _type_us(facts: Facts, types: re.Pattern[str]) -> float:
    rows = facts.ops[facts.ops["op_type"].str.fullmatch(types.pattern)]
    return facts.per_step(float(rows["self_time_us"].sum()))


def _python_calls(facts: Facts) -> float:
    rows = facts.ops[facts.ops["op_type"].str.fullmatch(_PYTHON.pattern)]
    return facts.per_step(float(rows["occurrences"].sum()))


def _decoding_share(facts: Facts) -> float:
    rows = facts.ops[(facts.ops["host_or_device"] == "Host") & (facts.ops["op_type"] != "Dataset")]
    decoding = rows["op_type"].str.fullmatch(_DECODING.pattern).astype(bool)
    return ratio(float(rows.loc[decoding, "self_time_us"].sum()), float(rows["self_time_us"].sum()))


def _parallelism(facts: Facts) -> float:
    told = None if facts.bottleneck is None else facts.bottleneck["parallelism"]
    return math.nan if told is None or pd.isna(told) else float(told)


def _sharded_reading_us(facts: Facts) -> float:
    if facts.pipeline is None:
        return math.nan
    rows = facts.pipeline.iterators
    chosen = [
        name.rpartition("::")[2].startswith(_READERS) and any(p.startswith("Shard") for p in _stages(name)[:-1])
        for name in rows["long_name"]
    ]
    return float(rows.loc[chosen, "self_time_us"].sum(min_count=1))


def _stages(long_name: str) -> list[str]:
    return str(long_name).split("::")


def _widened(facts: Facts) -> tuple[float, float]:
    """Bytes of an element before and after the cast below which other work is done; NaN twice where there is none."""
    nothing = (math.nan, math.nan)
    if facts.pipeline is None:
        return nothing
    rows = facts.pipeline.iterators
    by_id = {str(row["iterator_id"]): row for _, row in rows.iterrows()}
    for _, below in rows.iterrows():
        above = by_id.get(str(below["parent_id"]))
        if above is None or not _is_worked_on(above, by_id):
            continue
        before, after = _component(below), _component(above)
        if before and after and before[0] in _NARROW and after[0] in _WIDE and before[1] == after[1]:
            return before[1] * float(_BYTES[before[0]]), after[1] * float(_BYTES[after[0]])
    return nothing


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
