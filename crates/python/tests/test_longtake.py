"""The Python package on real recordings: onto member files, from synthetic sources and UDP."""

import concurrent.futures
import contextlib
import datetime
import gc
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import duckdb
import numpy
import pandas
import polars
import pyarrow
import pyarrow.ipc

import longtake

SMALL = {"members": 2, "member_size": "64MiB", "segment": "8MiB", "chunk": "1MiB", "memory": "32MiB"}
LARGE = SMALL | {"member_size": "512MiB"}

#: Seconds that nothing here takes, however slow the machine is.
LONG_S = 120


class Recorded(unittest.TestCase):
    """An array with one take of 20,000,000 bytes of traffic."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "array")
        with longtake.record("traffic:max,seed=7", cls.path, until_bytes=20_000_000, **SMALL) as recording:
            cls.account = recording.wait()
        cls.array = longtake.open(cls.path)
        cls.stored = cls.account["ledger"]["stored"]["packets"]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_ledger_is_the_recordings(self):
        self.assertGreater(self.stored, 10_000)
        take = self.array.ledger()
        self.assertEqual(take["ledger"]["stored"], self.account["ledger"]["stored"])
        self.assertEqual([take["take"] for take in self.array.takes()], [self.account["take"]])
        self.assertEqual(len(self.array.describe()["members"]), 2)

    def test_arrow_libraries_count_the_packets_that_were_stored_and_that_tshark_counts(self):
        packets = self.array.packets(flow=True)
        table = pyarrow.table(packets)
        self.assertEqual(table.num_rows, self.stored)
        self.assertEqual(packets.account["packets"], self.stored)
        self.assertEqual(packets.account["missing"]["packets"], 0)
        self.assertEqual(polars.DataFrame(self.array.packets()).height, self.stored)
        self.assertEqual(len(pandas.DataFrame.from_arrow(packets)) if hasattr(pandas.DataFrame, "from_arrow")
                         else len(table.to_pandas()), self.stored)
        reader = pyarrow.RecordBatchReader.from_stream(packets)
        row = duckdb.sql("select count(*), sum(original_length), min(time_ns) <= max(time_ns) from reader").fetchall()[0]
        bytes_stored = self.account["ledger"]["stored"]["bytes"]
        self.assertEqual(row, (self.stored, bytes_stored, True))
        capture = os.path.join(self.folder.name, "all.pcapng")
        self.array.packets().to_pcapng(capture)
        tshark = ["tshark", "-n", "-r", capture, "-T", "fields", "-e", "frame.number"]
        numbers = subprocess.run(tshark, check=True, capture_output=True).stdout.split()
        self.assertEqual(len(numbers), self.stored)

    def test_an_arrow_file_has_the_columns_of_the_packets(self):
        path = os.path.join(self.folder.name, "packets.arrow")
        written = self.array.extract_to(path, flow=True)
        self.assertEqual(written["packets"], self.stored)
        table = pyarrow.table(self.array.packets(flow=True))
        with pyarrow.ipc.open_file(path) as file:
            self.assertGreater(file.num_record_batches, 1)
            self.assertIn(b"extracted from array", file.schema.metadata[b"comment"])
            read = file.read_all()
        self.assertEqual(read.column_names, table.column_names)
        for name in read.column_names:
            self.assertTrue(read[name].equals(table[name].cast(read.schema.field(name).type)), name)
        self.assertEqual(polars.read_ipc(path)["payload"].to_list(), table["payload"].to_pylist())
        self.assertEqual(len(pandas.read_feather(path)), self.stored)
        with self.assertRaisesRegex(ValueError, "pcapng has no columns"):
            self.array.extract_to(os.path.join(self.folder.name, "packets.pcapng"), flow=True)
        self.array.extract_to(path, filter="port 1 and port 2", flow=True, overwrite=True)
        with pyarrow.ipc.open_file(path) as file:
            self.assertEqual((file.read_all().num_rows, file.schema.names), (0, table.column_names))

    def test_columns_say_what_the_packets_say(self):
        table = pyarrow.table(self.array.packets(flow=True, filter="ip and udp"))
        self.assertGreater(table.num_rows, 100)
        plain = 0
        for row in table.slice(0, 2000).to_pylist():
            data = row["payload"]
            self.assertEqual(len(data), row["captured_length"])
            self.assertEqual(row["interface"], "traffic0")
            fragmented = struct.unpack(">H", data[20:22])[0] & 0x3fff
            ports = struct.unpack(">HH", data[34:38]) if data[14] == 0x45 and not fragmented else None
            # Tunnels have other addresses inside.
            if ports and ports[1] not in (4789, 2152) and ports[0] not in (4789, 2152):
                plain += 1
                self.assertEqual(row["source"], ".".join(map(str, data[26:30])))
                self.assertEqual(row["destination"], ".".join(map(str, data[30:34])))
                self.assertEqual((row["source_port"], row["destination_port"], row["protocol"]), (*ports, 17))
        self.assertGreater(plain, 50)

    def test_flags_of_tcp_are_those_of_the_header(self):
        table = pyarrow.table(self.array.packets(flow=True, filter="ip and tcp and ip[6:2] & 0x1fff = 0"))
        seen = set()
        for row in table.slice(0, 2000).to_pylist():
            tcp = 14 + (row["payload"][14] & 15) * 4
            flags = struct.unpack(">H", row["payload"][tcp + 12:tcp + 14])[0] & 0xfff
            self.assertEqual(row["tcp_flags"], flags)
            seen.add(flags)
        self.assertGreater(len(seen), 2)
        other = pyarrow.table(self.array.packets(flow=True, filter="udp and not port 4789 and not port 2152"))
        self.assertEqual(other["tcp_flags"].null_count, other.num_rows)

    def test_chunks_are_numbered_in_the_order_of_their_packets(self):
        table = pyarrow.table(self.array.packets())
        numbers = table["chunk_sequence"].to_numpy()
        self.assertGreater(len(set(numbers)), 10)
        self.assertTrue((numpy.diff(numbers.astype(numpy.int64)) >= 0).all())

    def test_bytes_come_as_views_on_request(self):
        views = pyarrow.table(self.array.packets(payload="view"))
        self.assertEqual(views.schema.field("payload").type, pyarrow.binary_view())
        views.validate(full=True)
        payloads = pyarrow.table(self.array.packets())["payload"].to_pylist()
        self.assertEqual(views["payload"].to_pylist(), payloads)
        self.assertEqual(polars.DataFrame(self.array.packets(payload="view"))["payload"].to_list(), payloads)
        reader = pyarrow.RecordBatchReader.from_stream(self.array.packets(payload="view"))
        self.assertEqual(duckdb.sql("select sum(octet_length(payload)) from reader").fetchall()[0][0], sum(map(len, payloads)))
        with self.assertRaisesRegex(ValueError, "True, False or 'view'"):
            self.array.packets(payload="views")

    def test_selected_packets_become_a_pcapng_file(self):
        path = os.path.join(self.folder.name, "to.pcapng")
        other = os.path.join(self.folder.name, "extracted.pcapng")
        packets = self.array.packets(filter="udp")
        written = packets.to_pcapng(path)
        self.assertEqual(written["packets"], self.array.extract_to(other, filter="udp")["packets"])
        self.assertEqual(pathlib.Path(path).read_bytes(), pathlib.Path(other).read_bytes())
        with self.assertRaisesRegex(FileExistsError, "overwrite=True"):
            packets.to_pcapng(path)
        # Whatever its name is.
        packets.to_pcapng(os.path.join(self.folder.name, "capture.dump"))
        self.assertEqual(pathlib.Path(self.folder.name, "capture.dump").read_bytes(), pathlib.Path(path).read_bytes())

    def test_gaps_are_what_a_missing_member_held(self):
        self.assertEqual(self.array.gaps(), [])
        with tempfile.TemporaryDirectory() as folder:
            for member in pathlib.Path(self.path).iterdir():
                if member.name != "member1":
                    shutil.copy(member, folder)
            part = longtake.open(folder, degraded=True)
            gaps = part.gaps()
            there = pyarrow.table(part.packets(payload=False)).num_rows
        self.assertGreater(len(gaps), 1)
        self.assertEqual({gap["take"] for gap in gaps}, {self.account["take"]})
        self.assertEqual(there + sum(gap["missing"]["packets"] for gap in gaps), self.stored)

    def test_packets_one_by_one_are_those_of_a_file(self):
        path = os.path.join(self.folder.name, "tcp.pcap")
        written = self.array.extract_to(path, filter="tcp port 443")
        with self.assertRaisesRegex(FileExistsError, "overwrite=True"):
            self.array.extract_to(path)
        found = [(at, bytes(data)) for at, data in self.array.packets(filter="tcp port 443").raw()]
        self.assertEqual(len(found), written["packets"])
        content, at, of_file = pathlib.Path(path).read_bytes(), 24, []
        nanos = 1 if struct.unpack("<I", content[:4])[0] == 0xA1B23C4D else 1000
        while at < len(content):
            seconds, part, length, _ = struct.unpack("<IIII", content[at : at + 16])
            of_file.append((seconds * 10**9 + part * nanos, content[at + 16 : at + 16 + length]))
            at += 16 + length
        self.assertGreater(len(found), 100)
        self.assertEqual(found, of_file)

    def test_spans_are_named_by_numbers_datetimes_and_texts(self):
        times = [at for at, _ in self.array.packets().raw()]
        since = sorted(times)[len(times) // 2]
        wanted = sum(at >= since for at in times)
        self.assertEqual(sum(1 for _ in self.array.packets(since=since).raw()), wanted)
        micros = since // 1000
        moment = datetime.datetime.fromtimestamp(0, datetime.timezone.utc) + datetime.timedelta(microseconds=micros)
        wanted = sum(at >= micros * 1000 for at in times)
        for since in (moment, moment.isoformat()):
            self.assertEqual(sum(1 for _ in self.array.packets(since=since).raw()), wanted)
        self.assertEqual(sum(1 for _ in self.array.packets(since="-1h").raw()), len(times))
        with self.assertRaisesRegex(ValueError, "time zone"):
            self.array.packets(since=datetime.datetime.now())
        with self.assertRaisesRegex(ValueError, "since"):
            self.array.packets(since="yesterweek")

    def test_flows_are_counted(self):
        hosts = self.array.flows(group="hosts", by="packets", top=3)
        self.assertEqual(len(hosts["hosts"]), 3)
        self.assertTrue(hosts["complete"])
        with self.assertRaisesRegex(ValueError, "group"):
            self.array.flows(group="cities")

    def test_a_reader_that_leaves_early_leaves_nothing_behind(self):
        def is_read():
            for path in pathlib.Path("/proc/self/task").glob("*/comm"):
                # A thread that has ended has no name any more.
                with contextlib.suppress(OSError):
                    if path.read_text().strip() == "packets":
                        return True
            return False

        reading = self.array.packets().raw()
        next(reading)
        reading.close()
        stream = pyarrow.RecordBatchReader.from_stream(self.array.packets())
        stream.read_next_batch()
        del reading, stream
        gc.collect()
        # The readers end as soon as they notice.
        while is_read():
            os.sched_yield()

    def test_failures_say_what_and_why(self):
        with self.assertRaisesRegex(longtake.LongtakeError, "nowhere"):
            longtake.open(os.path.join(self.folder.name, "nowhere"))
        with self.assertRaisesRegex(longtake.LongtakeError, "filter"):
            list(self.array.packets(filter="tcp prot 80").raw())
        with self.assertRaisesRegex(pyarrow.ArrowException, "filter"):
            pyarrow.table(self.array.packets(filter="tcp prot 80"))
        with self.assertRaisesRegex(TypeError, "colour"):
            longtake.record("synthetic:1MB/s", os.path.join(self.folder.name, "other"), colour="red")
        with self.assertRaisesRegex(longtake.LongtakeError, "nonsense"):
            longtake.record("udp:nonsense", os.path.join(self.folder.name, "other"), duration=1)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "other")))


#: Prints how many batches of one packet an array's stream has, and the bytes that memory grew by after the first tenth of them.
READS_BATCHES = """
import pathlib, re, sys
import longtake, pyarrow

def resident():
    return 1024 * int(re.search(r"VmRSS:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])

path, packets = sys.argv[1], int(sys.argv[2])
batches = 0
for batch in pyarrow.RecordBatchReader.from_stream(longtake.open(path).packets(flow=True, batch_size=1)):
    assert batch.num_rows == 1
    batches += 1
    if batches == packets // 10:
        early = resident()
print(batches, resident() - early)
"""


class Batches(unittest.TestCase):
    def test_a_million_batches_take_no_more_memory_than_a_tenth_of_them(self):
        # LONGTAKE_LONG=1 reads the million.
        packets = 1_000_000 if os.environ.get("LONGTAKE_LONG") == "1" else 20_000
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "array")
            with longtake.record("traffic:max,seed=1", path, until_bytes=packets * 400, **LARGE) as recording:
                stored = recording.wait()["ledger"]["stored"]["packets"]
            self.assertGreaterEqual(stored, packets)
            script = [sys.executable, "-c", READS_BATCHES, path, str(stored)]
            batches, growth = map(int, subprocess.run(script, check=True, capture_output=True).stdout.split())
        self.assertEqual(batches, stored)
        self.assertLess(growth, 16 << 20)

    def test_a_batch_has_as_many_packets_as_are_wanted(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "array")
            with longtake.record("traffic:max,seed=1", path, until_bytes=1_000_000, **SMALL) as recording:
                stored = recording.wait()["ledger"]["stored"]["packets"]
            array = longtake.open(path)
            batches = [batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(array.packets(batch_size=100))]
            self.assertEqual((sum(batches), set(batches[:-1])), (stored, {100}))
            for wrong in (-1, 0, 65_537):
                with self.assertRaisesRegex(ValueError, "1 to 65536"):
                    array.packets(batch_size=wrong)


class Recordings(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "array")

    def test_gaps_in_a_udp_stream_are_found(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        header = numpy.dtype([("sequence", ">u4"), ("samples", ">i2", 50)])
        left_out = {17, 18, 400}
        with longtake.record(f"udp:127.0.0.1:{port}", self.path, **SMALL) as recording:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
                for sequence in (n for n in range(500) if n not in left_out):
                    packet = numpy.zeros(1, dtype=header)
                    packet["sequence"] = sequence
                    sender.sendto(packet.tobytes(), ("127.0.0.1", port))
            while recording.status()["ledger"]["stored"]["packets"] < 497:
                time.sleep(0.01)
        account = recording.wait()
        self.assertEqual(account["ledger"]["stored"]["packets"], 497)
        packets = longtake.open(self.path).packets()
        sequences = numpy.concatenate([part["sequence"] for part in packets.payloads(header)])
        self.assertEqual(set(range(500)) - set(sequences.tolist()), left_out)
        samples = numpy.concatenate(list(packets.payloads(">i2")))
        self.assertEqual(samples.shape, (497, 52))
        with self.assertRaisesRegex(ValueError, "104 bytes"):
            next(packets.payloads(">i2", (51,)))

    def test_events_tell_why_a_recording_ends_and_each_comes_once(self):
        with longtake.record("synthetic:max", self.path, when_full="stop", **SMALL) as recording:
            events = list(recording.events())
            self.assertTrue(recording.is_over)
        [full] = [event for event in events if event["event"] == "array_full"]
        self.assertIn("full", full["text"])
        self.assertGreaterEqual(full["after_s"], 0)
        self.assertIn("note", {event["event"] for event in events})
        self.assertEqual(list(recording.events()), [])

    def test_events_that_a_loop_left_come_with_the_next_one(self):
        with longtake.record("synthetic:max", self.path, when_full="stop", **SMALL) as recording:
            recording.wait()
        events = []
        while event := next(iter(recording.events()), None):
            events.append(event["event"])
        self.assertGreater(len(events), 1)
        self.assertEqual(events.count("array_full"), 1)

    def test_a_ring_that_comes_round_is_no_event(self):
        with longtake.record("synthetic:max", self.path, until_bytes=400_000_000, when_full="wrap", **SMALL) as recording:
            events = list(recording.events())
            self.assertIsNotNone(recording.status()["reused_to_ns"])
        self.assertTrue(all(event["text"] for event in events), events)

    def test_events_tell_of_silence_while_it_lasts_and_what_nobody_took_is_kept(self):
        with longtake.record("udp:127.0.0.1:0", self.path, **SMALL) as recording:
            for event in recording.events():
                if event["event"] == "silent":
                    break
            self.assertFalse(recording.is_over)
        with longtake.record("synthetic:max", self.path, when_full="stop", **SMALL) as recording:
            recording.wait()
        self.assertIn("array_full", {event["event"] for event in recording.events()})

    def test_what_a_program_writes_is_recorded_block_by_block(self):
        blocks = [numpy.full(1000 + n, n % 100, dtype=numpy.uint8) for n in range(300)]
        with longtake.record(None, self.path, **SMALL) as recording:
            for n, block in enumerate(blocks):
                # Bytes and other buffers alike.
                recording.write(block if n % 2 else block.tobytes(), time_ns=10**18 + n)
        account = recording.wait()
        self.assertEqual(account["ledger"]["stored"]["packets"], len(blocks))
        self.assertEqual(account["ledger"]["offered"], account["ledger"]["stored"])
        packets = list(longtake.open(self.path).packets().raw())
        self.assertEqual([time for time, _ in packets], [10**18 + n for n in range(300)])
        for (_, data), block in zip(packets, blocks, strict=True):
            self.assertEqual(bytes(data), block.tobytes())
        with self.assertRaisesRegex(longtake.LongtakeError, "over"):
            recording.write(b"too late")

    def test_a_program_that_writes_faster_than_the_drives_waits_for_them(self):
        block = bytes(1 << 19)
        with longtake.record(None, self.path, when_full="wrap", **SMALL) as recording:
            for _ in range(800):
                recording.write(block)
        ledger = recording.wait()["ledger"]
        self.assertEqual(ledger["stored"], {"packets": 800, "bytes": 800 << 19})
        self.assertEqual((ledger["offered"], ledger["truncated"]["packets"]), (ledger["stored"], 0))

    def test_threads_read_during_a_recording_what_is_written_until_then(self):
        block = bytes(100_000)
        seen = [threading.Event() for _ in range(3)]
        over = threading.Event()

        def read(seen):
            before = set()
            while not over.is_set():
                times = [time for time, _ in longtake.open(self.path).packets().raw()]
                # In order, and nothing twice; what was there before is there again.
                self.assertEqual(times, sorted(set(times)))
                self.assertEqual(before - set(times), set())
                before = set(times)
                if times:
                    seen.set()
            return before

        with (
            longtake.record(None, self.path, **SMALL) as recording,
            concurrent.futures.ThreadPoolExecutor(len(seen)) as pool,
        ):
            readers = [pool.submit(read, event) for event in seen]
            try:
                for n in range(500):
                    recording.write(block, time_ns=n)
                for event in seen:
                    self.assertTrue(event.wait(LONG_S))
                for n in range(500, 600):
                    recording.write(block, time_ns=n)
            finally:
                over.set()
            read_last = [reader.result(LONG_S) for reader in readers]
        ledger = recording.wait()["ledger"]
        self.assertEqual(ledger["stored"], {"packets": 600, "bytes": 600 * len(block)})
        self.assertEqual(ledger["offered"], ledger["stored"])
        whole = [time for time, _ in longtake.open(self.path).packets().raw()]
        self.assertEqual(whole, list(range(600)))
        self.assertTrue(all(times and times <= set(whole) for times in read_last))

    def test_frames_of_a_program_open_as_what_they_are(self):
        frame = bytes.fromhex("ffffffffffff0200000000010800") + bytes(46)
        with longtake.record(None, self.path, link_type="ethernet", **SMALL) as recording:
            recording.write(frame)
        self.assertEqual(pyarrow.table(longtake.open(self.path).packets())["link_type"].to_pylist(), [1])
        with self.assertRaisesRegex(ValueError, "link_type"):
            longtake.record(None, self.path, link_type="ethernets")
        with longtake.record("synthetic:1MB/s", self.path + "2", **SMALL) as recording:
            with self.assertRaisesRegex(ValueError, "record from None"):
                recording.write(frame)

    def test_a_recording_is_watched_and_stopped(self):
        with longtake.record("synthetic:20MB/s", self.path, when_full="wrap", index=None, **SMALL) as recording:
            take = recording.started()["take"]
            while (status := recording.status())["ledger"]["stored"]["packets"] == 0:
                self.assertFalse(recording.is_over)
                os.sched_yield()
            # The array is read while it is recorded: chunks that are stored out of order, once those before them are, too.
            while not (takes := longtake.open(self.path).takes()):
                self.assertFalse(recording.is_over)
            self.assertEqual(takes[0]["take"], take)
        self.assertEqual(status["take"], take)
        account = recording.wait()
        self.assertEqual((account["take"], account["reason"]), (take, "stopped"))
        self.assertTrue(recording.is_over)
        self.assertIsNone(recording.status())
        self.assertIsNone(account["index"])

    def test_a_program_that_ends_closes_its_take(self):
        script = (
            "import longtake, os, sys\n"
            f"recording = longtake.record('synthetic:20MB/s', {self.path!r}, **{SMALL!r})\n"
            "while recording.status()['ledger']['stored']['packets'] == 0: os.sched_yield()\n"
        )
        subprocess.run([sys.executable, "-c", script], check=True)
        take = longtake.open(self.path).ledger()
        self.assertEqual(take["state"], "complete", json.dumps(take))
        self.assertGreater(take["ledger"]["stored"]["packets"], 0)


if __name__ == "__main__":
    unittest.main()
