"""The process that looks at inputs and may crash: it tells each number before, and what came of it after."""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import tempfile
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.fuzz import chain, stores
from tests.fuzz.inputs import made
from tests.xspace import fuzz_inputs

ADDRESS_SPACE = 6 << 30
_HANGS_AFTER = 30 * chain.SECONDS_ALLOWED  # by the clock, where other programs may run too


def work(seed: int, numbers: Iterable[int], with_corpus: bool, log: Path) -> None:
    """Append to `log`: the number of each input, and then its outcome as a line of JSON."""
    _prepare()
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as folder:
        path = Path(folder) / "vm.xplane.pb"
        for data in fuzz_inputs.built():  # compiles what has to be
            chain.attempt(data, path)

        def attempt(number: int) -> chain.Outcome:
            kind, data = made(seed, number, with_corpus)
            return chain.attempt(data, path, number, kind)

        _log_each(numbers, attempt, log)


def work_on_stores(seed: int, numbers: Iterable[int], log: Path) -> None:
    """As `work`, for forged files of a store."""
    _prepare()
    with tempfile.TemporaryDirectory(dir=_fast_folder()) as folder:
        yard = stores.Yard(Path(folder))
        _log_each(numbers, lambda number: stores.attempt(yard, seed, number), log)


def _prepare() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    faulthandler.enable()
    warnings.simplefilter("error")
    if os.environ.get("NUMBA_DISABLE_JIT"):  # hashes overflow on purpose
        warnings.filterwarnings("ignore", "overflow encountered in scalar multiply", RuntimeWarning)


def _log_each(numbers: Iterable[int], attempt: Callable[[int], chain.Outcome], log: Path) -> None:
    with log.open("a", buffering=1) as out:
        for number in numbers:
            out.write(f"{number}\n")
            faulthandler.dump_traceback_later(_HANGS_AFTER, exit=True)
            outcome = attempt(number)
            faulthandler.cancel_dump_traceback_later()
            out.write(json.dumps(vars(outcome)) + "\n")


def _fast_folder() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
