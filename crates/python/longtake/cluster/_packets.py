"""Packets of many hosts as one stream in order of time."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import distributed
import pyarrow
import pyarrow.compute

from .._array import Time
from .._longtake import LongtakeError
from . import _clocks, _hosts, _slices
from ._hosts import Call, Host, Missing
from ._slices import Reading, Slice

if TYPE_CHECKING:
    import dask.dataframe

#: Slices that are read ahead for each take that is being merged, the one that is waited for included.
AHEAD = 2

#: Joined slices must be expected to be read within the timeout divided by this: requests of a host wait for each other.
TIMEOUT_PARTS = 10

#: Packets in a batch at most, as in batches of one array.
BATCH_PACKETS = 65_536


def packets(
    client: distributed.Client,
    since: Time | None = None,
    until: Time | None = None,
    filter: str = "",
    *,
    hosts: Iterable[str] | None = None,
    arrays: Mapping[str, Iterable[str | os.PathLike[str]]] | None = None,
    community_ids: Iterable[str] = (),
    payload: bool = True,
    flow: bool = False,
    degraded: bool = False,
    timeout: float = _hosts.TIMEOUT_S,
) -> Found:
    """Searches the arrays of all hosts, each on its own host. Asks for takes and clocks at once; packets are read when they are iterated.

    :param since: time of the first packet. Times such as "-10m" are counted from this machine's clock.
    :param until: time of the last packet, which is included.
    :param filter: an expression in tcpdump's language.
    :param hosts: names or addresses of the hosts that are to answer; one that is not connected is reported as missing
        [default: those that are connected].
    :param arrays: arrays to search by host, instead of those that its workers' settings name. Also says which hosts are to answer.
    :param community_ids: only packets of these flows.
    :param payload: whether tables have the packets' bytes.
    :param flow: whether tables have addresses, ports, protocol and TCP flags of the innermost IP header.
    :param degraded: opens arrays even if members are missing.
    :param timeout: seconds that a host may take to answer each request. The host is then left out and reported.
    """
    _hosts.synchronous(client)
    if not isinstance(payload, bool):
        raise TypeError(f"payload: give True or False, not {payload!r}: views are not sent from host to host")
    reading = Reading(filter, tuple(community_ids), payload, flow, degraded)
    named = None if arrays is None else {host: [os.fspath(name) for name in of] for host, of in arrays.items()}
    wanted = hosts if named is None or hosts is not None else list(named)
    span = (_clocks.nanoseconds("since", since), _clocks.nanoseconds("until", until))
    if None not in span and span[0] > span[1]:
        raise ValueError(f"since: the span ends before it begins: {span[0]} lies after {span[1]}")
    return Found(client, wanted, named, span, reading, timeout)


class Found:
    """What a query has found. Iterating yields Arrow record batches in order of time over all hosts, as often as it is done.

    pyarrow, polars, duckdb and pandas take it as it is, as they take the packets of one array. Besides the columns of those there are
    ``host`` and ``array``.
    """

    def __init__(
        self,
        client: distributed.Client,
        wanted: Iterable[str] | None,
        arrays: dict[str, list[str]] | None,
        span: tuple[int | None, int | None],
        reading: Reading,
        timeout: float,
    ) -> None:
        self._client, self._reading, self._timeout = client, reading, timeout
        self._slices: dict[tuple[str, str, str], list[Slice]] = {}
        self._accounts: dict[str, dict[str, dict[str, Any]]] = {}
        self._lost: dict[str, Missing] = {}
        hosts, self._unasked = _hosts.chosen(client, wanted)
        self._hosts = {host.name: host for host in hosts}
        self._comparison = _clocks.Comparison(client, hosts, timeout)
        self._list(arrays, span)
        self._reset()

    def _list(self, arrays: dict[str, list[str]] | None, span: tuple[int | None, int | None]) -> None:
        """Asks every host for its takes."""
        calls = []
        for host in self._hosts.values():
            of_host = None if arrays is None else arrays.get(host.name, arrays.get(host.address, []))
            calls.append(Call(self._client, host, _slices.listed, of_host, self._reading.degraded, priority=5))
        _hosts.settle(self._client, calls, self._timeout)
        known: set[str] = set()
        for call in calls:
            if call.reason is not None:
                self._unasked.append(call.missing())
                continue
            name = call.host.name
            self._accounts[name] = {}
            if not call.value:
                text = "no array is named: set LONGTAKE_ARRAYS for its workers, or pass arrays="
                self._unasked.append(Missing(name, "failed", text))
            for array, takes in call.value.items():
                if isinstance(takes, str):
                    self._unasked.append(Missing(name, "failed", takes, array))
                else:
                    self._accounts[name][array] = _listed_account(takes, span)
                    self._divide(call.host, array, takes, span, known)

    def _divide(
        self,
        host: Host,
        array: str,
        takes: list[dict[str, Any]],
        span: tuple[int | None, int | None],
        known: set[str],
    ) -> None:
        for take in takes:
            # An array that two names lead to, or that two hosts share, is searched once.
            if take["take"] in known:
                self._accounts[host.name][array]["takes_searched_elsewhere"] += 1
                continue
            known.add(take["take"])
            if parts := list(_slices.slices(host.name, host.address, array, take, *span)):
                self._slices[host.name, array, take["take"]] = parts

    @property
    def hosts(self) -> list[str]:
        """The hosts that said which arrays they have."""
        return list(self._accounts)

    @property
    def clock(self) -> dict[str, Any]:
        """How far the hosts' clocks were from this machine's when the query began. Waits until the clocks are compared.

        ``hosts`` has ``offset_ns`` for each host, positive if its clock is ahead, and ``bound_ns``, by which the offset may be wrong.
        Packets of two hosts whose times differ by more than ``order_within_ns`` are in their true order, if the clocks were as far apart
        when they were recorded.
        """
        return self._comparison.of(self._accounts)

    @property
    def completeness(self) -> dict[str, Any]:
        """What the answer lacks. Once the packets were read, it also covers the reading.

        ``complete`` is whether every packet of the span was returned, which is not known if there is no host; ``read`` is whether all
        packets were read to the end. ``missing`` lists hosts and arrays that did not answer (:class:`Missing` as dictionaries), and
        ``arrays`` has what each array said, by host.
        Its counts are those of whole chunks, and a chunk at the edge of two requests counts twice.
        """
        missing = self._unasked + list(self._lost.values())
        of_arrays = [account["complete"] for arrays in self._accounts.values() for account in arrays.values()]
        return {
            "complete": self._is_read and bool(self._accounts) and not missing and all(of_arrays),
            "read": self._is_read,
            "missing": [each.values() for each in missing],
            "arrays": self._accounts,
        }

    def __iter__(self) -> Iterator[pyarrow.RecordBatch]:
        self._reset()
        merge = _Merge(self)
        try:
            yield from merge.batches()
        finally:
            merge.cancel()
        self._is_read = True

    @property
    def schema(self) -> pyarrow.Schema:
        """The columns, known without reading."""
        fields = [
            pyarrow.field("host", _slices.NAMES, nullable=False),
            pyarrow.field("array", _slices.NAMES, nullable=False),
            pyarrow.field("time_ns", pyarrow.timestamp("ns", tz="UTC"), nullable=False),
            pyarrow.field("interface", _slices.NAMES, nullable=False),
            pyarrow.field("link_type", pyarrow.uint32(), nullable=False),
            pyarrow.field("captured_length", pyarrow.uint32(), nullable=False),
            pyarrow.field("original_length", pyarrow.uint32(), nullable=False),
            pyarrow.field("chunk_sequence", pyarrow.uint64(), nullable=False),
        ]
        if self._reading.payload:
            fields.append(pyarrow.field("payload", pyarrow.large_binary(), nullable=False))
        if self._reading.flow:
            flow = {"source": "string", "destination": "string", "source_port": "uint16"}
            flow |= {"destination_port": "uint16", "protocol": "uint8", "tcp_flags": "uint16"}
            fields += [pyarrow.field(name, pyarrow.type_for_alias(kind)) for name, kind in flow.items()]
        return pyarrow.schema(fields)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        reader = pyarrow.RecordBatchReader.from_batches(self.schema, iter(self))
        return reader.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """All packets in one table, in this machine's memory."""
        return pyarrow.Table.from_batches(iter(self), self.schema)

    def to_dask(self) -> dask.dataframe.DataFrame:
        """The packets as a frame of Dask, whose partitions are read on the hosts that have them.

        A partition holds packets of one take in order of time, of about 64 MiB at an even rate. Partitions of different hosts and takes
        are not merged. Hosts that did not list their arrays are left out: see ``completeness``.
        """
        from ._frame import frame

        parts = [part for of_take in self._slices.values() for part in of_take]
        return frame(self._client, parts, self._reading, self.schema)

    def __repr__(self) -> str:
        lacking = "".join(f", without {each}" for each in self._unasked + list(self._lost.values()))
        return f"<longtake.cluster.Found: {len(self._accounts)} hosts{lacking}>"

    def _reset(self) -> None:
        self._lost, self._is_read = {}, False
        for arrays in self._accounts.values():
            for account in arrays.values():
                account.update(complete=account["listed_whole"], packets=0, unreadable=_nothing(), overtaken=_nothing())

    def _enter(self, part: Slice, account: dict[str, Any]) -> None:
        """Adds the account of a slice to its array's."""
        entered, found = self._accounts[part.host][part.array], account["completeness"]
        entered["packets"] += account["packets"]
        entered["complete"] &= found["complete"]
        for name in ("unreadable", "overtaken"):
            for unit, count in found[name].items():
                entered[name][unit] += count

    def _lose(self, part: Slice, call: Call) -> None:
        """Enters that a slice could not be read: its array is missing if it failed, and else its host."""
        of_array = call.reason == "failed"
        lost = call.missing(part.array if of_array else None, part.since)
        self._lost.setdefault(f"{part.host}\n{part.array}" if of_array else part.host, lost)

    def _raise_if_all_failed(self, calls: list[Call]) -> None:
        """A filter that can't be compiled fails everywhere: that is the caller's mistake, and not the hosts'."""
        texts = {call.text if call.reason == "failed" else None for call in calls}
        if len(texts) == 1 and None not in texts and calls[0].error is not None:
            raise LongtakeError(calls[0].text) from calls[0].error

    def _is_lost(self, key: tuple[str, str, str]) -> bool:
        return key[0] in self._lost or f"{key[0]}\n{key[1]}" in self._lost


def _listed_account(takes: list[dict[str, Any]], span: tuple[int | None, int | None]) -> dict[str, Any]:
    """What the listing says about an array's part of the answer."""
    since, until = span
    missing, complete = _nothing(), True
    for take in takes:
        begun = _slices.parsed(take["started"])
        last = _slices.parsed(take["last_packet"]) if take["last_packet"] else begun
        if (until is not None and until < begun) or (since is not None and since > last):
            continue
        for unit in missing:
            missing[unit] += take["missing"][unit]
        first = _slices.parsed(take["first_packet"]) if take["first_packet"] else last
        # A span that was asked for reaches into what the ring has overwritten.
        is_cut = span != (None, None) and take["overwritten"]["packets"] > 0 and (since is None or since < first)
        complete = complete and not is_cut and not take["missing"]["packets"]
    return {"takes": len(takes), "takes_searched_elsewhere": 0, "missing": missing, "listed_whole": complete}


def _nothing() -> dict[str, int]:
    return {"packets": 0, "bytes": 0}


class _Stream:
    """A take that is being merged: slices that were not asked for yet, requests under way, and packets not handed out yet."""

    def __init__(self, key: tuple[str, str, str], slices: list[Slice]) -> None:
        self.key = key
        self.slices = deque(slices)
        self.calls: deque[tuple[Slice, Call]] = deque()
        self.table: pyarrow.Table | None = None

    @property
    def next_ns(self) -> int | None:
        """No packet that was not read yet is earlier; None if all were read."""
        waiting = self.calls[0][0] if self.calls else self.slices[0] if self.slices else None
        return None if waiting is None else waiting.since

    @property
    def begins_ns(self) -> int | None:
        """No packet that was not handed out yet is earlier; None if there are none."""
        return self.next_ns if self.table is None else self.table["time_ns"][0].value

    def cut(self, until: int) -> pyarrow.Table | None:
        """Takes out the packets until a time, which is included."""
        if self.table is None:
            return None
        times = self.table["time_ns"].cast(pyarrow.int64())
        count = pyarrow.compute.sum(pyarrow.compute.less_equal(times, until)).as_py()
        early, rest = self.table.slice(0, count), self.table.slice(count)
        self.table = rest if rest.num_rows else None
        return early if count else None


class _Costs:
    """What each recorded byte of a slice is expected to cost: as much as those of the most costly slice until now."""

    def __init__(self, timeout: float) -> None:
        self._seconds_max = timeout / TIMEOUT_PARTS
        #: None until an answer is known.
        self._answer_bytes: float | None = None
        self._seconds = 0.0

    def learn(self, part: Slice, answer_bytes: int, seconds: float = 0.0) -> None:
        """Takes account of an answer, and of the time that reading it took."""
        recorded_bytes = max(1, part.recorded_bytes)
        self._answer_bytes = max(self._answer_bytes or 0.0, answer_bytes / recorded_bytes)
        self._seconds = max(self._seconds, seconds / recorded_bytes)

    def allow(self, joined: Slice) -> bool:
        """Whether slices may be joined to this one: its answer must not exceed a slice, and must come in time."""
        return (
            self._answer_bytes is not None
            and joined.recorded_bytes <= _slices.JOINED_BYTES
            and joined.recorded_bytes * self._answer_bytes <= _slices.SLICE_BYTES
            and joined.recorded_bytes * self._seconds <= self._seconds_max
        )


class _Merge:
    """One pass over the slices of all takes. Memory holds a few slices of each take whose time it is."""

    def __init__(self, found: Found) -> None:
        self._found = found
        self._streams = [_Stream(key, parts) for key, parts in found._slices.items()]
        self._has_read = False
        self._costs = _Costs(found._timeout)

    def cancel(self) -> None:
        """Gives up requests under way."""
        for stream in self._streams:
            for _, call in stream.calls:
                call.cancel()
            stream.calls.clear()

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Batches in order of time."""
        schema = self._found.schema
        while self._streams:
            self._read()
            # Until here every take that has begun was read.
            unread = [stream.next_ns for stream in self._streams if stream.next_ns is not None]
            until = min(unread) - 1 if unread else (1 << 63) - 1
            parts = [part for stream in self._streams if (part := stream.cut(until)) is not None]
            self._streams = [stream for stream in self._streams if stream.begins_ns is not None]
            if parts:
                yield from _merged(parts, schema)

    def _read(self) -> None:
        """Reads at least the earliest slice that was not read yet, and what overlaps it."""
        begun = [stream for stream in self._streams if stream.next_ns is not None]
        if not begun:
            return
        earliest = min(begun, key=lambda stream: stream.next_ns)
        until = earliest.calls[0][0].until if earliest.calls else earliest.slices[0].until
        due = [stream for stream in begun if stream.next_ns <= until and stream.table is None]
        if earliest not in due:
            due.append(earliest)
        for stream in due + self._next_of_each_host(begun):
            self._ask(stream)
        _hosts.settle(self._found._client, [stream.calls[0][1] for stream in due], self._found._timeout)
        if not self._has_read:
            self._found._raise_if_all_failed([stream.calls[0][1] for stream in due])
            self._has_read = True
        for stream in due:
            self._take(stream, *stream.calls.popleft())
        for stream in [stream for stream in self._streams if self._found._is_lost(stream.key)]:
            # What it has read is still handed out.
            for _, call in stream.calls:
                call.cancel()
            stream.calls.clear()
            stream.slices.clear()

    @staticmethod
    def _next_of_each_host(begun: list[_Stream]) -> list[_Stream]:
        """The take of each host that is due next. Hosts whose takes come later read meanwhile, and keep it."""
        of_hosts: dict[str, _Stream] = {}
        for stream in sorted(begun, key=lambda stream: stream.next_ns):
            of_hosts.setdefault(stream.key[0], stream)
        return list(of_hosts.values())

    def _ask(self, stream: _Stream) -> None:
        while stream.slices and len(stream.calls) < AHEAD:
            part = self._next_part(stream)
            stream.calls.append((part, self._call(part)))

    def _next_part(self, stream: _Stream) -> Slice:
        """The next slice. Those that follow are joined to it while few packets match, since each request takes time."""
        part = stream.slices.popleft()
        while stream.slices and self._costs.allow(joined := part.joined(stream.slices[0])):
            stream.slices.popleft()
            part = joined
        return part

    def _call(self, part: Slice) -> Call:
        host, reading = self._found._hosts[part.host], self._found._reading
        return Call(self._found._client, host, _slices.read, part, reading, _slices.RESULT_BYTES)

    def _take(self, stream: _Stream, part: Slice, call: Call) -> None:
        """Takes over what came of a request."""
        if call.reason is not None:
            self._found._lose(part, call)
        elif call.value is None:
            # Too many packets for one answer.
            self._costs.learn(part, _slices.RESULT_BYTES)
            for half in reversed(part.halves()):
                stream.calls.appendleft((half, self._call(half)))
        else:
            table = call.value.table
            self._found._enter(part, call.value.account)
            self._costs.learn(part, table.nbytes, call.value.seconds)
            if table.num_rows:
                stream.table = table if stream.table is None else pyarrow.concat_tables([stream.table, table])


def _merged(parts: list[pyarrow.Table], schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
    table = parts[0]
    if len(parts) > 1:
        table = pyarrow.concat_tables(parts).unify_dictionaries().sort_by("time_ns")
    for batch in table.to_batches(max_chunksize=BATCH_PACKETS):
        yield pyarrow.RecordBatch.from_arrays(batch.columns, schema=schema)
