"""The entry point of the `hushcount` command: quiet imports, one sentence where the server part is missing."""

from __future__ import annotations

import logging
import signal
import sys
import warnings


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    # Beam warns at import about optional clouds that are not installed; their absence is no news to a user.
    logging.getLogger().addFilter(_is_news)
    warnings.filterwarnings("ignore", module="apache_beam")
    try:
        from pipelines.cli import app
    except ModuleNotFoundError as error:
        sys.exit(f"error: the hushcount command needs {error.name}: pip install 'hushcount[server]'")
    # As Ctrl-C does: nothing half done is left, and an engine's job is cancelled.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    app()


def _is_news(record: logging.LogRecord) -> bool:
    return "apitools not found" not in record.getMessage()
