"""Three hosts on this machine: network namespaces joined by a bridge, with a scheduler in the first and a worker with two arrays in each.

    python hosts.py COMMAND...      # as root: runs a command on the first host, and ends the hosts with it

The command finds the scheduler's address in LONGTAKE_SCHEDULER. Everything that is made has this process's id in its name, and is removed
in the end.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import longtake
from tornado.ioloop import IOLoop

NAMES = ("radar1", "radar2", "radar3")
SMALL = {"members": 2, "member_size": "33MiB", "segment": "8MiB", "chunk": "1MiB", "memory": "32MiB"}

#: Packets of an array, when the first is captured, and the time from one to the next of all arrays.
PACKETS = 1000
BEGIN_NS = 1_700_000_000_000_000_000
STEP_NS = 1000

CLONE_NEWNET = 0x40000000
#: The kernel kills a child whose parent has ended.
PR_SET_PDEATHSIG, SIGKILL = 1, 9


def address(number):
    return f"10.88.0.{number + 1}"


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


def _libc():
    return ctypes.CDLL(None, use_errno=True)


def _enter(namespace):
    """Moves this thread, and threads that it starts, into a network namespace."""
    with open(namespace) as file:
        if _libc().setns(file.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"entering {namespace}")


@contextlib.contextmanager
def event_loop():
    """A loop for Dask's clients in a thread of its own. The one that they start themselves has to run within ten seconds."""
    started = threading.Event()
    running = []

    async def run():
        running.append((IOLoop.current(), asyncio.Event()))
        started.set()
        await running[0][1].wait()

    thread = threading.Thread(target=asyncio.run, args=(run(),), name="event loop", daemon=True)
    thread.start()
    started.wait()
    loop, ended = running[0]
    try:
        yield loop
    finally:
        loop.add_callback(ended.set)
        thread.join()


class Hosts:
    """The namespaces. Inside the block this thread is on the first host."""

    def __init__(self, arrays=True):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="longtake-hosts-"))
        self.scheduler_file = self.folder / "scheduler.json"
        self.processes = {}
        self._arrays = arrays
        self._own = open(f"/proc/self/task/{os.getpid()}/ns/net")
        self._made = contextlib.ExitStack()
        self._made.callback(shutil.rmtree, self.folder, ignore_errors=True)
        #: A file system too small for an array. It is mounted first: what is mounted later may not be seen in the namespaces.
        self.small_disk = self.folder / "small"

    def __enter__(self):
        try:
            self.small_disk.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "longtake", self.small_disk], check=True)
            self._made.callback(subprocess.run, ["umount", "--lazy", self.small_disk], check=True)
            self._network()
            if self._arrays:
                for number in range(len(NAMES)):
                    self._record(number)
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *error):
        for name in list(self.processes):
            self.kill(name)
        _libc().setns(self._own.fileno(), CLONE_NEWNET)
        self._own.close()
        self._made.close()

    def namespace(self, number):
        return f"longtake-{os.getpid()}-{number}"

    def _network(self):
        for number in range(len(NAMES)):
            _ip("netns", "add", self.namespace(number))
            self._made.callback(_ip, "netns", "del", self.namespace(number))
            _ip("-n", self.namespace(number), "link", "set", "lo", "up")
        first = self.namespace(0)
        _ip("-n", first, "link", "add", "bridge", "type", "bridge", "forward_delay", "0")
        _ip("-n", first, "address", "add", f"{address(0)}/24", "dev", "bridge")
        _ip("-n", first, "link", "set", "bridge", "up")
        for number in range(1, len(NAMES)):
            name, port = self.namespace(number), f"port{number}"
            _ip("link", "add", port, "netns", first, "type", "veth", "peer", "name", "cable", "netns", name)
            _ip("-n", name, "address", "add", f"{address(number)}/24", "dev", "cable")
            _ip("-n", name, "link", "set", "cable", "up")
            _ip("-n", first, "link", "set", port, "master", "bridge", "up")
        _enter(f"/run/netns/{first}")

    def array(self, number, which):
        return str(self.folder / NAMES[number] / f"array{which}")

    def arrays(self):
        """The arrays of each host."""
        return {name: [self.array(number, which) for which in (0, 1)] for number, name in enumerate(NAMES)}

    def times(self, number, which):
        """When the packets of an array were captured: those of all arrays take turns."""
        arrays = 2 * len(NAMES)
        return [BEGIN_NS + (n * arrays + number * 2 + which) * STEP_NS for n in range(PACKETS)]

    def _record(self, number):
        for which in (0, 1):
            path = self.array(number, which)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            frame = bytes.fromhex("ffffffffffff0200000000010800") + bytes([number, which]) + bytes(98)
            with longtake.record(None, path, link_type="ethernet", **SMALL) as recording:
                for at in self.times(number, which):
                    recording.write(frame, time_ns=at)

    def start_scheduler(self, *options, scheme="tcp"):
        """Starts the scheduler on the first host."""
        command = ["distributed.cli.dask_scheduler", "--host", f"{scheme}://{address(0)}", "--port", "8786"]
        self._start("scheduler", 0, [*command, "--no-show", "--no-dashboard", "--scheduler-file", self.scheduler_file, *options])
        while not self.scheduler_file.exists():
            self._check("scheduler")
            time.sleep(0.05)

    def start_worker(self, number, *options, name=None, **environment):
        """Starts a worker on a host, with its two arrays."""
        named = name or NAMES[number]
        command = ["distributed.cli.dask_worker", "--scheduler-file", self.scheduler_file, "--host", address(number)]
        command += ["--name", named, "--nthreads", "2", "--no-nanny", "--no-dashboard"]
        command += ["--local-directory", self.folder / "work", *options]
        arrays = os.pathsep.join(self.arrays()[NAMES[number]])
        self._start(named, number, command, {"LONGTAKE_ARRAYS": arrays} | environment)

    def _start(self, name, number, module, environment=None):
        inside = ["ip", "netns", "exec", self.namespace(number), sys.executable, "-m", *map(str, module)]
        with open(self.folder / f"{name}.log", "wb") as log:
            self.processes[name] = subprocess.Popen(
                inside,
                env=os.environ | (environment or {}),
                cwd=self.folder,
                stdout=log,
                stderr=log,
                preexec_fn=lambda: _libc().prctl(PR_SET_PDEATHSIG, SIGKILL),
            )

    def log(self, name):
        """What a process has printed."""
        return (self.folder / f"{name}.log").read_text()

    def _check(self, name):
        if self.processes[name].poll() is not None:
            raise RuntimeError(f"{name} has ended:\n{self.log(name)}")

    def kill(self, name):
        """Ends a process without warning."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def link(self, number, state):
        """Pulls or plugs the cable of a host other than the first."""
        _ip("-n", self.namespace(0), "link", "set", f"port{number}", state)

    def start(self):
        """A scheduler, and a worker on each host."""
        self.start_scheduler()
        for number in range(len(NAMES)):
            self.start_worker(number)

    def scheduler_address(self):
        """Where clients connect."""
        return json.loads(self.scheduler_file.read_text())["address"]


def main():
    from distributed import Client

    with Hosts() as hosts:
        hosts.start()
        with Client(hosts.scheduler_address()) as client:
            client.wait_for_workers(len(NAMES))
        return subprocess.run(sys.argv[1:], env=os.environ | {"LONGTAKE_SCHEDULER": hosts.scheduler_address()}).returncode


if __name__ == "__main__":
    sys.exit(main())
