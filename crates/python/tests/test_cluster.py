"""Many machines with Dask: three network namespaces with two arrays each."""

import contextlib
import dataclasses
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import warnings

import dask
import distributed
import longtake
import pandas
import pyarrow
import pyarrow.compute
from longtake import cluster
from longtake.cluster import _clocks, _hosts, _packets, _slices, _sweeping

from hosts import BEGIN_NS, NAMES, PACKETS, SMALL, STEP_NS, Hosts, address, event_loop

#: Seconds that nothing here takes, however slow the machine is.
LONG_S = 120

DOCUMENTATION = pathlib.Path(__file__).resolve().parents[3] / "docs/cluster.md"


def eventually(is_true):
    """Waits for it."""
    deadline = time.monotonic() + LONG_S
    while not (value := is_true()):
        if time.monotonic() > deadline:
            raise AssertionError("it has not happened")
        time.sleep(0.02)
    return value


#: Options of Dask's programs and of ours, where :func:`make_certificates` has made the files.
TLS = ["--tls-ca-file", "ca.pem", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]


def make_certificates(folder):
    """Makes them as the documentation says."""
    text = DOCUMENTATION.read_text()
    [script] = [block for block in re.findall(r"(?:^    .*\n)+", text, re.M) if "openssl" in block]
    script = re.sub(r"^    ", "", script, flags=re.M)
    subprocess.run(["bash", "-e", "-c", script], check=True, stderr=subprocess.DEVNULL, cwd=folder)


def times_of(found):
    return [time for batch in found for time in batch["time_ns"].cast(pyarrow.int64()).to_pylist()]


@unittest.skipUnless(os.geteuid() == 0, "network namespaces need root")
class Clustered(unittest.TestCase):
    """A scheduler and three workers, of which tests may end some."""

    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        cls.hosts = stack.enter_context(Hosts())
        cls.hosts.start_scheduler()
        for number in range(3):
            cls.hosts.start_worker(number)
        loop = stack.enter_context(event_loop())
        address = cls.hosts.scheduler_address()
        cls.client = stack.enter_context(distributed.Client(address, timeout=LONG_S, loop=loop))
        cls.client.wait_for_workers(3, timeout=LONG_S)

    @contextlib.contextmanager
    def requests(self):
        """The slices that are asked for, in this order."""
        asked, call = [], _hosts.Call

        def noted(client, host, function, *arguments, **options):
            if function is _slices.read:
                asked.append(arguments[0])
            return call(client, host, function, *arguments, **options)

        with unittest.mock.patch.object(_packets, "Call", noted):
            yield asked

    def search(self, *arguments, timeout=LONG_S, **options):
        return cluster.packets(self.client, *arguments, timeout=timeout, **options)

    def start_again(self, number):
        """A worker in place of one that was killed."""
        self.hosts.start_worker(number)
        self.wait_for_workers(*NAMES)

    def workers(self):
        return {worker["name"] for worker in _hosts.workers_of(self.client).values()}

    def wait_for_workers(self, *names):
        eventually(lambda: self.workers() == set(names))

    def kill(self, name):
        left = self.workers() - {name}
        self.hosts.kill(name)
        self.wait_for_workers(*left)


class Searched(Clustered):
    def test_an_answer_is_the_union_of_the_local_ones_in_order_of_time(self):
        found = self.search()
        self.assertEqual(times_of(found), [BEGIN_NS + n * STEP_NS for n in range(6 * PACKETS)])
        self.assertTrue(found.completeness["complete"], found.completeness)
        table = found.to_arrow()
        for name, arrays in self.hosts.arrays().items():
            for array in arrays:
                local = pyarrow.table(longtake.open(array).packets())
                mask = pyarrow.compute.equal(table["array"].cast(pyarrow.string()), array)
                of_array = table.filter(mask)
                self.assertEqual(set(of_array["host"].to_pylist()), {name})
                for column in ("time_ns", "payload", "captured_length", "original_length", "link_type", "chunk_sequence"):
                    self.assertEqual(of_array[column].to_pylist(), local[column].to_pylist())
                self.assertEqual(found.completeness["arrays"][name][array]["packets"], PACKETS)
        self.assertEqual(pyarrow.table(found), table)

    def test_spans_filters_and_flows_are_as_of_one_array(self):
        since, until = BEGIN_NS + 600 * STEP_NS, BEGIN_NS + 1199 * STEP_NS
        found = self.search(since, until, payload=False, flow=True)
        self.assertEqual(times_of(found), list(range(since, until + 1, STEP_NS)))
        table = found.to_arrow()
        self.assertNotIn("payload", table.column_names)
        self.assertIn("destination_port", table.column_names)
        self.assertEqual(table.schema, found.schema)
        # The last but one byte of the header that was written is the host's number.
        second = self.search(filter="ether[14] = 1")
        self.assertEqual(set(second.to_arrow()["host"].to_pylist()), {"radar2"})
        self.assertEqual(times_of(self.search(filter="udp")), [])
        self.assertEqual(times_of(self.search("-10m", "-5m")), [])
        with self.assertRaisesRegex(TypeError, "True or False"):
            self.search(payload="view")

    def test_a_slice_with_too_many_packets_is_divided(self):
        wanted = [BEGIN_NS + n * STEP_NS for n in range(6 * PACKETS)]
        with unittest.mock.patch.object(_slices, "RESULT_BYTES", 20_000):
            found = self.search()
            self.assertEqual(times_of(found), wanted)
            self.assertTrue(found.completeness["complete"])
        with unittest.mock.patch.object(_slices, "SLICE_BYTES", 10_000):
            found = self.search()
            self.assertEqual(times_of(found), wanted)
            self.assertEqual(found.to_dask().npartitions, 6 * 12)

    def test_slices_are_joined_while_few_packets_match(self):
        def requests_of_takes(found):
            with self.requests() as asked:
                times_of(found)
            return [
                [part.recorded_bytes // 1000 for part in asked if (part.array, part.take) == of]
                for of in dict.fromkeys((part.array, part.take) for part in asked)
            ]

        with (
            unittest.mock.patch.object(_slices, "SLICE_BYTES", 10_000),
            unittest.mock.patch.object(_slices, "JOINED_BYTES", 40_000),
        ):
            [single] = {tuple(each) for each in requests_of_takes(self.search())}
            self.assertEqual(len(single), 12)
            # Two are under way before anything is known of how many packets match.
            [joined] = {tuple(each) for each in requests_of_takes(self.search(filter="udp"))}
            self.assertEqual(len(joined), 5)
            self.assertLessEqual(max(joined), 40)
            # The accounts of joined slices cover the whole take.
            found = self.search(filter="udp")
            self.assertEqual(times_of(found), [])
            self.assertTrue(found.completeness["complete"], found.completeness)
            # A host that could not read so many in time is asked for each slice.
            with unittest.mock.patch.object(_packets, "TIMEOUT_PARTS", 1e12):
                self.assertEqual({len(each) for each in requests_of_takes(self.search(filter="udp"))}, {12})

    def test_a_host_whose_take_comes_later_reads_its_first_slices_meanwhile(self):
        with unittest.mock.patch.object(_slices, "SLICE_BYTES", 10_000):
            found = self.search(arrays={name: of[:1] for name, of in self.hosts.arrays().items()})
            # Each host has a third of the slices, one host after the other.
            for third, (key, parts) in enumerate(sorted(found._slices.items())):
                found._slices[key] = parts[4 * third : 4 * third + 4]
            with self.requests() as asked:
                next(batches := iter(found))
                begun = [part.host for part in asked]
                rest = list(batches)
        self.assertEqual(begun, [name for name in NAMES for _ in range(_packets.AHEAD)])
        self.assertEqual(len(asked), 12)
        self.assertEqual(rest[-1]["host"][-1].as_py(), NAMES[-1])
        times = times_of(found)
        self.assertEqual(times, sorted(times))
        of_arrays = [array for host in found.completeness["arrays"].values() for array in host.values()]
        self.assertEqual(len(times), sum(array["packets"] for array in of_arrays))

    def test_answers_are_sent_without_a_copy(self):
        found = self.search()
        [part, *_] = [part for parts in found._slices.values() for part in parts]
        with unittest.mock.patch.object(_slices, "_expect_host"):
            answer = _slices.read(part, found._reading, None)
        buffers = []
        pickled = pickle.dumps(answer, protocol=5, buffer_callback=buffers.append)
        self.assertGreaterEqual(sys.getsizeof(answer), answer.table.nbytes)
        self.assertLess(len(pickled), answer.table.nbytes)
        self.assertEqual(pickle.loads(pickled, buffers=buffers).table, answer.table)
        header, frames = distributed.protocol.serialize(answer)
        self.assertEqual(header["serializer"], "pickle")
        sent = {memoryview(frame).obj.address for frame in frames[1:]}
        payload = answer.table["payload"].chunk(0).buffers()[2]
        self.assertIn(payload.address, sent)

    def test_a_clock_that_does_not_answer_holds_up_nothing(self):
        [host, *_] = _hosts.connected(self.client).values()
        lost = dataclasses.replace(host, name="lost", workers=["tcp://10.88.0.99:1"])
        comparison = _clocks.Comparison(self.client, [host, lost], 2)
        self.assertEqual(comparison.of([host.name, "lost", "unknown"])["hosts"].keys(), {host.name})
        # What was found stays.
        self.assertEqual(comparison.of([host.name]), comparison.of([host.name]))

    def test_clocks_are_compared(self):
        clock = self.search().clock
        self.assertEqual(clock["hosts"].keys(), set(NAMES))
        for of_host in clock["hosts"].values():
            # One machine has one clock.
            self.assertLessEqual(abs(of_host["offset_ns"]), of_host["bound_ns"])
        self.assertGreater(clock["order_within_ns"], 0)

    def test_an_array_that_is_not_there_is_named_and_others_answer(self):
        arrays = self.hosts.arrays()
        arrays["radar2"][1] = "/nowhere/array"
        arrays["radar9"] = ["/data/array"]
        # An array with two names is searched once.
        arrays["radar3"].append(arrays["radar3"][0] + "/../array0")
        found = self.search(arrays=arrays)
        self.assertEqual(len(times_of(found)), 5 * PACKETS)
        missing = {(each["host"], each["array"]): each for each in found.completeness["missing"]}
        self.assertEqual(missing.keys(), {("radar2", "/nowhere/array"), ("radar9", None)})
        self.assertIn("no such", missing["radar2", "/nowhere/array"]["text"])
        self.assertEqual(missing["radar9", None]["reason"], "no worker")
        self.assertFalse(found.completeness["complete"])
        self.assertIn("/nowhere/array on radar2", repr(found))

    def test_wrong_arguments_are_the_callers_mistakes(self):
        with self.assertRaisesRegex(longtake.LongtakeError, "tcp prot 80"):
            self.search(filter="tcp prot 80").to_arrow()
        with self.assertRaisesRegex(ValueError, "since"):
            self.search(since="yesterweek")
        with self.assertRaisesRegex(ValueError, "ends before it begins"):
            self.search(since=2, until=1)
        with self.assertRaisesRegex(TypeError, "Client"):
            cluster.packets(None)

    def test_hosts_are_found_while_the_client_refreshes_what_it_keeps(self):
        refresh = self.client._update_scheduler_info

        async def overtaken(n_workers=0):
            await refresh(n_workers)
            # As the client does it from time to time: it asks for no workers.
            await refresh()

        with unittest.mock.patch.object(self.client, "_update_scheduler_info", overtaken):
            found = self.search()
        self.assertEqual(set(found.hosts), set(NAMES))
        of_none = self.search(hosts=[])
        self.assertEqual((times_of(of_none), of_none.completeness["complete"]), ([], False))

    def test_a_frame_is_computed_where_its_arrays_are(self):
        def where(part):
            return pandas.DataFrame({"host": part["host"].astype(str), "worker": distributed.get_worker().name})

        frame = self.search(payload=False).to_dask()
        self.assertEqual(frame.npartitions, 6)
        pairs = frame.map_partitions(where, meta={"host": str, "worker": str}).drop_duplicates().compute()
        self.assertEqual(set(zip(pairs["host"], pairs["worker"])), {(name, name) for name in NAMES})
        lengths = frame.groupby("host")["captured_length"].sum().compute()
        self.assertEqual(lengths.to_dict(), dict.fromkeys(NAMES, 2 * PACKETS * 114))
        self.assertEqual(len(frame), 6 * PACKETS)
        self.assertEqual(self.search("-10m").to_dask()["captured_length"].sum().compute(), 0)
        with self.assertRaisesRegex(RuntimeError, "is on radar"):
            frame["captured_length"].sum().compute(scheduler="synchronous")

    def test_a_host_whose_worker_is_killed_is_named_and_others_answer(self):
        found = self.search()
        with unittest.mock.patch.object(_slices, "SLICE_BYTES", 10_000):
            begun = self.search()
        batches = iter(begun)
        next(batches)
        self.kill("radar2")
        self.addCleanup(self.start_again, 1)
        # One that has begun goes on without it, and says from when on.
        for _ in batches:
            pass
        [missing] = begun.completeness["missing"]
        self.assertEqual((missing["host"], missing["reason"]), ("radar2", "worker lost"))
        self.assertGreater(missing["from_ns"], BEGIN_NS)
        self.assertEqual(set(found.to_arrow()["host"].to_pylist()), {"radar1", "radar3"})
        [missing] = found.completeness["missing"]
        self.assertEqual((missing["host"], missing["reason"]), ("radar2", "worker lost"))
        again = self.search(hosts=NAMES)
        self.assertEqual(len(times_of(again)), 4 * PACKETS)
        [missing] = again.completeness["missing"]
        self.assertEqual((missing["host"], missing["reason"]), ("radar2", "no worker"))
        self.assertIn("without radar2", repr(again))


class Unreachable(Clustered):
    def test_a_host_whose_cable_is_pulled_is_named_and_others_answer(self):
        found = self.search()
        self.hosts.link(2, "down")
        settle = _hosts.settle

        def impatient(client, calls, timeout):
            """Waits for hosts that can be reached, and then little for the other one."""
            settle(client, [call for call in calls if call.host.name != "radar3"], timeout)
            settle(client, calls, 1)

        with unittest.mock.patch.object(_hosts, "settle", impatient):
            self.assertEqual(len(times_of(found)), 4 * PACKETS)
        [missing] = found.completeness["missing"]
        self.assertEqual((missing["host"], missing["array"], missing["from_ns"]), ("radar3", None, BEGIN_NS + 4 * STEP_NS))
        self.assertIn(missing["reason"], ("timed out", "worker lost"))
        self.assertFalse(found.completeness["complete"])


def square_or_fail(number):
    if number % 7 == 3:
        raise ValueError(f"{number} is no good")
    return number * number


def end_the_worker_once(item):
    """Ends the process that computes it, the first time."""
    number, mark = item
    if number == 5 and not os.path.exists(mark):
        pathlib.Path(mark).touch()
        os._exit(1)
    return number


def end_the_worker(number):
    if number == 5:
        os._exit(1)
    return number


class Swept(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        options = {"loop": stack.enter_context(event_loop()), "dashboard_address": None}
        local = stack.enter_context(distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options))
        cls.client = stack.enter_context(distributed.Client(local, timeout=LONG_S))

    def test_plans_and_simulations_are_those_of_one_process(self):
        rates = [f"{rate}GB/s" for rate in range(1, 25)]
        plans = [{"rate": rate, "keep": "1h", "drives": "ideal"} for rate in rates]
        simulations = [
            {"source": f"synthetic:{rate}", "target": "sim:samsung-pm1725b-1.6tb*2", "duration": 2} for rate in rates[:6]
        ]
        for kind, items in (("plan", plans), ("simulate", simulations)):
            shares = []
            there = cluster.sweep(self.client, kind, items, progress=shares.append).results()
            here = cluster.sweep(None, kind, items).results()
            self.assertEqual([each.values for each in there], [each.values for each in here])
            self.assertEqual([each._repr_html_() for each in there], [each._repr_html_() for each in here])
            self.assertEqual(shares, [n / len(items) for n in range(1, len(items) + 1)])

    def test_failures_are_results_of_their_items(self):
        swept = cluster.sweep(self.client, square_or_fail, range(200))
        results = swept.results()
        for number, value in enumerate(results):
            if number % 7 == 3:
                self.assertIsInstance(value, cluster.Failed)
                self.assertEqual((value.index, value.item), (number, number))
                self.assertIn(f"ValueError: {number} is no good", str(value))
            else:
                self.assertEqual(value, number * number)
        self.assertEqual(len(swept.failures), 29)
        wrong = cluster.sweep(self.client, "plan", [{"rate": "2GX/s"}]).results()
        self.assertIsInstance(wrong[0].error, ValueError)
        with self.assertRaisesRegex(ValueError, "'plan', 'simulate', 'fit'"):
            cluster.sweep(self.client, "pln", [])
        self.assertEqual(cluster.sweep(self.client, square_or_fail, []).results(), [])

    def test_partial_results_stay_and_a_sweep_goes_on(self):
        with cluster.sweep(self.client, square_or_fail, [1, 2] * 100) as swept:
            for index, value in swept:
                self.assertEqual(swept.partial()[index], value)
                break
        known = swept.partial()
        self.assertGreater(len(known), 0)
        self.assertEqual(swept.results(), [1, 4] * 100)

    def test_a_sweep_survives_a_worker_that_is_killed(self):
        with tempfile.TemporaryDirectory() as folder:
            items = [(number, os.path.join(folder, "mark")) for number in range(40)]
            self.assertEqual(cluster.sweep(self.client, end_the_worker_once, items).results(), list(range(40)))

    def test_a_sweep_without_workers_says_so_and_continues_when_one_joins(self):
        with contextlib.ExitStack() as stack:
            options = {"loop": stack.enter_context(event_loop()), "dashboard_address": None}
            local = stack.enter_context(distributed.LocalCluster(n_workers=0, threads_per_worker=1, **options))
            client = stack.enter_context(distributed.Client(local, timeout=LONG_S, set_as_default=False))
            stack.enter_context(unittest.mock.patch.object(_sweeping, "QUIET_S", 0.1))
            waited = distributed.wait

            def with_its_own_client(*arguments, **options):
                self.assertIs(distributed.Client.current(), client)
                return waited(*arguments, **options)

            stack.enter_context(unittest.mock.patch.object(distributed, "wait", with_its_own_client))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("always")
            told = []

            def shown(message, *_, **__):
                if "has no workers" in str(message):
                    told.append(message)
                    local.scale(1)

            warnings.showwarning = shown
            self.assertEqual(cluster.sweep(client, square_or_fail, [1, 2]).results(), [1, 4])
        self.assertEqual(len(told), 1)

    def test_an_item_that_ends_every_worker_fails_alone(self):
        with contextlib.ExitStack() as stack:
            # It ends two workers, and two are left: one that ends while it starts is not always started again.
            stack.enter_context(dask.config.set({"distributed.scheduler.allowed-failures": 0}))
            options = {"loop": stack.enter_context(event_loop()), "dashboard_address": None}
            local = stack.enter_context(distributed.LocalCluster(n_workers=4, threads_per_worker=1, **options))
            client = stack.enter_context(distributed.Client(local, timeout=LONG_S, set_as_default=False))
            results = cluster.sweep(client, end_the_worker, range(12), retries=0).results()
        self.assertIsInstance(results.pop(5), cluster.Failed)
        self.assertEqual(results, [number for number in range(12) if number != 5])

    def test_a_fit_is_swept(self):
        with tempfile.TemporaryDirectory() as folder:
            measured = longtake.measure("fill", "sim:ideal", output=os.path.join(folder, "results"))
            items = [{"measurement": str(measured.folder), "evaluations": count} for count in (3, 5)]
            fits = cluster.sweep(self.client, "fit", items).results()
            self.assertEqual([fit.profile for fit in fits], [longtake.fit(**item).profile for item in items])


MISSIONS = """run = ["plan", "mission"]
[base]
drive = "mine"
mission = "60s"
[axes]
rate = { from = "1GB/s", to = "6GB/s", steps = 6 }
count = { from = 1, to = 4 }
"""


class SweptByTheProgram(unittest.TestCase):
    """``longtake sweep --scheduler``, with a drive of the user's that workers don't know."""

    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        profiles = self.folder / "data/longtake/profiles"
        profiles.mkdir(parents=True)
        library = DOCUMENTATION.parents[1] / "crates/profile/library"
        drive = (library / "samsung-970-pro-512gb.toml").read_text()
        (profiles / "mine.toml").write_text(drive.replace('name = "samsung-970-pro-512gb"', 'name = "mine"', 1))
        (self.folder / "spec.toml").write_text(MISSIONS)
        # What lies in the folder where the program is run is not the package.
        (self.folder / "longtake").mkdir()
        (self.folder / "longtake/__init__.py").write_text("raise SystemExit('the wrong package')")
        make_certificates(self.folder)
        paths = dict(zip(("tls_ca_file", "tls_scheduler_cert", "tls_scheduler_key"), map(str, [self.folder / name for name in TLS[1::2]])))
        for of in ("worker", "client"):
            paths |= {f"tls_{of}_{kind}": paths[f"tls_scheduler_{kind}"] for kind in ("cert", "key")}
        security = distributed.security.Security(**paths, require_encryption=True)
        options = {"loop": stack.enter_context(event_loop()), "dashboard_address": None, "security": security}
        local = distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options)
        self.scheduler = ["--scheduler", stack.enter_context(local).scheduler_address, *TLS]

    def started(self, output, *arguments):
        path = os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]
        environment = os.environ | {"PATH": path, "XDG_DATA_HOME": str(self.folder / "data")}
        command = [os.environ["LONGTAKE_PROGRAM"], "sweep", "spec.toml", "--json", "--output", output, *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen(command, cwd=self.folder, env=environment, **pipes)

    def swept(self, code, output, *arguments):
        process = self.started(output, *arguments)
        printed, said = process.communicate(timeout=LONG_S)
        self.assertEqual(process.returncode, code, said)
        return json.loads(printed) if code != 1 else said

    def test_the_table_is_that_of_this_machine(self):
        there = self.swept(0, "there", *self.scheduler)
        self.assertEqual((there["jobs"], there["run"], there["missing"]), (24, 24, 0))
        self.assertEqual(self.swept(0, "here")["run"], 24)
        tables = [(self.folder / name / "results.csv").read_text() for name in ("there", "here")]
        self.assertEqual(*tables)
        # It knows the drive by what it was sent, and not by its name.
        self.assertEqual(self.swept(0, "there", "-y")["run"], 0)

    def test_a_signal_leaves_what_is_done_and_the_sweep_goes_on(self):
        process = self.started("there", *self.scheduler)
        results = self.folder / "there/results.jsonl"
        eventually(lambda: results.exists() and results.read_text())
        process.terminate()
        printed, said = process.communicate(timeout=LONG_S)
        first = json.loads(printed)
        self.assertEqual(process.returncode, 3 if first["missing"] else 0, said)
        second = self.swept(0, "there", "-y", *self.scheduler)
        self.assertEqual(first["run"] + second["run"], 24)
        self.assertEqual(len(results.read_text().splitlines()), 24)

    def test_a_scheduler_that_is_not_there_is_named(self):
        address = "tls://127.0.0.1:1"
        with unittest.mock.patch.dict(os.environ, {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "100ms"}):
            said = self.swept(1, "there", "--scheduler", address, *TLS)
        self.assertIn(address, said)


class Recorded(Clustered):
    def test_recorders_are_started_watched_and_stopped_with_one_ledger(self):
        targets = {name: str(self.hosts.folder / name / "taken") for name in NAMES[:2]}
        sources = {name: ("synthetic:20MB/s", target) for name, target in targets.items()}
        with cluster.record(self.client, sources, timeout=LONG_S, when_full="wrap", **SMALL) as recordings:
            def all_store():
                status = recordings.status()
                return all(each.get("ledger") and each["ledger"]["stored"]["packets"] for each in status.values())

            eventually(all_store)
            self.assertEqual({each["state"] for each in recordings.status().values()}, {"recording"})
            # Another program finds them.
            others = cluster.recordings(self.client, timeout=LONG_S)
            self.assertEqual(others.status().keys(), targets.keys())
        ledger = recordings.ledger()
        self.assertTrue(ledger["complete"], ledger)
        taken = [longtake.open(target).ledger()["ledger"] for target in targets.values()]
        stored = sum(each["stored"]["packets"] for each in taken)
        self.assertEqual(ledger["ledger"]["stored"]["packets"], stored)
        self.assertTrue(ledger["ledger"]["balances"])
        self.assertEqual(ledger["hosts"].keys(), targets.keys())
        self.assertEqual({each["state"] for each in recordings.status().values()}, {"over"})
        self.assertEqual(cluster.recordings(self.client, timeout=LONG_S).status(), {})

    def test_a_full_array_and_a_full_disk_are_reported_and_others_go_on(self):
        full = self.hosts.small_disk
        sources = {
            "radar1": ("synthetic:20MB/s", str(self.hosts.folder / "radar1/going")),
            "radar2": ("synthetic:max", str(self.hosts.folder / "radar2/small")),
            "radar3": ("synthetic:20MB/s", str(full / "array")),
        }
        with cluster.record(self.client, sources, timeout=LONG_S, when_full="stop", **SMALL) as recordings:
            [missing] = recordings.missing
            self.assertEqual((missing.host, missing.reason), ("radar3", "failed"))
            eventually(lambda: recordings.status()["radar2"]["state"] == "over")
            status = recordings.status()
        self.assertEqual(status["radar3"]["state"], "failed")
        self.assertIn(str(full), status["radar3"]["error"])
        self.assertIn("full", status["radar2"]["account"]["reason"])
        ledger = recordings.ledger()
        self.assertEqual(ledger["hosts"].keys(), {"radar1", "radar2"})
        self.assertFalse(ledger["complete"])
        with self.assertRaisesRegex(longtake.LongtakeError, "no recorder could start.*radar9"):
            cluster.record(self.client, {"radar9": ("synthetic:1MB/s", "/data/array")})
        with self.assertRaisesRegex(longtake.LongtakeError, "colour"):
            cluster.record(self.client, {"radar1": ("synthetic:1MB/s", "/data/array")}, colour="red")

    def test_of_a_killed_worker_the_array_says_what_was_recorded(self):
        target = str(self.hosts.folder / "radar2/killed")
        self.hosts.start_worker(1, name="recorder")
        self.wait_for_workers(*NAMES, "recorder")
        self.addCleanup(self.wait_for_workers, *NAMES)
        # On the worker beside the one that searches, which is the second of the host.
        [other] = [a for a, w in _hosts.workers_of(self.client).items() if w["name"] == "recorder"]
        sources = {"10.88.0.2": ("synthetic:20MB/s", target)}
        hosts = cluster._hosts.connected(self.client)
        host = next(host for host in hosts.values() if other in host.workers)
        host.workers.sort(key=lambda worker: worker != other)
        with unittest.mock.patch.object(cluster._hosts, "connected", lambda client: {host.name: host}):
            recordings = cluster.record(self.client, sources, timeout=LONG_S, when_full="wrap", **SMALL)

        def is_durable():
            [status] = recordings.status().values()
            return status["status"]["durable"]["packets"] > 0

        eventually(is_durable)
        self.kill("recorder")
        with unittest.mock.patch.object(cluster._hosts, "connected", lambda client: {host.name: host}):
            ledger = recordings.wait()
        self.assertEqual((ledger["hosts"], ledger["complete"]), ({}, False))
        self.assertEqual([each["reason"] for each in ledger["missing"]], ["worker lost"])
        [take] = ledger["interrupted"].values()
        self.assertGreater(take["on_media"]["packets"], 0)
        self.assertNotEqual(take["state"], "complete")


@unittest.skipUnless(os.geteuid() == 0, "network namespaces need root")
class Documented(unittest.TestCase):
    """The examples of docs/cluster.md, in its order, with its certificates."""

    def test_every_example_runs_and_nobody_connects_without_a_certificate(self):
        text = DOCUMENTATION.read_text()
        examples = re.findall(r"```python\n(.*?)```", text, re.S)
        self.assertGreaterEqual(len(examples), 5)
        with Hosts() as hosts, contextlib.chdir(hosts.folder):
            make_certificates(hosts.folder)
            options = TLS
            hosts.start_scheduler(*options, scheme="tls")
            for number in range(3):
                hosts.start_worker(number, *options)
            names = {}
            for example in examples:
                for written, here in (("10.0.0.1", address(0)), ("/data", str(hosts.folder)), ("100GiB", "64MiB")):
                    example = example.replace(written, here)
                with self.subTest(example=example), contextlib.redirect_stdout(sys.stderr):
                    exec(compile(example, str(DOCUMENTATION), "exec"), names)
                if client := names.get("client"):
                    client.wait_for_workers(3, timeout=LONG_S)
            names["client"].close()
            with self.assertRaises(TypeError):
                distributed.Client(hosts.scheduler_address())
            other = distributed.Security(tls_ca_file="ca.pem", require_encryption=True)
            with self.assertRaises(Exception):
                distributed.Client(hosts.scheduler_address(), security=other, timeout=5)


class Importing(unittest.TestCase):
    def test_longtake_does_not_import_dask_and_the_cluster_says_what_it_needs(self):
        script = "import longtake, sys; assert not {'dask', 'distributed', 'pyarrow'} & sys.modules.keys()"
        subprocess.run([sys.executable, "-c", script], check=True)
        script = "import sys; sys.modules['distributed'] = None\nimport longtake.cluster"
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        self.assertIn("pip install 'longtake[cluster]'", ran.stderr)

    def test_times_are_those_of_the_commands(self):
        self.assertEqual(_clocks.nanoseconds("since", "2026-11-21T10:00:00.000000001Z"), 1795255200_000000001)
        self.assertEqual(_clocks.nanoseconds("since", "2026-11-21T12:00:00.5+02:00"), 1795255200_500000000)
        self.assertEqual(_clocks.nanoseconds("since", "1795255200.25"), 1795255200_250000000)
        with unittest.mock.patch.object(_clocks, "time", unittest.mock.Mock(time_ns=lambda: 1795255200_000000001)):
            self.assertEqual(_clocks.nanoseconds("since", "-1h30m"), (1795255200 - 5400) * 10**9 + 1)
            self.assertEqual(_clocks.nanoseconds("until", "now"), 1795255200_000000001)
        for wrong in ("", "-", "-10x", "tomorrow", "12:00"):
            with self.assertRaisesRegex(ValueError, "until"):
                _clocks.nanoseconds("until", wrong)


if __name__ == "__main__":
    unittest.main()
