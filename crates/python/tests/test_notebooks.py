"""The notebooks of the documentation, executed as Jupyter does.

What they print must be what is stored in them. LONGTAKE_NOTEBOOKS=write stores what they print now, pictures included.
"""

import copy
import os
import pathlib
import tempfile
import unittest

import nbformat
from nbclient import NotebookClient

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "docs/notebooks"


def printed(notebook):
    """What each cell printed. Of tables and pictures, only that they are there: their form is their library's."""

    def text(output):
        data = output.get("data", {})
        return "shown" if "text/html" in data else output.get("text") or data["text/plain"]

    # What is printed may come in several pieces.
    return ["".join(map(text, cell.outputs)) for cell in notebook.cells if cell.cell_type == "code"]


class Notebooks(unittest.TestCase):
    def test_every_notebook_prints_what_is_stored_in_it(self):
        paths = sorted(FOLDER.glob("*.ipynb"))
        self.assertGreaterEqual(len(paths), 4)
        for path in paths:
            with self.subTest(path.name), tempfile.TemporaryDirectory() as folder:
                stored = nbformat.read(path, as_version=4)
                fresh = copy.deepcopy(stored)
                resources = {"metadata": {"path": folder}}
                NotebookClient(fresh, timeout=None, resources=resources, record_timing=False).execute()
                if os.environ.get("LONGTAKE_NOTEBOOKS") == "write":
                    nbformat.write(fresh, path)
                else:
                    self.assertEqual(printed(fresh), printed(stored))


if __name__ == "__main__":
    unittest.main()
