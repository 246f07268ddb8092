"""Captures a run from live profiler servers (`tf.profiler.experimental.server`, `jax.profiler.start_server`)."""

from tfcompare.sources.capture.addresses import HOW_TO_START, Address, BadAddress, parse_address, parse_addresses
from tfcompare.sources.capture.recording import HOW_TO_INSTALL, BackgroundRecording, Progress, record
from tfcompare.sources.capture.request import (
    DEVICE_LEVELS,
    HOST_LEVELS,
    LONGEST_MS,
    MOST_RETRIES,
    PYTHON_LEVELS,
    LeftOut,
    NothingRecorded,
    Recorded,
    Request,
    Stopped,
    check_name,
)

__all__ = [
    "DEVICE_LEVELS",
    "HOST_LEVELS",
    "HOW_TO_INSTALL",
    "HOW_TO_START",
    "LONGEST_MS",
    "MOST_RETRIES",
    "PYTHON_LEVELS",
    "Address",
    "BackgroundRecording",
    "BadAddress",
    "LeftOut",
    "NothingRecorded",
    "Progress",
    "Recorded",
    "Request",
    "Stopped",
    "check_name",
    "parse_address",
    "parse_addresses",
    "record",
]
