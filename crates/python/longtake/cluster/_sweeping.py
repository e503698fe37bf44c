"""Many plans, simulations, fits or calls of any function, spread over the workers."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, Literal

import distributed
from distributed.scheduler import KilledWorker

import longtake

from .._planning import Progress
from . import _hosts

#: Seconds that a task takes at least, as far as the items that are done predict it: scheduling costs a hundredth of that.
TASK_S = 0.5

#: Share by which items may take longer or shorter than they were taken to before tasks get another size.
OFF = 0.25

#: Tasks under way for each thread of the workers, so that none waits for the next.
AHEAD = 2

#: Seconds without a result after which the scheduler is asked whether it has a worker.
QUIET_S = 5.0


@dataclass(frozen=True)
class Failed:
    """The result of an item that failed."""

    index: int
    item: Any
    error: BaseException

    def __str__(self) -> str:
        return f"item {self.index}, {self.item!r}: {type(self.error).__name__}: {self.error}"


def sweep(
    client: distributed.Client | None,
    work: Literal["plan", "simulate", "fit"] | Callable[[Any], Any],
    items: Iterable[Any],
    *,
    progress: Progress | None = None,
    retries: int = 2,
) -> Sweep:
    """Computes one result for each item. The results are those of one process, whatever workers there are and whatever becomes of them.
    Without any worker it waits for one, and warns.

    :param client: None computes in this process.
    :param work: "plan", "simulate" or "fit", of which each item is a dictionary of arguments; or a function of one item, which can be
        pickled.
    :param items: what to compute. Short ones are sent together, so that a task takes half a second or more.
    :param progress: is told the share of items that are done.
    :param retries: how often an item is tried again after a worker ended while computing it. What raises an exception isn't.
    """
    if client is not None:
        _hosts.synchronous(client)
    if work not in _KINDS and not callable(work):
        raise ValueError(f"work: give {', '.join(map(repr, _KINDS))} or a function, not {work!r}")
    return Sweep(client, work, list(items), progress, retries)


class Sweep:
    """A sweep. Tasks are sent while it is iterated or waited for. As a context manager, it gives up what is under way at the end."""

    def __init__(
        self,
        client: distributed.Client | None,
        work: str | Callable[[Any], Any],
        items: list[Any],
        progress: Progress | None,
        retries: int,
    ) -> None:
        self._client, self._work, self._items, self._progress = client, work, items, progress
        self._results: dict[int, Any] = {}
        #: Indices of items that are still to be sent, the next one last.
        self._waiting = list(reversed(range(len(items))))
        #: Items whose tasks ended several workers, and how often they did so alone. Dask blames all tasks that a worker had: so these are
        #: computed last, one at a time.
        self._suspects: dict[int, int] = {}
        self._retries = retries
        self._under_way: dict[distributed.Future, list[int]] = {}
        self._seconds, self._timed = 0.0, 0
        #: Items of a task, and what each was taken to take when that was computed.
        self._size, self._sized_s = 1, 0.0

    def __enter__(self) -> Sweep:
        return self

    def __exit__(self, *error: object) -> None:
        self.cancel()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        """Each item's index and result, as they are completed. A second iteration begins with those that are known."""
        known = list(self._results.items())
        yield from known
        results = self._here() if self._client is None else self._there()
        for count, (index, value) in enumerate(results, start=len(known) + 1):
            if self._progress is not None:
                self._progress(count / len(self._items))
            yield index, value

    def results(self) -> list[Any]:
        """Waits for all results, which are in the order of the items. Those of items that failed are :class:`Failed`."""
        for _ in self:
            pass
        return [self._results[index] for index in range(len(self._items))]

    def partial(self) -> dict[int, Any]:
        """The results so far, by the items' indices."""
        return dict(sorted(self._results.items()))

    @property
    def failures(self) -> list[Failed]:
        """What failed so far."""
        return [value for value in self.partial().values() if isinstance(value, Failed)]

    def cancel(self) -> None:
        """Gives up what is under way. It can be continued: iterating sends it again."""
        for future, indices in self._under_way.items():
            future.cancel()
            self._waiting.extend(reversed(indices))
        self._under_way.clear()

    def _here(self) -> Iterator[tuple[int, Any]]:
        while self._waiting:
            index = self._waiting.pop()
            _, outcomes = _compute(self._work, [self._items[index]])
            yield from self._entered([index], outcomes)

    def _there(self) -> Iterator[tuple[int, Any]]:
        try:
            self._send()
            while self._under_way:
                self._wait()
                fresh: list[tuple[int, Any]] = []
                for future in [future for future in self._under_way if future.done()]:
                    indices = self._under_way.pop(future)
                    fresh += self._entered(indices, self._outcomes(future, indices))
                # Workers go on while the caller works with the results.
                self._send()
                yield from fresh
        finally:
            self.cancel()

    def _wait(self) -> None:
        """Waits until a task is over. Warns if no worker is left that could compute it."""
        told = False
        while True:
            # `distributed.wait` takes the client that is current, and another one has a loop of its own.
            with contextlib.suppress(TimeoutError), self._client.as_current():
                with contextlib.suppress(CancelledError):
                    distributed.wait(list(self._under_way), timeout=QUIET_S, return_when="FIRST_COMPLETED")
                return
            if not told and not self._client.nthreads():
                warnings.warn("the scheduler has no workers: the sweep continues when one joins it", RuntimeWarning, stacklevel=4)
                told = True

    def _entered(self, indices: list[int], outcomes: list[tuple[bool, Any]]) -> list[tuple[int, Any]]:
        """Keeps results, which are lost no more if the caller leaves early."""
        fresh = [
            (index, value if succeeded else Failed(index, self._items[index], value))
            for index, (succeeded, value) in zip(indices, outcomes)
        ]
        self._results.update(fresh)
        return fresh

    def _outcomes(self, future: distributed.Future, indices: list[int]) -> list[tuple[bool, Any]]:
        """What came of a task; nothing if its items are sent again."""
        if future.status == "finished":
            seconds, outcomes = future.result()
            self._seconds += seconds
            self._timed += len(indices)
            return outcomes
        error = future.exception() if future.status == "error" else RuntimeError("the scheduler cancelled the task")
        if not isinstance(error, KilledWorker):
            # It could not be sent, or not be run at all.
            return [(False, error)] * len(indices)
        for index in indices:
            self._suspects[index] = self._suspects.get(index, -1) + 1
        if len(indices) == 1 and self._suspects[indices[0]] > self._retries:
            return [(False, error)]
        return []

    def _send(self) -> None:
        """Sends tasks until each thread has enough."""
        if not self._waiting and not self._under_way:
            if alone := [index for index in self._suspects if index not in self._results]:
                self._submit([alone[0]])
            return
        threads = sum(self._client.nthreads().values()) or 1
        while self._waiting and len(self._under_way) < AHEAD * threads:
            if not self._timed and len(self._under_way) >= threads:
                # The first items say how long the others take.
                return
            self._submit(self._next(threads))

    def _submit(self, indices: list[int]) -> None:
        items = [self._items[index] for index in indices]
        self._under_way[self._client.submit(_compute, self._work, items, pure=False)] = indices

    def _next(self, threads: int) -> list[int]:
        """The items of the next task."""
        if not self._timed:
            return [self._waiting.pop()]
        each_s = max(self._seconds / self._timed, 1e-9)
        if not self._sized_s or abs(each_s / self._sized_s - 1) > OFF:
            self._sized_s, self._size = each_s, self._even(each_s, threads)
        return [self._waiting.pop() for _ in range(min(self._size, len(self._waiting)))]

    def _even(self, each_s: float, threads: int) -> int:
        """Items of a task, if each takes so long: all that wait, divided evenly, so that no thread has a task more than another."""
        least = math.ceil(TASK_S / each_s)
        tasks = len(self._waiting) // least // threads * threads
        return max(least, math.ceil(len(self._waiting) / max(tasks, threads)))


def _plan(item: Mapping[str, Any]) -> longtake.Plan:
    return longtake.plan(**item)


def _simulate(item: Mapping[str, Any]) -> longtake.Simulation:
    return longtake.simulate(**item)


def _fit(item: Mapping[str, Any]) -> longtake.Fit:
    return longtake.fit(**item)


_KINDS: dict[Any, Callable[[Any], Any]] = {"plan": _plan, "simulate": _simulate, "fit": _fit}


def _compute(work: str | Callable[[Any], Any], items: list[Any]) -> tuple[float, list[tuple[bool, Any]]]:
    """Seconds, and for each item whether it succeeded and its result or exception. Runs on a worker."""
    function = _KINDS[work] if isinstance(work, str) else work
    outcomes: list[tuple[bool, Any]] = []
    begin = time.perf_counter()
    for item in items:
        try:
            outcomes.append((True, function(item)))
        except Exception as error:
            outcomes.append((False, error))
    return time.perf_counter() - begin, outcomes
