"""Measures the cluster against doing the same without it, and prints the ratios with their spread.

    cluster.py FOLDER [ROUNDS] [--plans 200] [--gigabytes 1]

Needs two idle cores and room for the arrays in FOLDER. A sweep of plans on two workers against one process: the more, the better. A query
of two hosts (workers on 127.0.0.1 and 127.0.0.2) against the sum of reading their arrays locally: the less, the better.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import distributed
import longtake
import pyarrow
from longtake import cluster


#: What is asked of 1 GB. There are no indexes, so that all of it is read.
QUERIES = {
    "a query for DNS": "udp port 53",
    "a query for everything": "",
}


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def shown(name, ratios, goal):
    middle, least, most = statistics.median(ratios), min(ratios), max(ratios)
    print(f"{name}: {middle:.2f} ({least:.2f} to {most:.2f} in {len(ratios)} rounds; goal: {goal})", flush=True)


def arithmetic(plans):
    """Plans that compare all drives of the library."""
    return [{"rate": f"{n / 10 + 1}GB/s", "keep": "1h"} for n in range(plans)]


def proved(plans):
    """Plans of one drive, each proved by recording its mission of ten minutes."""
    mission = {"mission": "10min", "drives": ["samsung-970-evo-plus-1tb"], "prove": True}
    return [{"rate": f"{n / 50 + 0.5}GB/s", **mission} for n in range(plans)]


def swept(name, items, rounds):
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        # Workers import the package once.
        cluster.sweep(client, "plan", items[:4]).results()
        ratios = []
        for _ in range(rounds):
            alone = seconds(lambda: cluster.sweep(None, "plan", items).results())
            together = seconds(lambda: cluster.sweep(client, "plan", items).results())
            ratios.append(alone / together)
            print(f"  {alone:.2f} s in one process, {together:.2f} s with two workers", flush=True)
    shown(f"{len(items)} {name}, times as fast with two workers", ratios, "1.8 or more")


def queried(folder, size, rounds):
    arrays = {"127.0.0.1": [os.path.join(folder, "one")], "127.0.0.2": [os.path.join(folder, "two")]}
    for [path] in arrays.values():
        options = {"members": 2, "member_size": size, "memory": "128MiB", "index": None}
        with longtake.record("traffic:200MB/s", path, until_bytes=size // 2, **options) as recording:
            recording.wait()
    processes = []
    try:
        file = os.path.join(folder, "scheduler.json")
        run = [sys.executable, "-m"]
        scheduler = ["distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
        processes.append(subprocess.Popen([*run, *scheduler, "--scheduler-file", file]))
        for host in arrays:
            worker = ["distributed.cli.dask_worker", "--scheduler-file", file, "--host", host, "--nthreads", "2"]
            options = ["--no-nanny", "--no-dashboard", "--local-directory", folder]
            processes.append(subprocess.Popen([*run, *worker, *options], env=os.environ))
        with distributed.Client(scheduler_file=file, direct_to_workers=True) as client:
            client.wait_for_workers(2)
            # Workers import the package once.
            list(cluster.packets(client, filter="udp port 53", arrays=arrays))
            for name, expression in QUERIES.items():
                _rounds(client, arrays, rounds, name, expression)
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def _rounds(client, arrays, rounds, name, expression):
    ratios = []
    for _ in range(rounds):
        rows = []

        def local(path):
            reader = pyarrow.RecordBatchReader.from_stream(longtake.open(path).packets(filter=expression))
            rows.append(sum(batch.num_rows for batch in reader))

        parts = sum(seconds(lambda: local(path)) for [path] in arrays.values())

        def query():
            found = cluster.packets(client, filter=expression, arrays=arrays)
            assert sum(batch.num_rows for batch in found) == sum(rows)

        whole = seconds(query)
        ratios.append(whole / parts)
        print(f"  {sum(rows)} packets: {parts:.2f} s locally, {whole:.2f} s by the cluster", flush=True)
    shown(f"{name}, times as long as its local parts", ratios, "1.2 or less")


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder")
    arguments.add_argument("rounds", nargs="?", type=int, default=5)
    arguments.add_argument("--plans", type=int, default=200)
    arguments.add_argument("--gigabytes", type=float, default=1)
    given = arguments.parse_args()
    swept("plans by arithmetic", arithmetic(given.plans), given.rounds)
    swept("plans with their proofs", proved(given.plans), given.rounds)
    place = tempfile.mkdtemp(dir=given.folder)
    try:
        queried(place, int(given.gigabytes * 1e9), given.rounds)
    finally:
        shutil.rmtree(place)
