"""The programs of CI, which are no package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@contextmanager
def programs(*names: str) -> Iterator[tuple[ModuleType, ...]]:
    """Yield modules of `.ci`, and forget them afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / ".ci")
        yield tuple(import_module(name) for name in names)
    for name in names:
        del sys.modules[name]
