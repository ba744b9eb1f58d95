"""The lanes of this machine, made once."""

from __future__ import annotations

import pytest

from keys.lanes.engine import FaultyLanes, Lanes, NoLanes, make_lanes


@pytest.fixture(scope="session")
def lanes() -> Lanes:
    """A machine without their instructions skips, and the summary says so; code that fails its test fails."""
    try:
        return make_lanes()
    except FaultyLanes:
        raise
    except NoLanes as reason:
        pytest.skip(f"NOT TESTED HERE: {reason}")
