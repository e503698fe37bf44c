"""Arrays: what was recorded, and what became of it."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from . import _longtake
from ._packets import Packets

#: Nanoseconds since 1970, a datetime with a time zone, or a text such as "-10m".
Time = int | datetime | str


def open(name: str | os.PathLike[str], *, degraded: bool = False) -> Array:
    """Opens an array for reading.

    :param name: a directory of member files, drives with commas between them, or the name or UUID of an array.
    :param degraded: opens it even if members are missing. Parity recovers what they held, as far as there is any.
    :raises LongtakeError: if there is no such array, or a member is missing.
    """
    return Array(_longtake.open(os.fspath(name), degraded))


class Array:
    """An array that was opened for reading. Each call sees the array as it is then, also during a recording."""

    def __init__(self, opened: _longtake.Array) -> None:
        self._opened = opened

    def describe(self) -> dict[str, Any]:
        """Members, takes and protected spans, as ``longtake array info --json`` prints them."""
        return self._opened.describe()

    def takes(self) -> list[dict[str, Any]]:
        """The takes with their ledgers, the oldest first, as ``longtake takes --json`` lists them."""
        return self._opened.takes()

    def ledger(self, take: str = "last") -> dict[str, Any]:
        """A take's ledger: offered = stored + filtered + each kind of loss.

        :param take: a take's UUID, the beginning of it, or "last".
        """
        return self._opened.ledger(take)

    def gaps(self, take: str | None = None) -> list[dict[str, Any]]:
        """What is missing between the packets of each take: the chunks by number, how much they held, and the span of time.

        :param take: a take's UUID, the beginning of it, or "last". None for all.
        """
        takes = self.takes() if take is None else [self.ledger(take)]
        return [{"take": each["take"]} | gap for each in takes for gap in each["gaps"]]

    def flows(
        self,
        *,
        since: Time | None = None,
        until: Time | None = None,
        filter: str = "",
        take: str | None = None,
        community_ids: Iterable[str] = (),
        group: str = "flows",
        by: str = "bytes",
        top: int | None = None,
    ) -> dict[str, Any]:
        """Counts packets by flow, host or port, as ``longtake flows --json`` does.

        :param group: "flows", "hosts" or "ports": also the key under which the rows are.
        :param by: sorts by "bytes" or "packets".
        :param top: only so many rows.
        """
        chosen = _chosen(since, until, filter, take, community_ids)
        return self._opened.flows(chosen, group, by, top)

    def packets(
        self,
        *,
        since: Time | None = None,
        until: Time | None = None,
        filter: str = "",
        take: str | None = None,
        community_ids: Iterable[str] = (),
        payload: bool | Literal["view"] = True,
        flow: bool = False,
        batch_size: int = 65_536,
    ) -> Packets:
        """Packets in order of time within a take. Nothing is read before they are iterated or converted.

        :param since: time of the first packet.
        :param until: time of the last packet, which is included.
        :param filter: an expression in tcpdump's language.
        :param take: a take's UUID, the beginning of it, or "last".
        :param community_ids: only packets of these flows.
        :param payload: whether Arrow tables have the packets' bytes: as large binary values, or with "view" as views of one buffer.
        :param flow: whether Arrow tables have addresses, ports, protocol and TCP flags of the innermost IP header.
        :param batch_size: packets of a batch at most, 1 to 65,536. A batch ends after 8 MiB of packets, too.
        """
        chosen = _chosen(since, until, filter, take, community_ids)
        written = functools.partial(self._opened.extract_to, chosen)
        return Packets(self._opened.packets(chosen, payload, flow, batch_size), written)

    def extract_to(
        self,
        path: str | os.PathLike[str],
        *,
        since: Time | None = None,
        until: Time | None = None,
        filter: str = "",
        take: str | None = None,
        community_ids: Iterable[str] = (),
        flow: bool = False,
        overwrite: bool = False,
    ) -> dict[str, Any]:
        """Writes packets to a file, whose extension selects the format, as ``longtake extract -o`` does.

        :param flow: whether tables have the columns of ``packets(flow=True)`` as well.
        :param overwrite: whether a file that is there is replaced.
        :returns: what was written, and what could not be read.
        """
        chosen = _chosen(since, until, filter, take, community_ids)
        return self._opened.extract_to(chosen, os.fspath(path), None, flow, overwrite)


def _chosen(
    since: Time | None,
    until: Time | None,
    filter: str,
    take: str | None,
    community_ids: Iterable[str],
) -> dict[str, Any]:
    return {
        "since": since,
        "until": until,
        "filter": filter,
        "take": take,
        "community_ids": list(community_ids),
    }
