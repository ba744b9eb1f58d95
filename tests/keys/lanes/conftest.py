"""The lanes of this machine, made once."""

from __future__ import annotations

import pytest

from keys.lanes.compiled import Lanes
from tests.support.opening import of_this_machine


@pytest.fixture(scope="session")
def lanes() -> Lanes:
    return of_this_machine()
