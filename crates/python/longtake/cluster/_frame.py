"""Packets as a frame of Dask. Each partition is read on the host that has its array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask.dataframe
import distributed
import pandas
import pyarrow
from dask._task_spec import GraphNode
from distributed.diagnostics.plugin import SchedulerPlugin

from . import _slices
from ._slices import Reading, Slice


def frame(
    client: distributed.Client, parts: list[Slice], reading: Reading, schema: pyarrow.Schema
) -> dask.dataframe.DataFrame:
    """A frame with a partition for each slice."""
    client.register_plugin(Pinning(), name=Pinning.name)
    meta = _pandas(schema.empty_table())
    if not parts:
        return dask.dataframe.from_pandas(meta, npartitions=1)
    return dask.dataframe.from_map(_partition, parts, reading=reading, meta=meta, enforce_metadata=False)


def _partition(part: Slice, reading: Reading) -> pandas.DataFrame:
    return _pandas(_slices.read(part, reading, None).table)


def _pandas(table: pyarrow.Table) -> pandas.DataFrame:
    """With Arrow's types. Names are texts, since categories would differ between partitions."""
    plain = [
        field.with_type(pyarrow.string()) if pyarrow.types.is_dictionary(field.type) else field for field in table.schema
    ]
    return table.cast(pyarrow.schema(plain)).to_pandas(types_mapper=pandas.ArrowDtype)


class Pinning(SchedulerPlugin):
    """Restricts a task that reads a slice to the slice's host.

    Frames of Dask ignore annotations, and fuse what reads a partition with what works on it. So the tasks themselves are searched as
    they come to the scheduler.
    """

    name = "longtake-pinning"

    def start(self, scheduler: Any) -> None:
        self._scheduler = scheduler

    def update_graph(self, scheduler: Any, *, tasks: list[Any], **rest: Any) -> None:
        for key in tasks:
            state = scheduler.tasks.get(key)
            if state is None or state.run_spec is None:
                continue
            if len(hosts := {part.address for part in _slices_in(state.run_spec)}) == 1:
                state.host_restrictions = hosts
                state.loose_restrictions = False


def _slices_in(value: Any) -> Iterator[Slice]:
    """The slices that a task reads itself."""
    if isinstance(value, Slice):
        yield value
    elif isinstance(value, GraphNode):
        for name in ("args", "kwargs"):
            yield from _slices_in(getattr(value, name, None))
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _slices_in(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _slices_in(inner)
