"""What results of planning and measuring have in common: rows for tables, and a picture for notebooks."""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Result:
    """A result with rows. Notebooks show it in words and pictures."""

    def __init__(self, text: str, html: str) -> None:
        self._text, self._html = text, html

    def __getstate__(self) -> dict[str, str]:
        # Two texts go to another process faster than thousands of values.
        return {"_text": self._text, "_html": self._html}

    @functools.cached_property
    def values(self) -> dict[str, Any]:
        """Everything that was found, as the command prints it with ``--json``."""
        return json.loads(self._text)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The result as rows with equal keys, for ``polars.DataFrame(result.rows)`` and the like."""
        raise NotImplementedError

    def to_arrow(self) -> pyarrow.Table:
        """The rows as a table of pyarrow, which must be installed."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.rows)

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a frame of pandas, which must be installed."""
        import pandas

        return pandas.DataFrame(self.rows)

    def _repr_html_(self) -> str:
        return self._html
