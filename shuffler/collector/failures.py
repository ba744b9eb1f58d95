"""What an operator is told of an error."""

from __future__ import annotations

import errno


def kind_of(error: BaseException | None) -> str:
    """Return the operating system's symbol of an error, as ENOSPC, or else its type: what it says is others' words."""
    name = type(error).__name__
    return errno.errorcode.get(error.errno or 0, name) if isinstance(error, OSError) else name
