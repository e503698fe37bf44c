"""Recorders on many hosts, and one ledger over all of them."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

import distributed

import longtake

from .._longtake import LongtakeError
from . import _hosts
from ._hosts import Call, Host, Missing

#: How often a waiting call asks the hosts.
_ASK_S = 0.5

#: Before other tasks.
_PRIORITY = 100


def record(
    client: distributed.Client,
    sources: Mapping[str, tuple[str, str | os.PathLike[str]]],
    *,
    timeout: float = _hosts.TIMEOUT_S,
    **options: Any,
) -> Recordings:
    """Starts a recorder on each host, in a process of a worker. A host that can't start is reported, and the others record.

    :param sources: for each host, by name or address, the source and the target, as of :func:`longtake.record`.
    :param timeout: seconds that a host may take to answer each request.
    :param options: options of :func:`longtake.record`, for all of them.
    :raises LongtakeError: if none could start.
    """
    _hosts.synchronous(client)
    hosts, missing = _hosts.chosen(client, sources)
    started, calls = [], []
    for host in hosts:
        source, target = sources.get(host.name) or sources[host.address]
        token = uuid.uuid4().hex
        started.append(_Recorder(host, host.workers[0], token, os.fspath(target)))
        calls.append(_call(client, started[-1], _start, token, source, os.fspath(target), options))
    _hosts.settle(client, calls, timeout)
    recordings = Recordings(client, timeout, [], missing)
    for recorder, call in zip(started, calls):
        if call.reason is None:
            recorder.answer = call.value
            recordings._recorders.append(recorder)
        else:
            # One that was too slow may record all the same: it is stopped as soon as it answers.
            if call.reason == "timed out":
                _call(client, recorder, _stop, recorder.token).detach()
            recordings._missing.append(call.missing())
    if not recordings._recorders:
        reasons = "; ".join(map(str, recordings._missing)) or "no host is named"
        raise LongtakeError(f"no recorder could start: {reasons}")
    return recordings


def recordings(client: distributed.Client, *, timeout: float = _hosts.TIMEOUT_S) -> Recordings:
    """Recorders that :func:`record` started and that nobody has waited for yet, including those of programs that have ended."""
    _hosts.synchronous(client)
    hosts, _ = _hosts.chosen(client, None)
    asked = [(host, worker) for host in hosts for worker in host.workers]
    calls = [Call(client, host, _registered, worker=worker, priority=_PRIORITY) for host, worker in asked]
    _hosts.settle(client, calls, timeout)
    found = Recordings(client, timeout, [], [call.missing() for call in calls if call.reason is not None])
    for (host, worker), call in zip(asked, calls):
        for token, target, answer in call.value or ():
            found._recorders.append(_Recorder(host, worker, token, target, answer))
    return found


class _Recorder:
    """A recorder, and what it said last."""

    def __init__(
        self, host: Host, worker: str, token: str, target: str, answer: dict[str, Any] | None = None
    ) -> None:
        self.host, self.worker, self.token, self.target = host, worker, token, target
        self.answer: dict[str, Any] = answer or {}
        #: Why it did not answer last; None if it did.
        self.missing: Missing | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, or its worker is lost."""
        lost = self.missing is not None and self.missing.reason == "worker lost"
        return lost or self.answer.get("state") in ("over", "failed")


class Recordings:
    """Recorders on many hosts. As a context manager, they are stopped and waited for at the end of the block."""

    def __init__(
        self, client: distributed.Client, timeout: float, recorders: list[_Recorder], missing: list[Missing]
    ) -> None:
        self._client, self._timeout, self._recorders, self._missing = client, timeout, recorders, missing

    def __enter__(self) -> Recordings:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        self.wait()
        self._ask(_forget, self._recorders)

    @property
    def missing(self) -> list[Missing]:
        """Hosts that did not start, and those that did not answer when they were asked last."""
        return self._missing + [recorder.missing for recorder in self._recorders if recorder.missing is not None]

    def status(self) -> dict[str, dict[str, Any]]:
        """Each host's recorder: ``state`` ("recording", "over", "failed", or "unknown" if the host does not answer) with what belongs to
        it: ``started``, ``status``, ``account``, ``error``, ``missing``. Where the host does not answer, they are what it said last."""
        self._ask(_look, [recorder for recorder in self._recorders if not recorder.is_over])
        told = {missing.host: {"state": "failed", "error": missing.text} for missing in self._missing}
        for recorder in self._recorders:
            told[recorder.host.name] = dict(recorder.answer)
            if recorder.missing is not None:
                told[recorder.host.name] |= {"state": "unknown", "missing": recorder.missing.values()}
        return told

    def stop(self) -> None:
        """Asks all to end. What they have taken in is still written."""
        self._ask(_stop, [recorder for recorder in self._recorders if not recorder.is_over])

    def wait(self, timeout: float | None = None) -> dict[str, Any]:
        """Waits until all are over, and returns :meth:`ledger`. A host that doesn't answer is not waited for, and named there.

        :param timeout: seconds after which it returns even if some go on.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            # Whoever does not answer now has had its time.
            waiting = [recorder for recorder in self._recorders if not recorder.is_over and recorder.missing is None]
            self._ask(_look, waiting)
            if all(recorder.is_over or recorder.missing is not None for recorder in self._recorders):
                return self.ledger()
            if deadline is not None and time.monotonic() >= deadline:
                return self.ledger()
            time.sleep(_ASK_S)

    def ledger(self) -> dict[str, Any]:
        """One ledger over all hosts.

        ``ledger`` is the sum over the hosts that answered: offered = stored + filtered + each kind of loss. ``hosts`` has the ledger of
        each. ``missing`` names hosts that are not in the sum. For one whose worker has ended, ``interrupted`` has the take as its array
        holds it, if another worker of the host can read it: what was not yet on the drives is lost, and nobody has counted it.
        """
        self._ask(_look, [recorder for recorder in self._recorders if not recorder.is_over])
        ledgers = {
            recorder.host.name: recorder.answer["ledger"]
            for recorder in self._recorders
            if recorder.missing is None and recorder.answer.get("ledger") is not None
        }
        total: dict[str, Any] = {}
        for ledger in ledgers.values():
            total = _sum(total, ledger)
        return {
            "ledger": total,
            "hosts": ledgers,
            "complete": len(ledgers) == len(self._recorders) and not self._missing,
            "missing": [missing.values() for missing in self.missing],
            "interrupted": self._interrupted(),
        }

    def _interrupted(self) -> dict[str, Any]:
        """Takes whose worker has ended, as their arrays hold them."""
        lost = [each for each in self._recorders if each.missing is not None and each.missing.reason == "worker lost"]
        connected = _hosts.connected(self._client) if lost else {}
        asked = [each for each in lost if each.host.name in connected]
        calls = []
        for recorder in asked:
            take = (recorder.answer.get("started") or {}).get("take", "last")
            calls.append(Call(self._client, connected[recorder.host.name], _take, recorder.target, take, priority=_PRIORITY))
        _hosts.settle(self._client, calls, self._timeout)
        return {
            each.host.name: call.value if call.reason is None else {"error": call.text}
            for each, call in zip(asked, calls)
        }

    def _ask(self, function: Any, recorders: Iterable[_Recorder]) -> None:
        """Calls a function with each recorder's token, and keeps what they say."""
        recorders = list(recorders)
        calls = [_call(self._client, recorder, function, recorder.token) for recorder in recorders]
        _hosts.settle(self._client, calls, self._timeout)
        for recorder, call in zip(recorders, calls):
            recorder.missing = None if call.reason is None else call.missing()
            if call.reason is None and call.value is not None:
                recorder.answer = call.value


def _call(client: distributed.Client, recorder: _Recorder, function: Any, *arguments: Any) -> Call:
    return Call(client, recorder.host, function, *arguments, worker=recorder.worker, priority=_PRIORITY)


def _sum(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Adds counts of equal names. A count that one host does not know is unknown in the sum."""
    both = dict(one)
    for name, value in other.items():
        if name not in one:
            both[name] = value
        elif isinstance(value, dict) and isinstance(one[name], dict):
            both[name] = _sum(one[name], value)
        elif isinstance(value, bool):
            both[name] = one[name] and value
        elif value is None or one[name] is None:
            both[name] = None
        else:
            both[name] = one[name] + value
    return both


# From here on: in the worker's process.

#: Tokens of recorders that were stopped before they had started.
_unwanted: set[str] = set()

#: Recorders of this process by their tokens.
_recorders: dict[str, tuple[str, longtake.Recording, dict[str, Any]]] = {}


def _start(token: str, source: str, target: str, options: dict[str, Any]) -> dict[str, Any]:
    # Dask may run a task twice if a connection breaks.
    if token in _unwanted:
        raise LongtakeError("it was stopped before it had started")
    if token not in _recorders:
        recording = longtake.record(source, target, **options)
        _recorders[token] = (target, recording, recording.started() or {})
    return _look(token)


def _look(token: str) -> dict[str, Any]:
    target, recording, started = _recorders[token]
    told = {"state": "recording", "started": started}
    if recording.is_over:
        try:
            account = recording.wait()
            return told | {"state": "over", "account": account, "ledger": account["ledger"]}
        except LongtakeError as error:
            return told | {"state": "failed", "error": str(error), "ledger": None}
    status = recording.status()
    return told | {"status": status, "ledger": (status or {}).get("ledger")}


def _stop(token: str) -> None:
    if token in _recorders:
        _recorders[token][1].stop()
    else:
        _unwanted.add(token)


def _forget(token: str) -> None:
    if token in _recorders and _recorders[token][1].is_over:
        del _recorders[token]


def _registered() -> list[tuple[str, str, dict[str, Any]]]:
    return [(token, target, _look(token)) for token, (target, _, _) in list(_recorders.items())]


def _take(target: str, take: str) -> dict[str, Any]:
    return longtake.open(target).ledger(take)
