"""What runs on the hosts of a query: listing takes, and reading the packets of a slice of time."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import dask
import distributed
import pyarrow

import longtake

#: Recorded bytes that a slice holds at an even rate.
SLICE_BYTES = 64 << 20

#: A slice whose packets come to more bytes than this is divided.
RESULT_BYTES = 4 * SLICE_BYTES

#: Recorded bytes up to which slices are joined while few of their packets match.
JOINED_BYTES = 4 * SLICE_BYTES


@dataclass(frozen=True)
class Slice:
    """Packets of one take in a span of time."""

    host: str
    #: The host's address: a slice is read nowhere else.
    address: str
    array: str
    take: str
    #: Both ends are included, in nanoseconds since 1970.
    since: int
    until: int
    #: Recorded bytes that it holds at an even rate.
    recorded_bytes: int

    def joined(self, following: Slice) -> Slice:
        """This slice and the one that follows it in its take as one."""
        joined_bytes = self.recorded_bytes + following.recorded_bytes
        return replace(self, until=following.until, recorded_bytes=joined_bytes)

    def halves(self) -> list[Slice]:
        """The earlier and the later half."""
        middle = (self.since + self.until) // 2
        half_bytes = self.recorded_bytes // 2
        early = replace(self, until=middle, recorded_bytes=half_bytes)
        return [early, replace(self, since=middle + 1, recorded_bytes=self.recorded_bytes - half_bytes)]


@dataclass(frozen=True)
class Reading:
    """How slices are read."""

    filter: str
    community_ids: tuple[str, ...]
    payload: bool
    flow: bool
    degraded: bool


@dataclass(frozen=True)
class Answer:
    """What a host found in a slice.

    Dask copies a bare table before sending it. It pickles this object, and sends the table's buffers without a copy.
    """

    #: The packets in order of time.
    table: pyarrow.Table
    #: What was returned and could not be read.
    account: dict[str, Any]
    #: Time that reading took.
    seconds: float

    def __sizeof__(self) -> int:
        """Bytes for which Dask accounts while a worker holds it."""
        return self.table.nbytes


def own_arrays() -> list[str]:
    """The arrays that this worker's setting names: ``longtake.arrays`` of Dask's configuration, or LONGTAKE_ARRAYS, where ":" divides
    them."""
    named = dask.config.get("longtake.arrays", None)
    if named is None:
        named = os.environ.get("LONGTAKE_ARRAYS", "").split(os.pathsep)
    return [name for name in ([named] if isinstance(named, str) else named) if name]


@functools.lru_cache(maxsize=4)
def _opened(name: str, degraded: bool) -> longtake.Array:
    """An array. Its packets are found by its name each time, and what one look has found is not read again for the next slice."""
    return longtake.open(name, degraded=degraded)


def listed(arrays: list[str] | None, degraded: bool) -> dict[str, list[dict[str, Any]] | str]:
    """The takes of each array of this host, or why it could not be opened."""
    takes: dict[str, list[dict[str, Any]] | str] = {}
    for name in own_arrays() if arrays is None else arrays:
        try:
            takes[name] = longtake.open(name, degraded=degraded).takes()
        except longtake.LongtakeError as error:
            takes[name] = str(error)
    return takes


def slices(
    host: str, address: str, array: str, take: dict[str, Any], since: int | None, until: int | None
) -> Iterator[Slice]:
    """A take's slices within a span, the earliest first."""
    if not take["first_packet"] or not take["last_packet"]:
        return
    first, last = parsed(take["first_packet"]), parsed(take["last_packet"])
    recorded_bytes = take["on_media"]["bytes"]
    count = max(1, -(-recorded_bytes // SLICE_BYTES))
    width = (last - first) // count + 1
    for number in range(count):
        begin = max(first + number * width, since or 0)
        end = min(first + (number + 1) * width - 1, last, last if until is None else until)
        if begin <= end:
            of_slice = recorded_bytes * (end - begin + 1) // (last - first + 1)
            yield Slice(host, address, array, take["take"], begin, end, of_slice)


def parsed(text: str) -> int:
    """Nanoseconds since 1970 of a time in UTC with up to nine decimals."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    return int(datetime.fromisoformat(whole + "+00:00").timestamp()) * 10**9 + int(fraction.ljust(9, "0"))


def read(part: Slice, reading: Reading, limit: int | None) -> Answer | None:
    """A slice's packets. None if they come to more bytes than `limit`.

    :raises RuntimeError: on another host, where the array of this name would be another one.
    """
    _expect_host(part)
    begun = time.perf_counter()
    packets = _opened(part.array, reading.degraded).packets(
        since=part.since,
        until=part.until,
        filter=reading.filter,
        take=part.take,
        community_ids=reading.community_ids,
        payload=reading.payload,
        flow=reading.flow,
    )
    reader = pyarrow.RecordBatchReader.from_stream(packets)
    batches, size = [], 0
    for batch in reader:
        batches.append(batch)
        size += batch.nbytes
        if limit is not None and size > limit and part.since < part.until:
            return None
    table = pyarrow.Table.from_batches(batches, reader.schema)
    table = labelled(in_order(table), part.host, part.array)
    return Answer(table, packets.account, time.perf_counter() - begun)


def _expect_host(part: Slice) -> None:
    try:
        address = distributed.get_worker().address
    except ValueError:
        raise RuntimeError(f"{part.array} is on {part.host}: compute with the client of the cluster") from None
    host = distributed.comm.get_address_host(address)
    if host != part.address:
        raise RuntimeError(f"{part.array} is on {part.host}, and this is {host}: compute with the client that searched")


def in_order(table: pyarrow.Table) -> pyarrow.Table:
    """In order of time. Packets of one time stay as they are."""
    import pyarrow.compute

    times = table["time_ns"].cast(pyarrow.int64())
    steps = pyarrow.compute.pairwise_diff(times.combine_chunks()) if len(times) > 1 else None
    if steps is None or pyarrow.compute.min(steps).as_py() >= 0:
        return table
    return table.unify_dictionaries().sort_by("time_ns")


def labelled(table: pyarrow.Table, host: str, array: str) -> pyarrow.Table:
    """With the columns that say where the packets are from."""
    for at, name, value in ((0, "host", host), (1, "array", array)):
        table = table.add_column(at, pyarrow.field(name, NAMES, nullable=False), _constant(value, table.num_rows))
    return table


#: The type of columns with few different texts.
NAMES = pyarrow.dictionary(pyarrow.uint32(), pyarrow.string())


def _constant(value: str, count: int) -> pyarrow.DictionaryArray:
    indices = pyarrow.repeat(pyarrow.scalar(0, pyarrow.uint32()), count)
    return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array([value]))
