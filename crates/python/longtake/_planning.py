"""How many drives a rate needs, and recordings on simulated drives."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from . import _longtake
from ._result import Result

#: Is told the share of the work that is done, 0 to 1, ten times a second at most.
Progress = Callable[[float], None]

#: What a plan tells of an array, beside the drive.
_ARRAY = (
    "drives",
    "binds",
    "headroom_percent",
    "retention_s",
    "life_years",
    "buffer_bytes",
    "cost",
)


class Plan(Result):
    """How many of each drive a requirement needs, the fewest first."""

    @property
    def designs(self) -> list[dict[str, Any]]:
        """The design with each drive: the array, what each limit needs, the figures and the arithmetic behind it."""
        return self.values["designs"]

    @property
    def best(self) -> dict[str, Any] | None:
        """The first design that meets the requirement; None if none does."""
        return next((design for design in self.designs if design["array"]), None)

    @property
    def proofs(self) -> list[dict[str, Any]]:
        """What came of recording on simulated drives; empty without ``prove``."""
        return self.values["proofs"]

    @property
    def confirmed(self) -> bool:
        """Whether something was recorded on simulated drives, and every recording confirmed the plan's number of drives."""
        return bool(self.proofs) and all(proof["verdict"] == "confirmed" for proof in self.proofs)

    def __repr__(self) -> str:
        if (best := self.best) is None:
            return "<longtake.Plan: no number of these drives will do>"
        return f"<longtake.Plan: {best['array']['drives']} of {best['drive']}, {best['array']['binds']} binds>"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row for each drive: how many it takes, the limit that binds, headroom in percent, what is held in seconds, life in years,
        buffers in bytes, cost. They are None where no number of drives will do."""
        return [
            {"drive": design["drive"], "model": design["model"]}
            | {name: (design["array"] or {}).get(name) for name in _ARRAY}
            for design in self.designs
        ]


class Simulation(Result):
    """What came of a recording on simulated drives."""

    @property
    def lossless(self) -> bool:
        """Whether everything that was offered is stored."""
        return self.first_loss is None

    @property
    def first_loss(self) -> dict[str, Any] | None:
        """When data was lost first (``after_s``), and why."""
        return self.values["first_loss"]

    @property
    def ledger(self) -> dict[str, Any]:
        """The account: offered = stored + filtered + each kind of loss."""
        return self.values["ledger"]

    @property
    def drives(self) -> list[dict[str, Any]]:
        """What each drive went through: bytes written, write amplification, passes, life."""
        return self.values["drives"]

    def __repr__(self) -> str:
        return f"<longtake.Simulation: {'no loss' if self.lossless else self.first_loss['text']}>"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """How it went: seconds since the start, fill of the array (0 to 1, more after the first lap), rate of all drives together in
        bytes a second, the most buffers in use, bytes lost."""
        return [
            {
                "after_s": sample["after_s"],
                "fill": sample["fill"],
                "rate": sum(sample["rates"]),
                "buffers": sample["buffers_most"],
                "lost_bytes": sample["lost_bytes"],
            }
            for sample in self.values["samples"]
        ]


def plan(
    rate: str | None = None,
    *,
    drives: str | Iterable[str] = (),
    prove: bool = False,
    long: bool = False,
    progress: Progress | None = None,
    **requirement: Any,
) -> Plan:
    """Computes how many drives a rate needs, as ``longtake plan`` does.

    :param rate: what is to be recorded: "100Gb/s" or "12.5GB/s".
    :param drives: drives to choose from, by name or path [default: the library].
    :param prove: records each design on simulated drives, with as many drives as planned and with one less.
    :param long: proves every design for its whole time, which may take long.
    :param progress: is told the share of the proofs that is done.
    :param requirement: fields of a requirement's file (``longtake plan --print toml``), such as keep="8h", mission="2h", parity=1,
        frame="imix", life_years=5, memory="64GiB".
    :raises ValueError: if this can't be required.
    :raises LongtakeError: if a drive is not known.
    """
    named = [drives] if isinstance(drives, str) else list(drives)
    asked = {"rate": rate, "drives": named} | requirement
    said = {name: value for name, value in asked.items() if value is not None}
    return Plan(*_longtake.plan(said, prove, long, progress))


def simulate(
    source: str,
    target: str | os.PathLike[str],
    duration: float | timedelta | str,
    *,
    progress: Progress | None = None,
    **options: Any,
) -> Simulation:
    """Records on simulated drives in virtual time, as ``longtake record --virtual`` does: hours take seconds.

    :param source: a generated source with a rate, such as "synthetic:12.5GB/s".
    :param target: simulated drives: "sim:samsung-pm9a3-3.84tb*6", or the path of a profile, "sim:./twin.toml*6".
    :param duration: virtual time, in seconds or as a text.
    :param progress: is told the share that is done.
    :param options: options of :func:`record`, and placement ("adaptive" or "stripe"), depth, flush_interval, trim_ahead, uplink.
    :raises LongtakeError: if the drives are real or not known, or the source has no rate.
    """
    given = {"duration": duration} | options
    return Simulation(*_longtake.simulate(source, os.fspath(target), given, progress))
