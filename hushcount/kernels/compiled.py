"""Compile the inner loops: once for each machine, and to run without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Loop], Loop]:
    """Return the decorator of a compiled function with the Python function's signature; options are `numba.njit`'s."""
    # numba ships no types for its decorators.
    return cast("Callable[[Loop], Loop]", numba.njit(cache=True, nogil=True, **options))
