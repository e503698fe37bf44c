"""Record packets and sensor streams on NVMe drives, read them as Arrow and NumPy, and find out which drives that takes.

    import longtake

    with longtake.record("udp:127.0.0.1:5000", "./radar", duration="10s") as recording:
        recording.wait()
    for time_ns, payload in longtake.open("./radar").packets().raw(payload=True):
        ...

    print(longtake.plan("100Gb/s", keep="10m").best)

Times are nanoseconds since 1970, datetimes with a time zone, or texts such as "-10m". Sizes are bytes, or texts such as "2GiB".
"""

from ._array import Array, open
from ._longtake import LongtakeError, __version__
from ._measuring import Fit, Measurement, fit, measure, measuring_cost
from ._packets import Packets
from ._planning import Plan, Simulation, plan, simulate
from ._recording import Recording, record

__all__ = [
    "Array",
    "Fit",
    "LongtakeError",
    "Measurement",
    "Packets",
    "Plan",
    "Recording",
    "Simulation",
    "__version__",
    "fit",
    "measure",
    "measuring_cost",
    "open",
    "plan",
    "record",
    "simulate",
]
