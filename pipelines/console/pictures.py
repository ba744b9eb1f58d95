"""Check that matplotlib is installed, an optional dependency that only the option that draws a picture needs."""

from __future__ import annotations

from importlib.util import find_spec

from hushcount.errors import UsageError


def require_pictures(what: str) -> None:
    """Raise UsageError before any work if matplotlib is not installed.

    Args:
        what: The option that draws.
    """
    if find_spec("matplotlib") is None:
        raise UsageError(f"{what} needs matplotlib, which is not installed: pip install matplotlib, or leave it out")
