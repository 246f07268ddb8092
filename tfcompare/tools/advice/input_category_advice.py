"""What to try where the input pipeline on the host spends most of its time, after the TensorFlow Profiler guide."""

from __future__ import annotations

from tfcompare.schema.input import ENQUEUING, IN_ADVANCE, ON_DEMAND, OTHER_INPUT, PREPROCESSING

GUIDE = "https://www.tensorflow.org/guide/profiler#input_pipeline_analyzer"

ADVICE = {
    ON_DEMAND: (
        "Files are read when the program asks for them. Read ahead: end the pipeline with "
        "`prefetch(tf.data.AUTOTUNE)`, read several files at once with "
        "`interleave(…, num_parallel_calls=tf.data.AUTOTUNE)`, and give `TFRecordDataset` a larger `buffer_size`."
    ),
    IN_ADVANCE: (
        "Files are read ahead already, and not fast enough. Let `interleave` read more of them at once "
        "(`cycle_length`, `num_parallel_calls`), enlarge the `buffer_size` of `TFRecordDataset` and of `prefetch`, or "
        "`cache()` what fits into memory."
    ),
    PREPROCESSING: (
        "Give `map` a `num_parallel_calls=tf.data.AUTOTUNE`, `batch` before `map` so that its function works on whole "
        "batches, `cache()` what is the same in every epoch, or prepare the data once, before the training. "
        "`prefetch` at the end lets this work overlap with the step."
    ),
    ENQUEUING: (
        "Send fewer, larger pieces: join small tensors, send narrow types (`uint8` images) and widen them on the "
        "device, and send ahead of time with `tf.data.experimental.prefetch_to_device`."
    ),
    OTHER_INPUT: (
        "These stages say of themselves neither that they read nor that they prepare. Where the input is not read with "
        "`tf.data` yet, that shows its steps and lets them run ahead and in parallel."
    ),
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


def advice(category: str, op_name: str) -> str:
    """What to try where most input time is of that category, and most of that in that op, in Markdown."""
    last = op_name.rpartition("::")[2]
    if category == PREPROCESSING and last.startswith("Parallel"):
        return PARALLEL_ALREADY
    if category == PREPROCESSING and op_name.startswith("Iterator::") and not last.startswith("Map"):
        return OTHER_PREPARING
    return ADVICE[category]
