"""Whether pictures can be drawn here: one option draws, so that what draws is an extra."""

from __future__ import annotations

from importlib.util import find_spec

from hushcount.errors import UsageError


def require_pictures(what: str) -> None:
    """Raise UsageError before any work if matplotlib is not installed.

    Args:
        what: The option that draws.
    """
    if find_spec("matplotlib") is None:
        raise UsageError(
            f"{what} draws a picture, and matplotlib is missing: pip install 'hushcount-server[plots]', or leave it out"
        )
