"""A program to be recorded: trains a tiny model on CPU, its steps marked, until whoever started it goes away.

`worker.py PORT` starts a profiler server at that port and prints `ready` once it trains.
"""

from __future__ import annotations

import os
import sys
import threading
import time

PAUSE_S = 0.02


def main() -> None:
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="3")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    weights = tf.Variable(tf.random.normal((128, 128), stddev=0.01))
    batches = iter(tf.data.Dataset.range(64).map(lambda _: tf.random.normal((64, 128))).repeat())

    @tf.function
    def train_step(batch: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(batch, weights) - batch))
        weights.assign_sub(0.1 * tape.gradient(loss, weights))
        return loss

    train_step(next(batches))
    tf.profiler.experimental.server.start(int(sys.argv[1]))
    threading.Thread(target=_end_with_caller, daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    step = 0
    while True:
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step(next(batches)).numpy()
        step += 1
        time.sleep(PAUSE_S)


def _end_with_caller() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
