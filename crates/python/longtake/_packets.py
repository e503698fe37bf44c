"""Packets of an array: as Arrow streams, as NumPy arrays, or one by one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import _longtake

if TYPE_CHECKING:
    import numpy


class Packets:
    """Selected packets, read as often as they are iterated or converted.

    pyarrow, polars, duckdb and pandas take them as they are: ``pyarrow.table(packets)``, ``polars.DataFrame(packets)``. They are read
    in batches, a few of them ahead, so that memory stays small however many there are.
    """

    def __init__(self, packets: _longtake.Packets, written: Callable[..., dict[str, Any]]) -> None:
        self._packets, self._written = packets, written

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._packets.__arrow_c_stream__(requested_schema)

    @property
    def account(self) -> dict[str, Any] | None:
        """What the last complete reading returned and could not read, as ``longtake extract --json`` prints it."""
        return self._packets.account

    def to_pcapng(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> dict[str, Any]:
        """Writes the packets to a pcapng file, as :meth:`Array.extract_to` writes any format. It
        is one whatever its name is, but compressed if that ends in .gz or .zst.

        :param overwrite: whether a file that is there is replaced.
        :returns: what was written, and what could not be read.
        """
        return self._written(os.fspath(path), "pcapng", False, overwrite)

    def raw(self, *, payload: bool = False) -> Iterator[tuple[int, memoryview]]:
        """Each packet's time in nanoseconds, and its bytes from the link layer on.

        :param payload: leaves out the IP and UDP headers that Longtake made for packets of a UDP source.
        """
        for times, ends, data in self._packets.batches(payload):
            view, start = memoryview(data), 0
            for time, end in zip(memoryview(times).cast("Q"), memoryview(ends).cast("Q")):
                yield time, view[start:end]
                start = end

    def payloads(
        self, dtype: numpy.typing.DTypeLike, shape: tuple[int, ...] | None = None
    ) -> Iterator[numpy.ndarray]:
        """Payloads as NumPy arrays: many packets at a time, of which each has the same shape.

        The arrays are views of one buffer for each batch: (packets, *shape), or (packets,) for a structured dtype that fills a packet.
        IP and UDP headers that Longtake made for packets of a UDP source are left out.

        :param dtype: of the elements.
        :param shape: of a packet; None for as many elements as the first packet has.
        :raises ValueError: if a packet has another length.
        """
        import numpy

        dtype = numpy.dtype(dtype)
        for _, ends, data in self._packets.batches(True):
            ends = numpy.frombuffer(ends, dtype=numpy.uint64)
            if shape is None:
                count, rest = divmod(int(ends[0]), dtype.itemsize)
                if rest or not count:
                    raise ValueError(f"a packet of {int(ends[0])} bytes is not made of {dtype}")
                shape = () if count == 1 else (count,)
            length = dtype.itemsize * int(numpy.prod(shape, dtype=numpy.int64))
            lengths = numpy.diff(ends, prepend=numpy.uint64(0))
            if (lengths != length).any():
                at = int((lengths != length).argmax())
                raise ValueError(
                    f"a packet has {int(lengths[at])} bytes, and not {length}: select packets of one length, or use raw()"
                )
            yield numpy.frombuffer(data, dtype=dtype).reshape((len(ends), *shape))
