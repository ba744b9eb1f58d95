"""What counts of a dictionary cost if reports are sealed and not randomised: by noise of the mixes, or by discovery."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hushcount.campaigns.campaign import bound_bytes
from hushcount.campaigns.parts import NoisePart
from hushcount.discovery.keep_rules import KeepRule
from hushcount.privacy.composition import Loss
from hushcount.privacy.joint import joint_epsilon
from hushcount.privacy.moved import Moved
from hushcount.window_starts import WINDOW_BYTES

WINDOWS, WINDOWS_DELTA = 30, 1e-6
"""How many windows are composed jointly, and the delta at which their epsilon is stated."""
_SEAL, _SEAL_IN_LANES = 62e-6, 12.6e-6
"""CPU seconds to seal a box, by libsodium and by the lanes (docs/performance.md, "The limit")."""


@dataclass(frozen=True)
class Way:
    """A way to count sealed reports, one of each client in a window.

    Attributes:
        name: of the way.
        standard_error_users: of the count of an item, in users, at any number of reports.
        shown_from: the number of reports at which a value is shown with probability 1/2; 0: all items are shown.
        dummies_an_item, dummies: mean number of dummies in a window, of both mixes, for an item and in all.
        dummy_bytes: length of all dummies as both mixes write them.
        seal_seconds, lanes_seconds: CPU time to seal them, by libsodium and by the lanes.
        windows_epsilon: epsilon of `WINDOWS` windows together at `WINDOWS_DELTA`.
        trust: the parties that must keep to their roles.
    """

    name: str
    standard_error_users: float
    shown_from: int
    dummies_an_item: float
    dummies: float
    dummy_bytes: float
    seal_seconds: float
    lanes_seconds: float
    windows_epsilon: float
    trust: str


@dataclass(frozen=True)
class Sealed:
    """The ways at one guarantee.

    Attributes:
        epsilon, delta: of a client's report in a window, replace-one.
        ways: the possible ways.
        left_out: why each other way is not possible.
    """

    epsilon: float
    delta: float
    ways: tuple[Way, ...]
    left_out: dict[str, str]

    @classmethod
    def of(cls, epsilon: float, delta: float, domain: int) -> Sealed:
        """Return the ways to count `domain` items, "other" included, with this guarantee for one report."""
        ways, left_out = [], {}
        tried: dict[str, Callable[[], Way]] = {
            "noise of the mixes": lambda: _by_noise(epsilon, delta, domain),
            "discovery with counts": lambda: _by_discovery(epsilon, delta),
        }
        for name, way in tried.items():
            try:
                ways.append(way())
            except ValueError as error:
                left_out[name] = str(error)
        return cls(epsilon, delta, tuple(ways), left_out)

    def data(self) -> dict[str, Any]:
        """Return this as JSON data."""
        return {**asdict(self), "windows": WINDOWS, "windows_delta": WINDOWS_DELTA, "words": [*self.words()]}

    def words(self) -> Iterator[str]:
        """Yield sentences."""
        for way in self.ways:
            yield f"{way.name}: trusts {way.trust}"
            if way.dummies:
                yield (
                    f"{way.dummies_an_item:.1f} dummies an item; sealing those of a window takes "
                    f"{way.seal_seconds:,.2f} s of CPU time by libsodium, {way.lanes_seconds:,.2f} s in lanes; "
                    "hushcount campaign new --noise makes such a campaign"
                )
        yield (
            "neither has a local guarantee: shuffler, auxiliary server and analyzer together, or one operator with "
            "their keys, read every value"
        )


def _by_noise(epsilon: float, delta: float, domain: int) -> Way:
    part = NoisePart(epsilon=epsilon, delta=delta)
    mechanism, noise = part.mechanism(domain, 1), part.dummies(domain, 1)
    of_mix = domain * noise.mean / noise.mixes
    box = bound_bytes(mechanism.report_bytes)
    layer = bound_bytes(WINDOW_BYTES + box)
    # The shuffler seals both boxes of its dummies, and the auxiliary server the inner one of its own.
    seals = 3.0 * of_mix
    return Way(
        name="noise of the mixes",
        standard_error_users=noise.variance**0.5,
        shown_from=0,
        dummies_an_item=noise.mean,
        dummies=domain * noise.mean,
        dummy_bytes=of_mix * (layer + box),
        seal_seconds=seals * _SEAL,
        lanes_seconds=seals * _SEAL_IN_LANES,
        windows_epsilon=joint_epsilon([Moved(noise.law, 1)] * WINDOWS, WINDOWS_DELTA),
        trust="the shuffler or the auxiliary server: either may be dishonest",
    )


def _by_discovery(epsilon: float, delta: float) -> Way:
    rule = KeepRule("optimal", epsilon, delta, counts=True)
    return Way(
        name="discovery with counts",
        standard_error_users=rule.count_law.standard_deviation,
        shown_from=rule.count_for(0.5),
        dummies_an_item=0.0,
        dummies=0.0,
        dummy_bytes=0.0,
        seal_seconds=0.0,
        lanes_seconds=0.0,
        # As the ledger charges it.
        windows_epsilon=joint_epsilon([Loss(epsilon, delta)] * WINDOWS, WINDOWS_DELTA),
        trust="the shuffler and the auxiliary server, which sees exact counts of hashes",
    )
