"""Search, sweep and record on many machines with Dask.

    from distributed import Client
    from longtake import cluster

    with Client("tls://10.0.0.1:8786", security=security) as client:
        found = cluster.packets(client, since="-10m", filter="udp port 5000")
        for batch in found:
            ...
        found.completeness["missing"], found.clock["order_within_ns"]

Dask schedules: the scheduler and the workers are those of ``dask scheduler`` and ``dask worker``. Longtake must be installed on all of
them. A host is every worker that has the same address without its port.
"""

try:
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise ImportError("longtake.cluster needs Dask: pip install 'longtake[cluster]'") from error

from ._hosts import Missing
from ._packets import Found, packets
from ._recording import Recordings, record, recordings
from ._sweeping import Failed, Sweep, sweep

__all__ = ["Failed", "Found", "Missing", "Recordings", "Sweep", "packets", "record", "recordings", "sweep"]
