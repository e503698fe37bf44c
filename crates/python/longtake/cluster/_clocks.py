"""How far the hosts' clocks are from this machine's, bounded by round trips; and times as all hosts are to understand them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import re
import time
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

import distributed

from ._hosts import Host

#: Round trips to each host. The best ones make the bound.
ROUNDS = 5

_EPOCH = datetime.fromtimestamp(0, timezone.utc)
_UNITS_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "sec": 10**9, "m": 60 * 10**9}
_UNITS_NS |= {"min": 60 * 10**9, "h": 3600 * 10**9, "d": 86_400 * 10**9, "w": 7 * 86_400 * 10**9}


def nanoseconds(name: str, when: int | datetime | str | None) -> int | None:
    """Nanoseconds since 1970. "-10m" counts from this machine's clock, so that all hosts search the same span."""
    if when is None or isinstance(when, int):
        return when
    if isinstance(when, datetime):
        if when.tzinfo is None:
            raise ValueError(f"{name}: the datetime has no time zone: give it one, for example timezone.utc")
        return (when - _EPOCH) // timedelta(microseconds=1) * 1000
    if not isinstance(when, str):
        raise TypeError(f"{name}: expected nanoseconds, a datetime or a text such as '-10m', not {when!r}")
    text = when.strip()
    if text == "now":
        return time.time_ns()
    if text.startswith("-") and re.fullmatch(r"(\s*\d+(\.\d+)?\s*[a-zµ]+)+\s*", text[1:]):
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*([a-zµ]+)", text)
        if all(unit in _UNITS_NS for _, unit in parts):
            return time.time_ns() - sum(int(float(number) * _UNITS_NS[unit]) for number, unit in parts)
    if match := re.fullmatch(r"(\d+)(?:\.(\d{1,9}))?", text):
        return int(match[1]) * 10**9 + int((match[2] or "").ljust(9, "0"))
    # A datetime holds no nanoseconds, so that the fraction is read by itself.
    if match := re.fullmatch(r"([^.]+)\.(\d{1,9})(.*)", text):
        text, fraction = match[1] + match[3], int(match[2].ljust(9, "0"))
    else:
        fraction = 0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name}: '{when}' is no time: give 2026-11-21T10:00:00Z, '-10m' or nanoseconds since 1970") from None
    return (moment.astimezone() - _EPOCH) // timedelta(seconds=1) * 10**9 + fraction


class Comparison:
    """Compares clocks while the query goes on.

    A host reads its clock between two readings of this machine's. It is ahead by at most its own reading less the first, and by at
    least its own less the second. The bounds of several round trips are intersected.
    """

    def __init__(self, client: distributed.Client, hosts: Iterable[Host], timeout: float) -> None:
        """Begins. What is asked does not wait for tasks of the hosts' workers, which would make the bounds wider."""
        self._within: dict[str, tuple[int, int]] = {}
        self._compared_ns = time.time_ns()
        self._deadline = time.monotonic() + timeout
        loop = client.loop.asyncio_loop
        self._under_way = [
            asyncio.run_coroutine_threadsafe(self._compare(client, host), loop) for host in hosts if host.workers
        ]

    async def _compare(self, client: distributed.Client, host: Host) -> None:
        for _ in range(ROUNDS):
            begun_ns = time.time_ns()
            [host_ns] = (await client.run(time.time_ns, workers=host.workers[:1])).values()
            ended_ns = time.time_ns()
            bounds = (host_ns - ended_ns, host_ns - begun_ns)
            self._within[host.name] = _intersected(self._within.get(host.name), bounds)
            self._compared_ns = ended_ns

    def of(self, names: Iterable[str]) -> dict[str, Any]:
        """Bounds of these hosts' clocks. Waits for them, but not for one that does not answer in time or was lost."""
        concurrent.futures.wait(self._under_way, max(0, self._deadline - time.monotonic()))
        for comparing in self._under_way:
            comparing.cancel()
        within = {name: self._within[name] for name in names if name in self._within}
        ahead = {
            name: {"offset_ns": (low + high) // 2, "bound_ns": (high - low + 1) // 2}
            for name, (low, high) in within.items()
        }
        apart = [
            max(abs(one[1] - other[0]), abs(other[1] - one[0]))
            for name, one in within.items()
            for against, other in within.items()
            if name != against
        ]
        return {"hosts": ahead, "order_within_ns": max(apart, default=0), "compared_ns": self._compared_ns}


def _intersected(known: tuple[int, int] | None, bounds: tuple[int, int]) -> tuple[int, int]:
    if known is None:
        return bounds
    both = (max(known[0], bounds[0]), min(known[1], bounds[1]))
    # A clock that was set in between has moved: both bounds are true, at different times.
    return both if both[0] <= both[1] else (min(known[0], bounds[0]), max(known[1], bounds[1]))
