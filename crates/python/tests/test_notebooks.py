"""The notebooks of the documentation, executed by IPython.

What they print must be what is stored in them. LONGTAKE_NOTEBOOKS=write stores what they print now, pictures included.
"""

import contextlib
import io
import os
import pathlib
import tempfile
import unittest

import nbformat
from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from nbformat.v4 import new_output
from traitlets.config import Config

#: Nobody looks at the history, and its file is gone before IPython ends.
NO_HISTORY = Config({"HistoryManager": {"enabled": False}})
FOLDER = pathlib.Path(__file__).resolve().parents[3] / "docs/notebooks"


class Silent(DisplayHook):
    """Keeps the value of a cell's last expression, and prints nothing of it."""

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        pass

    def finish_displayhook(self):
        pass


def outputs(shell, cell):
    """What a cell prints and shows, as Jupyter stores it."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        result = shell.run_cell(cell.source, store_history=True)
    result.raise_error()
    all = [new_output("stream", name="stdout", text=printed.getvalue())] if printed.getvalue() else []
    if result.result is not None:
        data, metadata = shell.display_formatter.format(result.result)
        count = result.execution_count
        all.append(new_output("execute_result", data=data, metadata=metadata, execution_count=count))
    return all


def said(outputs):
    """What outputs print. Of tables and pictures, only that they are there: their form is their library's."""
    return "".join(
        output["text"] if output.output_type == "stream"
        else "shown" if "text/html" in output.data
        else output.data["text/plain"]
        for output in outputs
    )


class Notebooks(unittest.TestCase):
    def test_every_notebook_prints_what_is_stored_in_it(self):
        paths = sorted(FOLDER.glob("*.ipynb"))
        self.assertGreaterEqual(len(paths), 4)
        for path in paths:
            with self.subTest(path.name), tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                notebook = nbformat.read(path, as_version=4)
                shell = InteractiveShell(config=NO_HISTORY, ipython_dir=folder, displayhook_class=Silent)
                for cell in (cell for cell in notebook.cells if cell.cell_type == "code"):
                    fresh = outputs(shell, cell)
                    if os.environ.get("LONGTAKE_NOTEBOOKS") != "write":
                        self.assertEqual(said(fresh), said(cell.outputs), cell.source)
                    cell.outputs, cell.execution_count = fresh, shell.execution_count - 1
                if os.environ.get("LONGTAKE_NOTEBOOKS") == "write":
                    nbformat.write(notebook, path)


if __name__ == "__main__":
    unittest.main()
