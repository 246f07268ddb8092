"""Captures a run from live profiler servers (`tf.profiler.experimental.server`, `jax.profiler.start_server`)."""
