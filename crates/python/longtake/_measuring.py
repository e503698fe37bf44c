"""What drives sustain, and their simulated twins."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from . import _longtake
from ._planning import Progress
from ._result import Result

#: A folder, a file, a drive.
Target = str | os.PathLike[str]
#: Bytes, or a text such as "2GiB".
Size = int | str
#: Bytes a second, or a text such as "2GB/s".
Rate = float | str
#: Seconds, or a text such as "10s".
Time = float | timedelta | str


class Measurement(Result):
    """What experiments found."""

    @property
    def folder(self) -> Path:
        """The folder that holds the results, ``profile.toml`` (of one drive) and ``report.html``."""
        return Path(self.values["folder"])

    @property
    def answers(self) -> dict[str, list[str]]:
        """What each experiment found, in sentences."""
        return {outcome["experiment"]: outcome["answer"] for outcome in self.values["outcomes"]}

    @property
    def series(self) -> dict[str, dict[str, list[Any]]]:
        """The curves behind the answers, each as columns: ``pandas.DataFrame(measurement.series["fill"])``."""
        return {name: series["columns"] for name, series in self.values["series"].items()}

    @property
    def units(self) -> dict[str, dict[str, str]]:
        """The units of the series' columns."""
        return {name: series["units"] for name, series in self.values["series"].items()}

    def __repr__(self) -> str:
        return f"<longtake.Measurement: {', '.join(self.answers)}>"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each figure: the experiment, name, label, value (None if it could not be known) and unit."""
        return [
            {"experiment": outcome["experiment"]}
            | {name: figure[name] for name in ("name", "label", "value", "unit")}
            for outcome in self.values["outcomes"]
            for figure in outcome["figures"]
        ]


class Fit(Result):
    """A simulated drive, and how closely it matches the one that was measured."""

    @property
    def rejected(self) -> list[str]:
        """Levels, places or the mean of the fill that the twin misses by more than a tenth. Don't plan with it if there are any."""
        return self.values["rejected"]

    @property
    def residual(self) -> float:
        """Root mean square of the figures' differences, as a share."""
        return self.values["residual"]

    @property
    def parameters(self) -> list[dict[str, Any]]:
        """The parameters that were fitted, each with its range and whether the measurement determines it."""
        return self.values["parameters"]

    @property
    def profile(self) -> str:
        """The twin as a profile. A file of it is used as ``sim:PATH``."""
        return self.values["profile"]

    def __repr__(self) -> str:
        return f"<longtake.Fit: residual {self.residual:.1%}{', rejected' if self.rejected else ''}>"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each figure: name, unit, measured, of the twin, and the difference as a share."""
        return self.values["figures"]


def measure(
    experiments: str | Iterable[str],
    targets: Target | Iterable[Target],
    *,
    output: Target | None = None,
    erase: str | Iterable[str] = (),
    size: Size | None = None,
    block: Size | None = None,
    depth: int | None = None,
    rates: Iterable[Rate] = (),
    point: Time | None = None,
    time: Time | None = None,
    write_budget: Size | None = None,
    read_only: bool = False,
    progress: Progress | None = None,
) -> Measurement:
    """Runs experiments on drives, as ``longtake measure`` does.

    :param experiments: "fill", "stream", "steady", "mix", "neighbours", "viewers", "apps", "link", "snia", "diskmark", or several.
    :param targets: a drive, a file (one that doesn't exist is made), simulated drives ("sim:NAME"), or several.
    :param output: a new folder for the results [default: one named after the time].
    :param erase: serial numbers of drives, and paths of files, whose contents may be lost. Nothing else is written over.
    :param size: uses only so much of each drive, from its beginning.
    :param block: size of each command, for experiments that have one.
    :param depth: commands in flight, for experiments that have one number of them.
    :param rates: rates that each drive is to hold, for "fill": it is written five times over at each of them, beginning empty.
    :param point: time for each point.
    :param time: leaves out experiments that don't fit in this time.
    :param write_budget: leaves out experiments that write more bytes.
    :param read_only: leaves out everything that writes.
    :param progress: is told the share that is done.
    :raises LongtakeError: if a drive is refused, in use, or can't be opened.
    :raises ValueError: if there is no such experiment.
    """
    asked = _asked(experiments, targets, erase)
    limits = {"size": size, "block": block, "depth": depth, "rates": _texts(rates), "point": point, "time": time}
    limits |= {"write_budget": write_budget, "read_only": read_only}
    folder = None if output is None else os.fspath(output)
    return Measurement(*_longtake.measure(asked | limits | {"output": folder}, False, progress))


def measuring_cost(
    experiments: str | Iterable[str],
    targets: Target | Iterable[Target],
    *,
    erase: str | Iterable[str] = (),
    **limits: Any,
) -> dict[str, Any]:
    """What :func:`measure` would write, read and take with the same arguments, and why it would refuse. Nothing is done."""
    none = dict.fromkeys(("output", "size", "block", "depth", "point", "time", "write_budget"))
    unknown = limits.keys() - none - {"rates", "read_only"}
    if unknown:
        raise TypeError(f"measure has no argument '{min(unknown)}'")
    asked = _asked(experiments, targets, erase) | none | {"rates": [], "read_only": False} | limits
    asked["rates"] = _texts(asked["rates"])
    cost, _ = _longtake.measure(asked, True, None)
    return json.loads(cost)


def _texts(rates: Iterable[Rate]) -> list[str]:
    return [rate if isinstance(rate, str) else f"{rate}B/s" for rate in rates]


def fit(
    measurement: Target | Measurement,
    output: Target | None = None,
    *,
    like: str | None = None,
    evaluations: int = 500,
    time: Time | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Fit:
    """Finds the simulated drive that comes closest to a measured one, as ``longtake fit`` does.

    :param measurement: a folder of results, a measurement, or a profile's file.
    :param output: a file for the twin's profile; later used as "sim:PATH".
    :param like: a drive of the library. What the measurement doesn't tell is as in this drive.
    :param evaluations: simulated drives to try.
    :param time: ends the search after this time.
    :param overwrite: replaces the file if it is there.
    :param progress: is told the share of the search that is done.
    :raises LongtakeError: if the measurement doesn't tell enough.
    :raises FileExistsError: if the file is there, and is not to be replaced.
    """
    of = measurement.folder if isinstance(measurement, Measurement) else measurement
    wanted = {
        "measurement": os.fspath(of),
        "output": None if output is None else os.fspath(output),
        "like": like,
        "evaluations": evaluations,
        "time": time,
        "overwrite": overwrite,
    }
    return Fit(*_longtake.fit(wanted, progress))


def _asked(
    experiments: str | Iterable[str],
    targets: Target | Iterable[Target],
    erase: str | Iterable[str],
) -> dict[str, Any]:
    one = isinstance(targets, (str, os.PathLike))
    return {
        "experiments": [experiments] if isinstance(experiments, str) else list(experiments),
        "targets": [os.fspath(target) for target in ([targets] if one else targets)],
        "erase": [erase] if isinstance(erase, str) else [os.fspath(path) for path in erase],
    }
