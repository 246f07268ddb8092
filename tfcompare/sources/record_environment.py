"""Writes what a program ran with beside its profile: packages, compiler flags, settings, and the CPU's model.

Uses only the standard library, so that a training program can import it too.
"""

from __future__ import annotations

import json
import os
import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tfcompare.errors import NoRuns
from tfcompare.sources.logdir.metadata import (
    FILE_NAME,
    LONGEST_VALUE,
    MOST_VALUES,
    TAGS,
    Metadata,
    parse_bytes,
    parse_object,
)
from tfcompare.sources.machine_load import profiles_below

PACKAGES = ("jax", "jaxlib", "libtpu", "tensorflow", "keras", "flax", "torch-xla", "numpy")
_COMPILER = ("XLA_FLAGS", "TF_XLA_FLAGS", "LIBTPU_INIT_ARGS")
_JAX = ("JAX_PLATFORMS", "JAX_ENABLE_X64", "JAX_DEFAULT_MATMUL_PRECISION")
_MEMORY = ("XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION", "TF_GPU_ALLOCATOR")
_TF = ("TF_ENABLE_ONEDNN_OPTS", "TF_DETERMINISTIC_OPS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
VARIABLES = (*_COMPILER, *_JAX, *_MEMORY, *_TF, "NVIDIA_TF32_OVERRIDE", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")
"""Variables that change times, and hold neither secrets nor addresses; no others are written."""
LEFT_OUT = "not recorded"
"""The name of the text that lists what was left out."""


def record_environment(logdir: str | Path, **texts: str) -> Path:
    """Write `tfcompare.json` beside the newest profile below `logdir`; returns its path.

    It has the versions of `PACKAGES` that are installed, those of `VARIABLES` that are set, the CPU's model, and
    `texts`: `commit="abc123"`, or a tag as `tags="nightly"`. It keeps what the file already has. A value above
    `LONGEST_VALUE` characters is cut and ends in `…`; of more than `MOST_VALUES` texts, the names of those that are
    left out are in `not recorded`. Call it after the capture: nothing is recorded unless a program asks for it. Raises
    `NoRuns` without a profile, ValueError for texts that tfcompare would not read.
    """
    found = profiles_below(logdir)
    if not found:
        raise NoRuns(f"{logdir}: expected a profile (*.xplane.pb) below it, found none; call this after the capture")
    path = max(found, key=lambda one: one.stat().st_mtime).parent / FILE_NAME
    before = parse_bytes(path.read_bytes()) if path.exists() else Metadata()
    noted = parse_object(texts).updated(before)
    values = dict(noted.values) | {key: text for key, text in _environment().items() if not noted.get(key)}
    names = sorted(values, key=lambda name: name != "XLA_FLAGS")
    if len(names) > MOST_VALUES:
        names, left_out = names[: MOST_VALUES - 1], names[MOST_VALUES - 1 :]
        values[LEFT_OUT] = _plain(", ".join(left_out))
        names.append(LEFT_OUT)
    content = {name: values[name] for name in names} | {TAGS: list(noted.tags)}
    data = (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()
    parse_bytes(data)
    path.write_bytes(data)
    return path


def _environment() -> dict[str, str]:
    found = {name: os.environ[name] for name in VARIABLES if os.environ.get(name, "").strip()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    found["CPU"] = platform.processor() or platform.machine()
    with suppress(OSError):  # Linux knows the model
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        found["CPU"] = next((line.partition(":")[2] for line in lines if line.startswith("model name")), found["CPU"])
    return {name: _plain(text) for name, text in found.items() if _plain(text)}


def _plain(text: str) -> str:
    """The text on one line, cut to what `tfcompare.json` may hold."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= LONGEST_VALUE else f"{line[: LONGEST_VALUE - 1].rstrip()}…"
