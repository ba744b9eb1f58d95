"""Options of Beam, as on its command line: refused where they are wrong, and told to its file systems."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from contextlib import redirect_stderr

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from hushcount.errors import UsageError

_BAD_VALUE = re.compile(r"argument (?P<option>\S+): (?P<fault>.*)")


def reach_with(options: Sequence[str]) -> None:
    """Say where stores are and as whom to reach them; it stays so in this process.

    Raises:
        UsageError: an option has a value that it does not take.
    """
    _require_values(options)
    FileSystems.set_options(PipelineOptions(list(options)))


def unknown_options(options: Sequence[str]) -> list[str]:
    """Return the options that Beam knows nothing of: a misspelt one must not be ignored in silence."""
    _require_values(options)
    parsed = PipelineOptions(list(options))
    # It warns of what it discards, which is what is asked here.
    logging.getLogger("apache_beam.options").setLevel(logging.ERROR)
    return sorted(set(parsed.get_all_options(retain_unknown_options=True)) - set(parsed.get_all_options()))


def _require_values(options: Sequence[str]) -> None:
    """Refuse values that Beam's options do not take.

    Raises:
        UsageError: there is one; the option is named with what is wrong.
    """
    told = io.StringIO()
    try:
        # argparse writes of all options how they are used, and ends the process.
        with redirect_stderr(told):
            PipelineOptions(list(options)).get_all_options()
    except SystemExit as ended:
        if not ended.code:
            raise
        last = (told.getvalue().strip().splitlines() or [""])[-1]
        fault = _BAD_VALUE.search(last)
        raise UsageError(
            f"option {fault['option']}: {fault['fault']}" if fault else f"Beam's options: {last}"
        ) from None
