"""Record packets and sensor streams on NVMe drives, and read them as Arrow and NumPy.

    import longtake

    with longtake.record("udp:127.0.0.1:5000", "./radar", duration="10s") as recording:
        recording.wait()
    for time_ns, payload in longtake.open("./radar").packets().raw(payload=True):
        ...

Times are nanoseconds since 1970, datetimes with a time zone, or texts such as "-10m". Sizes are bytes, or texts such as "2GiB".
"""

from ._array import Array, open
from ._longtake import LongtakeError, __version__
from ._packets import Packets
from ._recording import Recording, record

__all__ = ["Array", "LongtakeError", "Packets", "Recording", "__version__", "open", "record"]
