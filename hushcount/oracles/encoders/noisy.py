"""Identity with dummies of the mixes: each cell of the tally counts some dummies too."""

from __future__ import annotations

from dataclasses import dataclass, field

from hushcount.oracles.encoders.base import Scored
from hushcount.oracles.encoders.identity import Identity
from hushcount.oracles.estimates import Estimate
from hushcount.oracles.noisy_counts import MixNoise, NoisyCounts


@dataclass(frozen=True)
class NoisyIdentity(Identity):
    """An item is its own cell, and each mix adds dummies to every item, independently (docs/adr/0061).

    Args:
        noise: the law of the dummies.
    """

    noise: MixNoise = field(kw_only=True)

    def estimate(self, scored: Scored) -> Estimate:
        return NoisyCounts.of(scored.count, self.noise.times(scored.tally.batches).error_of(1, self.domain))
