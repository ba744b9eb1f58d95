"""The entry point of the `hushcount` command: quiet imports, output that any terminal can show, and a clean stop."""

from __future__ import annotations

import codecs
import gc
import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper

from pipelines.console.charts import PLAIN
from pipelines.console.loading import loading

_PLAIN = {**PLAIN, "±": "+-", "ε": "epsilon", "δ": "delta", "…": "...", "≥": ">=", "≤": "<="}
_PLAINLY = "hushcount-plainly"


_COLLECTED = 200_000
"""The number of new objects after which Python looks for reference cycles.

A fold of years has millions of objects and no cycle, and more frequent searches took half the time of `hushcount
status`.
"""


def main(app: Callable[[], None] | None = None) -> None:
    """Run a command line, by default the command line of `hushcount`."""
    gc.set_threshold(_COLLECTED)
    with loading():
        _speak_plainly()
        _quieten()
        if app is None:
            from pipelines import cli

            app = cli.app
    # SIGTERM then acts as Ctrl-C, which leaves no half-done work, and cancels the job of an engine.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()


def _speak_plainly() -> None:
    """Make standard output and standard error replace letters that their encodings lack."""
    codecs.register_error(_PLAINLY, _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_PLAINLY)


def _quieten() -> None:
    import logging
    import warnings

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    # When it is imported, Beam warns about packages of clouds that are not installed.
    logging.getLogger().addFilter(lambda record: "apitools not found" not in record.getMessage())
    systems = logging.getLogger("apache_beam.io.filesystems")
    systems.addFilter(lambda record: "Failed to import GCSFileSystem" not in record.getMessage())
    # Google's libraries warn about old versions of Python, but our package already states which versions it needs.
    warnings.filterwarnings("ignore", module="apache_beam|google")


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """Replace letters that an encoding lacks by similar letters or an escape, so that no value is lost."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    shown = (_PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode("ascii") for letter in lacking)
    return "".join(shown), error.end
