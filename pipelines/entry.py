"""The entry point of the `hushcount` command: quiet imports, output for any terminal, one way to be stopped."""

from __future__ import annotations

import codecs
import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper

from pipelines.console.loading import loading

_PLAIN = {"±": "+-", "ε": "epsilon", "δ": "delta", "…": "...", "≥": ">=", "≤": "<="}
_PLAINLY = "hushcount-plainly"


def main(load: Callable[[], Callable[[], None]] | None = None) -> None:
    """Run a command line: the one that `load` returns, or that of `hushcount`."""
    with loading():
        _speak_plainly()
        _quieten()
        app = (load or _hushcount)()
    # As Ctrl-C does: nothing half done is left, and an engine's job is cancelled.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()


def _speak_plainly() -> None:
    """Let standard output and error replace letters that their encodings lack."""
    codecs.register_error(_PLAINLY, _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_PLAINLY)


def _quieten() -> None:
    import logging
    import warnings

    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    # Beam warns at import about optional clouds that are not installed; their absence is no news to a user.
    logging.getLogger().addFilter(lambda record: "apitools not found" not in record.getMessage())
    systems = logging.getLogger("apache_beam.io.filesystems")
    systems.addFilter(lambda record: "Failed to import GCSFileSystem" not in record.getMessage())
    # Google's libraries warn of a Python that they support no longer; we say ourselves which Python we need.
    warnings.filterwarnings("ignore", module="apache_beam|google")


def _hushcount() -> Callable[[], None]:
    from pipelines.cli import app

    return app


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """Say what a terminal's encoding lacks in its own letters, or as an escape: never an error, never a lost value."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    shown = (_PLAIN.get(letter) or letter.encode("ascii", "backslashreplace").decode("ascii") for letter in lacking)
    return "".join(shown), error.end
