"""Means: intervals that hold the truth as often as stated, over results, repeats and ranges."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.calibration_means import Setting, Shape, held
from hushcount.oracles.catalogue import build
from hushcount.oracles.tally import Tally
from hushcount.questions.means import Mean, Measured, change_of, mean_in

RUNS = 2_000
"""Intervals of 95 % hold the truth 92.6 to 97.2 % of the time, but for a probability of 1e-6."""


@pytest.mark.parametrize("shape", ["log-normal", "both ends"])
def test_intervals_hold_the_truth_as_often_as_stated_and_others_do_not(shape: Shape) -> None:
    setting = Setting(4.0, 300, shape)
    for share in held(setting, range(RUNS)):
        assert 0.926 < share < 0.972
    places = setting.places(0)
    found = [setting.mean(places, run).of_clients for run in range(400)]
    # Half of the error, or an error twice as large, is seen.
    for factor, low, high in ((0.5, 0.0, 0.85), (2.0, 0.98, 1.0)):
        scaled = [Measured(one.value, factor * one.error).interval(0.95) for one in found]
        assert low <= float(np.mean([a <= places.mean() <= b for a, b in scaled])) <= high


def test_answers_that_clients_repeat_widen_the_interval() -> None:
    mechanism = build("line", 2.0, 2, {"m": 7, "b": 1})
    counts = np.array([[30, 20, 10, 5, 5, 5, 5, 5, 5]])
    tally = Tally(counts, int(counts.sum()), np.arange(7, dtype=np.uint64))
    once, thrice = mean_in(mechanism, tally), mean_in(mechanism, tally, 3)
    for one, repeated in ((once.of_clients, thrice.of_clients), (once.of_all, thrice.of_all)):
        assert repeated.value == one.value
        assert repeated.error == pytest.approx(3**0.5 * one.error)
    assert once.of_all.error > once.of_clients.error
    step = change_of(once, Mean(90, Measured(0.0, 0.0), Measured(0.5, 0.3)))
    assert step.value == pytest.approx(0.5 - once.of_all.value)
    assert step.error == pytest.approx(np.hypot(once.of_all.error, 0.3))
    with pytest.raises(ValueError, match="no line"):
        mean_in(build("grr", 2.0, 2, {}), tally)
