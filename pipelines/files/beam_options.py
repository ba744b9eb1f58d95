"""Check Beam's options, in the form of Beam's command line, and pass them to Beam's file systems."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from contextlib import redirect_stderr
from functools import lru_cache

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from hushcount.errors import UsageError

_BAD_VALUE = re.compile(r"argument (?P<option>\S+): (?P<fault>.*)")


def reach_with(options: Sequence[str]) -> None:
    """Give the options, such as addresses of stores and credentials, to Beam's file systems in this process.

    Raises:
        UsageError: the value of an option is not valid.
    """
    _require_values(options)
    FileSystems.set_options(_parsed(tuple(options)))


@lru_cache(maxsize=4)
def _parsed(options: tuple[str, ...]) -> PipelineOptions:
    """Return the same object for equal options, because the cache of stores' clients uses this object as its key."""
    return PipelineOptions(list(options))


def unknown_options(options: Sequence[str]) -> list[str]:
    """Return the options that Beam does not know, because Beam would silently ignore a misspelt option."""
    if not options:
        return []
    _require_values(options)
    parsed = PipelineOptions(list(options))
    # Beam logs a warning about each unknown option; the caller reports unknown options.
    logging.getLogger("apache_beam.options").setLevel(logging.ERROR)
    return sorted(set(parsed.get_all_options(retain_unknown_options=True)) - set(parsed.get_all_options()))


def _require_values(options: Sequence[str]) -> None:
    """Raise UsageError if the value of an option is not valid; the error names the option and the fault."""
    # Return at once without options, as in most jobs, because Beam takes milliseconds to parse even an empty list.
    if not options:
        return
    usage = io.StringIO()
    try:
        # If a value is bad, argparse prints the usage of all options and ends the process.
        with redirect_stderr(usage):
            PipelineOptions(list(options)).get_all_options()
    except SystemExit as ended:
        if not ended.code:
            raise
        last = (usage.getvalue().strip().splitlines() or [""])[-1]
        fault = _BAD_VALUE.search(last)
        raise UsageError(
            f"option {fault['option']}: {fault['fault']}" if fault else f"Beam's options: {last}"
        ) from None
