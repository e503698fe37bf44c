"""Recordings."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
import weakref
from collections.abc import Iterator
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any

from . import _longtake

if TYPE_CHECKING:
    from collections.abc import Buffer

#: How often a waiting call looks whether the recording is over. It also lets Ctrl-C through.
_LOOK_S = 0.05

#: The numbers of pcap's list, LINKTYPE_USER0, LINKTYPE_ETHERNET and LINKTYPE_RAW.
_LINK_TYPES = {"raw": 147, "ethernet": 1, "ip": 101}

_under_way: weakref.WeakSet[Recording] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    """Ends the takes of a program that ends."""
    under_way = list(_under_way)
    for recording in under_way:
        recording.stop()
    for recording in under_way:
        # One that has failed must not keep the others from ending.
        with contextlib.suppress(_longtake.LongtakeError):
            recording.wait()


def record(
    source: str | None,
    target: str | os.PathLike[str],
    *,
    link_type: str | int = "raw",
    duration: float | timedelta | str | None = None,
    until_bytes: int | str | None = None,
    **options: Any,
) -> Recording:
    """Starts to record, and returns once the recording has started.

    :param source: an interface, ``udp:ADDR:PORT``, ``synthetic:1GB/s``, a capture file, as for ``longtake record --from``. None for what
        this program writes (:meth:`Recording.write`).
    :param target: an array, or a directory that gets member files.
    :param link_type: what this program writes: "raw" blocks, "ethernet" frames, "ip" packets, or a number of pcap's list of link types.
    :param duration: stops after this time.
    :param until_bytes: stops after so many bytes of packets.
    :param options: filter, snap_length, slice, cut, when_full ("stop" or "wrap"), memory, kernel_buffer, index ("flows", "hosts" or
        None), placement ("adaptive" or "stripe"), depth, flush_interval, trim_ahead, and for a new array members, member_size, segment,
        chunk, parity. They mean what the options of ``longtake record`` mean.
    :raises LongtakeError: if it can't start. Then nothing is left behind.
    :raises TypeError: if there is no option of this name.
    """
    named = {"duration": duration, "until_bytes": until_bytes}
    given = {name: value for name, value in named.items() if value is not None}
    number = link_type if isinstance(link_type, int) else _LINK_TYPES.get(link_type)
    if number is None:
        raise ValueError(f"link_type: give a number or one of {', '.join(_LINK_TYPES)}, not {link_type!r}")
    return Recording(_longtake.record(source, os.fspath(target), given | options, number))


class Recording:
    """A recording under way. As a context manager, it is stopped and waited for at the end of the block."""

    def __init__(self, recording: _longtake.Recording) -> None:
        self._recording = recording
        _under_way.add(self)

    def __enter__(self) -> Recording:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        # What failed is told once.
        if not isinstance(error, _longtake.LongtakeError):
            self.wait()

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._recording.is_over()

    def started(self) -> dict[str, Any] | None:
        """The take and the array; None once it was waited for."""
        return self._recording.started()

    def status(self) -> dict[str, Any] | None:
        """Its ledger, buffers and members, at most a tenth of a second old; None once it was waited for."""
        return self._recording.status()

    def events(self) -> Iterator[dict[str, Any]]:
        """What happens, as it happens, until the recording is over.

        ``event`` says what it is: "losing", "silent", "resumed", "link_down", "link_up", "member_failed", "trim_failed", "array_full",
        "parity_reduced" or "no_member_left", as in the lines of ``longtake record --json``, or a "note" or "warning" at the start.
        ``text`` says it in words, and ``after_s`` how many seconds after the start, which notes and warnings don't have. Packets that are
        truncated and segments that a ring reuses are counted in :meth:`status`.

        What was not taken when a loop ended comes with the next one. Of several loops at the same time, each event goes to one.
        """
        while True:
            # Asked first, so that what happens at the end comes too.
            is_over = self.is_over
            while (event := self._recording.next_event()) is not None:
                yield event
            if is_over:
                return
            time.sleep(_LOOK_S)

    def write(self, data: Buffer, time_ns: int | None = None) -> None:
        """Writes a packet, or a block of samples, if the source is None. It is copied into the current chunk.

        While all buffers are full, this waits for the drives. What is longer than a chunk (4 MiB, less some bytes) is truncated, which
        the ledger counts. Bytes are copied once; what is in another kind of buffer, such as a NumPy array, twice.

        :param time_ns: when it was captured, in nanoseconds since 1970 [default: now].
        :raises LongtakeError: if the recording is over.
        """
        block = data if isinstance(data, bytes) else bytes(memoryview(data))
        self._recording.write(block, time_ns)

    def stop(self) -> None:
        """Asks it to end. What it has taken in is still written."""
        self._recording.stop()

    def wait(self) -> dict[str, Any]:
        """Waits until it is over, and returns its account: the ledger, the rate, why it ended.

        :raises LongtakeError: if all drives failed.
        """
        while (account := self._recording.account()) is None:
            time.sleep(_LOOK_S)
        return account
