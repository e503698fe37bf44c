"""Reads packets of an array, or of the same packets as a file, and prints how many a second.

    reading.py WAY PATH COUNT

The ways are longtake and longtake-flow (Arrow), longtake-payloads (NumPy), scapy, dpkt, tshark, fromfile. COUNT is the number of packets to read
at most; fromfile and longtake-payloads read everything and print bytes a second. `cargo xtask bench python` runs it.
"""

import itertools
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


WAYS = {
    "longtake": longtake_arrow,
    "longtake-flow": longtake_flow,
    "longtake-payloads": longtake_payloads,
    "fromfile": fromfile,
    "scapy": scapy,
    "dpkt": dpkt,
    "tshark": tshark,
}

if __name__ == "__main__":
    way, path, count = sys.argv[1:]
    # What is imported once is not part of reading.
    WAYS[way](path, 1) if way in ("scapy", "dpkt") else None
    start = time.perf_counter()
    read = WAYS[way](path, int(count))
    print(read / (time.perf_counter() - start))
