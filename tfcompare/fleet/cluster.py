"""The workers of a Dask cluster. `distributed` is only imported here, if a scheduler is given."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from time import monotonic
from typing import Any

from tfcompare.errors import TfcompareError, causes
from tfcompare.fleet.pools import Pool
from tfcompare.store.version import reader_version
from tfcompare.text import text_of

PER_THREAD = 2
"""Tasks in flight for each worker thread: the current one and the next, so that it never waits."""
_BATCH_BYTES = 16_000_000
"""About a third of a second's work, since each task has an overhead of 15 ms on worker and scheduler."""
_CONNECT_S = 20
_NOBODY_S = 60
_COUNT_S = 5
_INSTALL = "pip install 'tfcompare[cluster]'"
_NO_MODULE = ("ModuleNotFoundError", "ImportError")


class Cluster(Pool):
    """See `Pool`. If a worker dies, the scheduler moves its tasks to others, up to `allowed-failures` times."""

    batch_bytes = _BATCH_BYTES

    def __init__(self, address: str) -> None:
        """Connect. Raises `TfcompareError` if that fails, or if workers lack tfcompare or have another version."""
        self._address = text_of(address)
        self._client = _connect(address, self._address)
        self._seen = monotonic()
        try:
            self._check_workers()
            self._threads, self._counted = self._count(), self._seen
        except BaseException:
            self._client.close()
            raise
        self._executor = self._client.get_executor(pure=False)

    @property
    def width(self) -> int:
        """See `Pool`. The number of workers may change."""
        if monotonic() - self._counted > _COUNT_S:
            self._counted = monotonic()
            with suppress(OSError):  # `check` reports a scheduler that is gone
                self._threads = self._count()
        return PER_THREAD * max(1, self._threads)

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """See `Pool`. Dead workers are replaced by whoever started them."""
        future: Future[Any] = self._executor.submit(work, *arguments)
        return future

    def is_killed(self, error: Exception) -> bool:
        """See `Pool`."""
        if isinstance(error, CancelledError):
            raise self._gone()
        return type(error).__name__ == "KilledWorker"

    def check(self) -> None:
        """See `Pool`."""
        if self._client.status != "running":
            raise self._gone()
        if not self._count() and monotonic() - self._seen > _NOBODY_S:
            problem = f"has had no worker for {_NOBODY_S} seconds; start some, and run this again"
            raise TfcompareError(f"{self._address}: {problem}")

    def close(self) -> None:
        """See `Pool`."""
        self._client.close()

    def _gone(self) -> TfcompareError:
        return TfcompareError(f"{self._address}: the scheduler went away; finished runs are stored, so run this again")

    def _count(self) -> int:
        """The number of tasks that the workers run at once."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        threads: int = sum(worker["nthreads"] for worker in workers.values())
        if threads:
            self._seen = monotonic()
        return threads

    def _check_workers(self) -> None:
        try:
            self._client.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError:
            problem = "the scheduler has no worker; start one with `dask worker`"
            raise TfcompareError(f"{self._address}: {problem}") from None
        try:
            versions: dict[str, str] = self._client.run(_version)
        except Exception as error:  # for any exception there
            if not any(type(e).__name__ in _NO_MODULE for e in causes(error)):
                raise TfcompareError(f"{self._address}: its workers do not answer ({type(error).__name__})") from error
            problem = f"its workers have no tfcompare ({error}); install it in their environment"
            raise TfcompareError(f"{self._address}: {problem}") from error
        others = [worker for worker, version in versions.items() if version != reader_version()]
        if others:
            problem = f"{len(others)} of {len(versions)} workers have another version of tfcompare, such as {others[0]}"
            raise TfcompareError(f"{self._address}: {problem}; install the same one everywhere")


def _version() -> str:
    """The version of the reader on the machine where this is called."""
    return reader_version()


def _connect(address: str, shown: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise TfcompareError(f"--scheduler needs the package distributed, which is not installed: {_INSTALL}") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # relevant errors are raised
    try:
        client: Any = distributed.Client
        return client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError):
        problem = "no scheduler of Dask answers there; check the address and the network"
    except ValueError as error:
        problem = f"is no address of a scheduler ({error}); expected one such as tcp://host:8786"
    raise TfcompareError(f"{shown}: {problem}")
