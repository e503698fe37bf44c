"""Computes the jobs of a sweep on a cluster. ``longtake sweep --scheduler`` runs this module.

    python3 -m longtake.cluster.jobs SCHEDULER [CA_FILE CERTIFICATE KEY]

The first line of the input is a JSON object: ``drives`` has profiles as TOML by name, and ``jobs`` has for each job its JSON, as a text,
and the name of its drive. Each line of the output is a JSON object: ``finished`` with the job's place in the list and its result, or
``failed`` with its place and why there is none. When the input ends, jobs under way are given up.
"""

from __future__ import annotations

import functools
import json
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import distributed
from distributed.security import Security

from .. import _longtake
from ._sweeping import Failed, sweep


def computed(drives: Mapping[str, str], job: tuple[str, str]) -> str:
    """The result of a job, as JSON. Runs on a worker."""
    text, drive = job
    return _longtake.sweep_job(text, drives[drive])


def results(client: distributed.Client, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What came of each job, as they are completed."""
    with sweep(client, functools.partial(computed, request["drives"]), request["jobs"]) as swept:
        for place, result in swept:
            if isinstance(result, Failed):
                error = result.error
                yield {"failed": [place, f"{type(error).__name__}: {error}"]}
            else:
                yield {"finished": [place, json.loads(result)]}


def main() -> None:
    """Reads the jobs, and prints the results."""
    # A ^C at the terminal is for the program that reads the results: it ends the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    request = json.loads(sys.stdin.readline())
    threading.Thread(target=_leave_at_the_end_of_input, daemon=True).start()
    scheduler, *files = sys.argv[1:]
    security = None
    if files:
        ca_file, certificate, key = files
        security = Security(
            tls_ca_file=ca_file, tls_client_cert=certificate, tls_client_key=key, require_encryption=True
        )
    try:
        client = distributed.Client(scheduler, security=security)
    except (OSError, TypeError, ValueError) as error:
        sys.exit(f"the scheduler at {scheduler}: {error}")
    with client:
        for line in results(client, request):
            print(json.dumps(line), flush=True)


def _leave(*_: object) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def _leave_at_the_end_of_input() -> None:
    sys.stdin.read()
    # It ends what the main thread waits for, as `_thread.interrupt_main` doesn't.
    signal.pthread_kill(threading.main_thread().ident, signal.SIGTERM)


if __name__ == "__main__":
    main()
