"""What to try for a slow input pipeline: by the iterator that limits it, and by the category of its ops."""

from __future__ import annotations

import re

import pandas as pd

from tfcompare.compare.tf_data.iterator_tree import setting, transformation
from tfcompare.schema.input import ENQUEUING, IN_ADVANCE, ON_DEMAND, OTHER_INPUT, PREPROCESSING
from tfcompare.units import format_count

TF_DATA_GUIDE = "https://www.tensorflow.org/guide/data_performance_analysis"

_READERS = ("TFRecord", "TextLine", "FixedLengthRecord", "SSTable", "RecordIO", "ArrayRecord")
_PARALLEL = "`num_parallel_calls=tf.data.AUTOTUNE`"

_OTHERS = {
    "Root": "The time is in none of the transformations: handing over an element costs more than making it. Make "
    "elements larger, e.g. batch within tf.data and not after it.",
    "FlatMap": "`flat_map` works on one input after the other. Replace it by `interleave` with "
    f"{_PARALLEL}, so that several inputs are opened and read at a time.",
    "PaddedBatch": "Padding and copying the elements of a batch takes the time. Put elements of like length together "
    "(`bucket_by_sequence_length`), so that there is less to pad.",
    "Cache": "`cache` writes in the first epoch and reads in all later ones, so profile a later epoch. If it still is "
    "the bottleneck, cache in memory instead of a file, or cache at a place where elements are smaller.",
    "Generator": "A Python generator makes one element after the other, on one thread. Write the data to "
    "TFRecord files once and read these, or make elements of TensorFlow ops; else let the generator yield whole "
    "batches.",
    "ShuffleAndRepeat": "Filling the shuffle buffer takes the time, anew in each epoch. Make the buffer smaller and "
    "shuffle the names of files as well.",
    "Repeat": "`repeat` begins its input anew after each epoch: files are opened and buffers filled again. Put `cache` "
    "before it where the data fits, and let it stand before `batch` and `prefetch` so that these run on.",
    "Zip": "`zip` waits for the slowest of its inputs, but here the time is in taking them together: batch before it.",
    "Concatenate": "`concatenate` passes elements on one by one: batch before it.",
    "Filter": "`filter` drops elements after they were made. Filter before what is expensive (decoding, augmenting), "
    "or when the files are written.",
    "Skip": "`skip` makes elements and drops them. Leave out whole files instead, or cut the data when it is written.",
    "Shard": "`shard` reads everything and drops the rest. Shard the names of files, before they are read.",
    "ParseExample": f"Parse whole batches: `batch` first, then `tf.io.parse_example` in a `map` with {_PARALLEL}.",
    "MapAndBatch": "Mapping and batching are one step here and run in parallel already. Make the mapped function "
    "cheaper: vectorise it, cache what does not change, use smaller types.",
    "TensorSlice": "Slices of a tensor in memory are cheap but come one by one. Slice batches at a time, or give the "
    "data in larger pieces.",
    "Unbatch": "`unbatch` copies each element out of its batch. Shuffle and batch so that it is not needed.",
    "Model": "The time is in tf.data's own bookkeeping. Make elements larger: batch earlier.",
}

_GENERAL = (
    "Make each call cheaper, let it work on batches, run it in parallel where it takes `num_parallel_calls`, or "
    "`cache` its result."
)
_CHEAPER_FUNCTION = (
    "make the function cheaper: batch first and vectorise it, so that one call works on many elements; `cache` what "
    "comes out the same each time; leave to the files what can be done once. Parallel calls help a `py_function` while "
    "it waits or computes in NumPy, but Python itself computes on one thread at a time"
)
GUIDE = "https://www.tensorflow.org/guide/profiler#input_pipeline_analyzer"

ADVICE = {
    ON_DEMAND: "Files are read when the program asks for them. Read ahead: end the pipeline with "
    "`prefetch(tf.data.AUTOTUNE)`, read several files at once with "
    "`interleave(…, num_parallel_calls=tf.data.AUTOTUNE)`, and give `TFRecordDataset` a larger `buffer_size`.",
    IN_ADVANCE: "Files are read ahead already, and not fast enough. Let `interleave` read more of them at once "
    "(`cycle_length`, `num_parallel_calls`), enlarge the `buffer_size` of `TFRecordDataset` and of `prefetch`, or "
    "`cache()` what fits into memory.",
    PREPROCESSING: "Give `map` a `num_parallel_calls=tf.data.AUTOTUNE`, `batch` before `map` so that its function "
    "works on whole batches, `cache()` what is the same in every epoch, or prepare the data once, before the training. "
    "`prefetch` at the end lets this work overlap with the step.",
    ENQUEUING: "Send fewer, larger pieces: join small tensors, send narrow types (`uint8` images) and widen them "
    "on the device, and send ahead of time with `tf.data.experimental.prefetch_to_device`.",
    OTHER_INPUT: "These stages say of themselves neither that they read nor that they prepare. Where the "
    "input is not read with `tf.data` yet, that shows its steps and lets them run ahead and in parallel.",
}
"""What to try where an input pipeline spends most of its time on one category, after the TensorFlow Profiler guide."""
PARALLEL_ALREADY = (
    "It runs in parallel already. Where processor cores are idle, allow it more calls at a time; else make its "
    "function cheaper (work on whole batches, decode no more than is needed), `cache()` what is the same in every "
    "epoch, or prepare the data once, before the training."
)
"""What to try where the preparing itself is done by a parallel transformation."""
OTHER_PREPARING = (
    "It transforms elements without a function of yours, so there is nothing in it to make parallel. Give it fewer or "
    "smaller elements to handle (`batch` before it, filter early, narrow types), `cache()` what is the same in every "
    "epoch, and let it work ahead of the step with `prefetch(tf.data.AUTOTUNE)` where it does not yet."
)
"""What to try where most of the preparing is done by a transformation that is no `map`."""


def tf_data_advice(bottleneck: pd.Series) -> str:
    """A few sentences in Markdown on what to try, for a bottleneck's row of `tf_data`; it says what is done already."""
    kind = transformation(str(bottleneck["iterator"]))
    special = {
        "Map": _map,
        "Interleave": _interleave,
        "Batch": _batch,
        "Prefetch": _prefetch,
        "Shuffle": _shuffle,
    } | dict.fromkeys(_READERS, _reader)
    return special[kind](bottleneck) if kind in special else _OTHERS.get(kind, _GENERAL)


def _number(row: pd.Series, name: str) -> str:
    """A setting that is a number, empty for any other text: what a profile holds becomes Markdown here."""
    value = setting(row, name)
    return value if re.fullmatch(r"[0-9]{1,19}", value) else ""


def _is_parallel(row: pd.Series) -> bool:
    return "Parallel" in str(row["iterator"])


def _how_parallel(row: pd.Series) -> str:
    """`It already runs up to 2 calls in parallel, a number that tf.data tunes.`"""
    count = row["parallelism"]
    many = f"up to {int(count)} call{'s' if count != 1 else ''}" if pd.notna(count) else "calls"
    tuned = {"true": ", a number that tf.data tunes", "false": ", a fixed number"}.get(str(row["autotune"]), "")
    return f"It already runs {many} in parallel{tuned}."


def _map(row: pd.Series) -> str:
    if not _is_parallel(row):
        first = f"`map` works on one element after the other. Give it {_PARALLEL}."
        return f"{first} If that is not enough, {_CHEAPER_FUNCTION}."
    more = "" if str(row["autotune"]) == "true" else f"Let tf.data choose the number ({_PARALLEL}) if cores are idle. "
    return f"{_how_parallel(row)} {more}Once all cores are busy, only less work helps: {_CHEAPER_FUNCTION}."


def _interleave(row: pd.Series) -> str:
    if not _is_parallel(row):
        return (
            f"`interleave` reads one input after the other. Give it {_PARALLEL}, and `deterministic=False` if the "
            "order does not matter."
        )
    cycle = _number(row, "cycle_length")
    order = " It keeps the order, so a slow input holds up the others: `deterministic=False` if it does not matter."
    return (
        f"{_how_parallel(row)} Read more inputs at a time (`cycle_length`{f', now {cycle}' if cycle else ''}), from "
        f"more and larger files, on faster storage.{order if setting(row, 'deterministic') == 'true' else ''}"
    )


def _batch(row: pd.Series) -> str:
    text = "Copying elements into a batch takes the time. Make elements smaller before (crop, use smaller types)"
    if _is_parallel(row):
        return f"{_how_parallel(row)} {text}."
    return f"{text}, and let several batches be made at a time: `batch(…, num_parallel_calls=tf.data.AUTOTUNE)`."


def _prefetch(row: pd.Series) -> str:
    fill, limit = row["buffered_elements"], row["buffer_limit"]
    if pd.notna(fill) and fill >= 1:
        of = f" of at most {int(limit)}" if pd.notna(limit) else ""
        return (
            f"Its buffer held {format_count(fill)}{of} elements when it was asked, so nothing had to be made: the "
            "time went into waking a thread and handing over. That happens when all cores are busy: give tf.data fewer "
            "threads (`options.threading.private_threadpool_size`), or the program more cores."
        )
    why = "Its buffer was empty" if pd.notna(fill) else "Most likely its buffer was empty (the profile does not tell)"
    return (
        f"{why}, so the steps below it, which fill it, are too slow. Their calls may lie before this execution: look "
        "at another one to see which step takes long, and speed that up. A larger buffer only evens out single slow "
        "elements."
    )


def _shuffle(row: pd.Series) -> str:
    size = _number(row, "buffer_size")
    holds = f"It holds {size} elements. " if size else ""
    return (
        f"{holds}`shuffle` fills its buffer before it hands out the first element, and again in each epoch. Make the "
        "buffer smaller, shuffle small things (names of files, encoded images) and decode after it. A later execution "
        "tells whether it still matters."
    )


def _reader(row: pd.Series) -> str:
    several = any("ParallelInterleave" in part for part in str(row["long_name"]).split("::")[:-1])
    how = (
        "Files are already read several at a time. Raise `cycle_length`, spread the data over more files"
        if several
        else f"Files are read one after the other. Read several at a time, by `interleave` with {_PARALLEL}"
    )
    return (
        f"{how} of 100 MB and more, keep them near (a local disk instead of a network), and `prefetch` behind. Data "
        "that fits in memory is read once with `cache`."
    )


def input_category_advice(category: str, op_name: str) -> str:
    """What to try where most input time is of that category, and most of that in that op, in Markdown."""
    last = op_name.rpartition("::")[2]
    if category == PREPROCESSING and last.startswith("Parallel"):
        return PARALLEL_ALREADY
    if category == PREPROCESSING and op_name.startswith("Iterator::") and not last.startswith("Map"):
        return OTHER_PREPARING
    return ADVICE[category]
