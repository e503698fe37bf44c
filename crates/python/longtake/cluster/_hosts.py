"""Hosts of a cluster, and calls that run on one of them: each ends with a value, or with the reason why there is none."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

import distributed
from distributed.scheduler import KilledWorker

#: How often a call that has not ended is checked for the loss of its worker. The end of a call is noticed at once.
LOOK_S = 0.5

#: Seconds that a host may take for one call.
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Missing:
    """A host, or one array of it, that did not answer."""

    #: The host's name.
    host: str
    #: "no worker": none is connected. "worker lost": its process ended or was disconnected. "timed out": it did not answer in time.
    #: "failed": it answered with an error.
    reason: str
    #: What happened, in words.
    text: str
    #: The array, if others of the host answered; None if the whole host is missing.
    array: str | None = None
    #: Packets from this time on are missing (nanoseconds since 1970). None if there are none at all of this host or array.
    from_ns: int | None = None

    def __str__(self) -> str:
        what = self.host if self.array is None else f"{self.array} on {self.host}"
        return f"{what}: {self.text}"

    def values(self) -> dict[str, Any]:
        """As a dictionary, for JSON."""
        return asdict(self)


@dataclass
class Host:
    """A machine with one or more workers."""

    name: str
    #: Its workers' address, without a port.
    address: str
    #: Addresses of its workers; empty if none is connected.
    workers: list[str] = field(default_factory=list)
    #: Whether a process restarts its workers when they end.
    is_restarted: bool = False

    @property
    def pin(self) -> list[str]:
        """Where its tasks may run: any worker on it, also one that is started later. An address of IPv6 reads like one with a port, and
        gets the workers there are."""
        return self.workers if ":" in self.address or not self.address else [self.address]


def synchronous(client: distributed.Client) -> distributed.Client:
    """The client, if it can be waited for."""
    if not isinstance(client, distributed.Client) or client.asynchronous:
        raise TypeError("client: give a distributed.Client that is not asynchronous")
    return client


def workers_of(client: distributed.Client) -> dict[str, Any]:
    """The workers that the scheduler knows, by their addresses.

    It is asked itself: ``scheduler_info`` returns what the client keeps, which the client's own refresh, without any workers, may just
    have replaced.
    """
    return client.sync(client.scheduler.identity, n_workers=-1)["workers"]


def connected(client: distributed.Client) -> dict[str, Host]:
    """The hosts that have workers, by their names."""
    by_address: dict[str, list[dict[str, Any]]] = {}
    for address, worker in sorted(workers_of(client).items()):
        by_address.setdefault(worker["host"], []).append(worker | {"address": address})
    hosts: dict[str, Host] = {}
    for address, workers in by_address.items():
        name = _name(address, [worker.get("name") for worker in workers])
        if name in hosts:
            # Two machines that were given one name.
            name = address
        addresses = [worker["address"] for worker in workers]
        hosts[name] = Host(name, address, addresses, any(worker.get("nanny") for worker in workers))
    return hosts


def _name(address: str, names: list[Any]) -> str:
    """What ``dask worker --name`` says, without the numbers that ``--nworkers`` appends. Else the address."""
    given = {re.sub(r"-\d+$", "", name) for name in names if isinstance(name, str) and "://" not in name}
    given = {name for name in given if name and not name.isdigit()}
    return given.pop() if len(given) == 1 and all(isinstance(name, str) for name in names) else address


def chosen(client: distributed.Client, wanted: Iterable[str] | None) -> tuple[list[Host], list[Missing]]:
    """Hosts by their names or addresses [default: all], and those of them that have no worker."""
    hosts = connected(client)
    if wanted is None:
        return list(hosts.values()), []
    by_address = {host.address: host for host in hosts.values()}
    found, missing = [], []
    for name in dict.fromkeys(wanted):
        host = hosts.get(name) or by_address.get(name)
        if host is None:
            missing.append(Missing(name, "no worker", "no worker of this host is connected to the scheduler"))
        elif host not in found:
            found.append(host)
    return found, missing


class Call:
    """A function that runs on a host. It has ended once it has a value or a reason."""

    def __init__(
        self,
        client: distributed.Client,
        host: Host,
        function: Callable[..., Any],
        *arguments: Any,
        worker: str | None = None,
        priority: int = 0,
    ) -> None:
        """:param worker: only this worker, and not any of the host."""
        self.host = host
        self.value: Any = None
        #: Why there is no value; None if there is one, or the call has not ended.
        self.reason: str | None = None
        self.text = ""
        self.error: BaseException | None = None
        self.is_over = False
        self._client = client
        self._worker = worker
        self._future = client.submit(
            function,
            *arguments,
            workers=[worker] if worker else host.pin,
            allow_other_workers=False,
            pure=False,
            priority=priority,
        )

    def missing(self, array: str | None = None, from_ns: int | None = None) -> Missing:
        """What is missing if it has no value."""
        return Missing(self.host.name, self.reason or "failed", self.text, array, from_ns)

    def detach(self) -> None:
        """Lets it run without waiting for it, also if its host can't be reached at present."""
        distributed.fire_and_forget(self._future)

    def cancel(self) -> None:
        """Gives up its value."""
        if self._future is not None:
            future, self._future = self._future, None
            with suppress(Exception):
                future.cancel()

    def _end(self, reason: str | None, text: str = "", error: BaseException | None = None) -> None:
        self.reason, self.text, self.error, self.is_over = reason, text, error, True
        self.cancel()

    def _collect(self, timeout: float) -> None:
        """Takes the value of a future that is done."""
        status = self._future.status
        if status == "error":
            error = self._future.exception(timeout=timeout)
            if isinstance(error, KilledWorker):
                self._end("worker lost", f"workers that ran this ended, {error.allowed_failures + 1} in a row")
            else:
                self._end("failed", str(error) or type(error).__name__, error)
        elif status == "finished":
            try:
                self.value = self._future.result(timeout=timeout)
                self._end(None)
            except (TimeoutError, distributed.TimeoutError):
                self._end("timed out", f"its answer did not arrive within {timeout:g} s")
            except Exception as error:
                self._end("worker lost", f"its answer was lost: {error}")
        else:
            self._end("worker lost", "the scheduler cancelled or lost the task")

    def _check_worker(self, workers: Mapping[str, Any]) -> None:
        """Ends it if nothing is left that could run it."""
        if self._worker is not None:
            is_lost = self._worker not in workers
        else:
            of_host = [worker for worker in workers.values() if worker["host"] == self.host.address]
            is_lost = not of_host and not self.host.is_restarted
        if is_lost:
            self._end("worker lost", "its worker ended, or lost the connection to the scheduler")


def settle(client: distributed.Client, calls: Iterable[Call], timeout: float) -> None:
    """Waits until every call has ended. One that has no value in `timeout` seconds has timed out."""
    deadline = time.monotonic() + timeout
    while waiting := [call for call in calls if not call.is_over]:
        left = deadline - time.monotonic()
        if left <= 0:
            for call in waiting:
                call._end("timed out", f"it did not answer within {timeout:g} s")
            return
        # `distributed.wait` takes the client that is current, and another one has a loop of its own.
        with suppress(TimeoutError, distributed.TimeoutError, CancelledError), client.as_current():
            futures = [call._future for call in waiting]
            distributed.wait(futures, timeout=min(left, LOOK_S), return_when="FIRST_COMPLETED")
        done = [call for call in waiting if call._future.done()]
        for call in done:
            call._collect(timeout)
        if not done:
            workers = workers_of(client)
            for call in waiting:
                call._check_worker(workers)
