"""Which changes would have been seen, predicted and simulated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.calibration_changes import LISTED, Scene, powers, zipf
from hushcount.errors import UsageError
from hushcount.questions.comparing import compared
from hushcount.questions.power import least_of, level_of, power_of
from tests.support.statistics import deviations


@pytest.mark.long
def test_a_change_is_found_as_often_as_predicted() -> None:
    """Fails with probability below 1e-6; power with half of the reports is told apart."""
    predicted, seen = powers(LISTED, range(100))
    error = 1.25 * deviations() * seen.std() / np.sqrt(len(seen))
    assert 0.5 < predicted < 0.7
    assert abs(seen.mean() - predicted) <= error + 0.01
    half, _ = powers(replace(LISTED, reports=(20_000, 20_000)), range(1))
    assert abs(seen.mean() - half) > error + 0.01


SCENE = Scene("ss", "ss", 2.0, np.append(zipf(20) * 0.9, [0.1, 0.0]), (20_000, 10_000), size=11)


def test_the_least_ratio_is_seen_with_the_power() -> None:
    before, after = SCENE.sides(0)
    groups = [group for group in SCENE.groups if group.name != SCENE.dictionary.items[-1]]
    least = least_of(compared([before], [after], groups))
    seen = np.isfinite(least)
    assert seen.sum() >= 3
    for group, ratio in zip(np.array(groups, dtype=object)[seen], least[seen], strict=True):
        assert power_of(compared([before], [after], [group]), float(ratio))[0] == pytest.approx(0.8, abs=1e-6)
    # A stricter level needs a larger change; so does more power.
    assert (least_of(compared([before], [after], groups), level=0.001)[seen] > least[seen]).all()
    assert (least_of(compared([before], [after], groups), power=0.95)[seen] > least[seen]).all()


def test_no_change_is_seen_at_the_level_and_a_fall_as_a_rise() -> None:
    before, after = SCENE.sides(0)
    groups = SCENE.groups
    assert power_of(compared([before], [after], groups), 1.0, 0.01) == pytest.approx(
        np.full(len(groups), 0.01), abs=1e-9
    )
    rise, fall = (power_of(compared([before], [after], groups[:1]), ratio)[0] for ratio in (1.1, 0.9))
    assert rise == pytest.approx(fall, rel=0.05)


def test_of_an_item_that_nobody_holds_no_ratio_is_seen() -> None:
    scene = replace(
        SCENE, before=np.append(np.full(20, 0.05), 0.0), reports=(100_000, 100_000), epsilon=8.0, oracle="grr"
    )
    before, after = scene.sides(1)
    nobody = scene.groups[20]
    assert least_of(compared([before], [after], [nobody]))[0] > 2.0
    assert power_of(compared([before], [after], [nobody]), 1.5)[0] < 0.2


def test_the_level_of_a_list_is_that_of_what_was_found() -> None:
    assert level_of(np.array([0.01, 0.04, 0.2, 0.9])) == pytest.approx(0.025)
    assert level_of(np.array([0.9, 0.8])) == pytest.approx(0.025)


def test_what_is_out_of_range_is_one_sentence() -> None:
    before, after = SCENE.sides(0)
    both = compared([before], [after], SCENE.groups[:1])
    with pytest.raises(UsageError, match=r"ratio is 0.0,.* 0"):
        power_of(both, 0.0)
    with pytest.raises(UsageError, match=r"level is 0.0,.*\(0, 1\)"):
        power_of(both, 1.5, 0.0)
    with pytest.raises(UsageError, match=r"power is 0.01,.*0.05"):
        least_of(both, 0.01)
