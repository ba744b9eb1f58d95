"""The lanes of the machine that runs the tests."""

from __future__ import annotations

from functools import cache

import pytest

from sealed_lanes import FaultyLanes, Lanes, NoLanes, make_lanes


@cache
def of_this_machine() -> Lanes:
    """Make them, or skip and let the summary say so on a machine without; code that fails its test fails."""
    try:
        return make_lanes()
    except FaultyLanes:
        raise
    except NoLanes as reason:
        pytest.skip(f"NOT TESTED HERE: {reason}")
