"""Reads or writes in one way, and prints how many packets or bytes a second.

    ways.py WAY PATH COUNT

PATH is an array, a file of the same packets, or a new folder or file to write. COUNT is the number of packets to read at most, or of blocks
of 1 MiB to write. `cargo xtask bench python` runs it.
"""

import itertools
import mmap
import os
import subprocess
import sys
import time


def longtake_arrow(path, count, flow=False):
    import longtake
    import pyarrow

    reader = pyarrow.RecordBatchReader.from_stream(longtake.open(path).packets(flow=flow))
    return sum(batch.num_rows for batch in reader)


def longtake_flow(path, count):
    return longtake_arrow(path, count, flow=True)


def longtake_payloads(path, count):
    import longtake
    import numpy

    return sum(part.nbytes for part in longtake.open(path).packets().payloads(numpy.uint8))


def fromfile(path, count):
    import numpy

    return numpy.fromfile(path, dtype=numpy.uint8).nbytes


def scapy(path, count):
    from scapy.all import PcapReader

    with PcapReader(path) as reader:
        return sum(1 for _ in itertools.islice(reader, count))


def dpkt(path, count):
    import dpkt

    with open(path, "rb") as file:
        packets = itertools.islice(dpkt.pcap.Reader(file), count)
        return sum(1 for _, data in packets if dpkt.ethernet.Ethernet(data))


def tshark(path, count):
    fields = ["-e", "frame.time_epoch", "-e", "frame.len", "-e", "ip.src", "-e", "ip.dst"]
    command = ["tshark", "-n", "-r", path, "-c", str(count), "-T", "fields", *fields]
    return subprocess.run(command, check=True, capture_output=True).stdout.count(b"\n")


BLOCK = 1 << 20


def produce(path, count):
    """One member file, as direct_write has one."""
    import longtake

    block = os.urandom(BLOCK)
    options = {"members": 1, "member_size": (count + 300) * BLOCK, "index": None}
    recording = longtake.record(None, path, **options)
    start = time.perf_counter()
    with recording:
        for _ in range(count):
            recording.write(block)
    account = recording.wait()
    assert account["ledger"]["stored"]["packets"] == count, account
    return count * BLOCK, time.perf_counter() - start


def direct_write(path, count):
    """Past the page cache, one block after the other, into a file whose space is allocated."""
    block = mmap.mmap(-1, BLOCK)
    block.write(os.urandom(BLOCK))
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    os.posix_fallocate(file, 0, count * BLOCK)
    start = time.perf_counter()
    for n in range(count):
        assert os.pwrite(file, block, n * BLOCK) == BLOCK
    os.fdatasync(file)
    return count * BLOCK, time.perf_counter() - start


WAYS = {
    "longtake": longtake_arrow,
    "longtake-flow": longtake_flow,
    "longtake-payloads": longtake_payloads,
    "fromfile": fromfile,
    "scapy": scapy,
    "dpkt": dpkt,
    "tshark": tshark,
    "produce": produce,
    "direct-write": direct_write,
}

if __name__ == "__main__":
    way, path, count = sys.argv[1:]
    if way in ("scapy", "dpkt"):
        # What is imported once is not part of reading.
        WAYS[way](path, 1)
    start = time.perf_counter()
    done = WAYS[way](path, int(count))
    # Whatever has to be made before it writes measures its own time.
    amount, seconds = done if isinstance(done, tuple) else (done, time.perf_counter() - start)
    print(amount / seconds)
