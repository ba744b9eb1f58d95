"""What a number of reports can show: the error of a count, the least share that is detected, and the reports for one.

`hushcount init` says it before anything is collected, and an empty `hushcount ask top` for its own reports. The rule of
detection is that of `ask top`: an item is detected if its p-value is at most 0.05 divided by the number of items that
are looked at (`Estimate.detected`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushcount.oracles.encoders.noisy import NoisyIdentity
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.power import detection_power, reports_to_detect

POWER = 0.95
"""The probability with which an item of the stated share is detected."""
FALSE_DETECTIONS = 0.05
"""The most probability of any false detection among all items that are looked at together."""
WANTED = 0.01
"""The share that an answer is measured by if nobody named one."""
_HALVINGS = 50


@dataclass(frozen=True)
class Sight:
    """What a collection of `reports` can show.

    Attributes:
        reports: n, reports of one window; people, if each sends one.
        looks: the number of items that are looked at together.
        wanted: the share of reports that matters, in (0, 1].
        standard_error: users: of the count of an item of the share `wanted`.
        least_share: the least share that is detected with probability POWER; None if not even an item that all hold.
        needed: a number of reports from which on the share `wanted` is detected; None if 10^12 are too few.
    """

    reports: int
    looks: int
    wanted: float
    standard_error: float
    least_share: float | None
    needed: int | None

    @property
    def shows(self) -> bool:
        """Whether an item of the share `wanted` is detected with probability POWER."""
        return self.least_share is not None and self.least_share <= self.wanted

    @property
    def is_hopeless(self) -> bool:
        """Whether the error is so large that the count would not even differ from 0 if it were looked at alone."""
        return 2.0 * self.standard_error >= self.wanted * self.reports

    def words(self, counted: str = "people") -> str:
        """Return the sentence for people; `counted`: "people" if each sends one report, else "reports"."""
        n, share = f"{self.reports:,} {counted}", percent(self.wanted)
        said = f"No item shows with {n}, not even one that all of them have"
        if self.least_share is not None:
            least = min(self.reports, math.ceil(self.least_share * self.reports - 1e-9))
            said = f"An item shows if about {percent(self.least_share)} of {n} ({least:,}) have it"
        if self.shows:
            return f"{said}."
        needs = "no number is enough" if self.needed is None else f"you need {self.needed:,} {counted} a window"
        held = self.wanted * self.reports
        hopeless = f" {share} of {n} is hopeless: error {self.standard_error:,.3g} of {held:,.3g}."
        return f"{said}; to see {share} {needs}.{hopeless if self.is_hopeless else ''}"


def percent(share: float) -> str:
    """Return a share in per cent, in two digits: 4.9 %, 0.012 %, 100 %."""
    return f"{100.0 * share:.{2 if share < 0.995 else 3}g} %"


def least_share(mechanism: Mechanism, reports: int, looks: int) -> float | None:
    """Return the least share that is detected with probability POWER; None if not even an item that all hold is.

    Args:
        mechanism: of a campaign. In a pool or a block the result depends on the values of all others, and is an
            approximation (`detection_power`).
        reports: n, at least 1.
        looks: number of items that are looked at together.
    """
    rate, n = _rate(looks), np.array([float(reports)])

    def shows(share: float) -> bool:
        return bool(detection_power(mechanism, n, share, rate)[0] >= POWER)

    if not shows(1.0):
        return None
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (low, middle) if shows(middle) else (middle, high)
    return high


def sight_of(mechanism: Mechanism, reports: int, looks: int, wanted: float = WANTED, repeats: int = 1) -> Sight:
    """Return what `reports` can show if `looks` items are looked at together.

    Args:
        mechanism: as in `least_share`.
        reports: n, at least 1, of one window.
        looks: number of items that are looked at; for `ask top` the items that the campaign follows.
        wanted: the share that matters, in (0, 1].
        repeats: l, how often a client may send the same answer (`Estimate.repeated`). With noise of the mixes: how many
            counts with dummies are added up.

    Raises:
        ValueError: `reports` is below 1, or `wanted` is not in (0, 1].
    """
    if reports < 1 or not 0.0 < wanted <= 1.0:
        raise ValueError(f"reports is {reports}, must be at least 1; share is {wanted:g}, must be in (0, 1]")
    if (noise := mechanism.encoder.noise) is not None:
        # The noise of a sum of counts does not grow with the reports.
        encoder = NoisyIdentity(mechanism.encoder.cells, noise=noise.times(repeats))
        mechanism, repeats = Mechanism(encoder, mechanism.responder), 1
    enough = reports_to_detect(mechanism, wanted, POWER, _rate(looks))
    return Sight(
        reports=reports,
        looks=looks,
        wanted=wanted,
        standard_error=math.sqrt(repeats * float(mechanism.variance(reports, wanted))),
        least_share=least_share(mechanism, -(-reports // repeats), looks),
        needed=None if enough is None else repeats * enough,
    )


def _rate(looks: int) -> float:
    return FALSE_DETECTIONS / max(1, looks)
