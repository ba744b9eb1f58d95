"""The log of a service: one line of JSON for each event; single requests are not logged."""

from __future__ import annotations

import errno
import json
import logging
import traceback
from collections.abc import Collection
from datetime import datetime, timezone

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "color_message", "taskName"}


class JsonLines(logging.Formatter):
    """Writes time, level, event and facts as JSON.

    Of an exception only type and place are logged, because its text may hold a client's data.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage().strip(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _PLAIN}
        if record.exc_info and record.exc_info[0] is not None:
            last = traceback.extract_tb(record.exc_info[2])[-1:]
            line["exception"] = record.exc_info[0].__name__
            line["raised_in"] = [f"{frame.filename}:{frame.lineno}" for frame in last]
        return json.dumps(line, default=str)


def log_to_stderr(service: str) -> None:
    """Send the events of hushcount.SERVICE, and the HTTP server's errors, to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    # The server's warnings are about single requests, so only its errors are logged.
    levels = {f"hushcount.{service}": logging.INFO, "hushcount.service": logging.INFO, "uvicorn.error": logging.ERROR}
    for name, level in levels.items():
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level)
        logger.propagate = False


def error_name(error: BaseException | None) -> str:
    """Return an error's system symbol, such as ENOSPC, or its type; never its text, which may hold a client's data."""
    name = type(error).__name__
    return errno.errorcode.get(error.errno or 0, name) if isinstance(error, OSError) else name


def log_paths(log: logging.Logger, faults: Collection[str], before: Collection[str]) -> frozenset[str]:
    """Log each fault with a path that is not among those before, because `/readyz` leaves out its directories.

    Returns:
        The faults, for the next call.
    """
    for fault in faults:
        if "/" in fault and fault not in before:
            log.error("not ready", extra={"fault": fault})
    return frozenset(faults)
