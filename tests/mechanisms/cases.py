"""The cases that the contract is held against: every system, small enough to enumerate, and medium ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from hushcount.fingerprints import fingerprints
from hushcount.mechanism import Mechanism
from hushcount.randomness import UInt64Array
from hushcount.systems import Parameters, build

SEED = "5eed" * 16


@dataclass(frozen=True)
class Case:
    """One mechanism by the line of parameters that a campaign file holds.

    Attributes:
        name: of the case, and of its golden file.
        small: whether all its reports can be enumerated.
        spends: whether it spends all of `epsilon`; one with a given p need not.
    """

    name: str
    system: str
    epsilon: float
    domain: int | None
    parameters: Parameters = field(default_factory=dict)
    small: bool = True

    @property
    def spends(self) -> bool:
        return "p" not in self.parameters

    @cached_property
    def mechanism(self) -> Mechanism:
        return build(self.system, self.epsilon, self.domain, self.parameters)

    @property
    def items(self) -> UInt64Array:
        """All items of a small dictionary, else eight, the first and the last of a dictionary among them."""
        if self.domain is None:
            return fingerprints(f"item {number}" for number in range(8))
        return np.unique(np.linspace(0, self.domain - 1, self.domain if self.small else 8).round().astype(np.uint64))

    def at(self, factor: float) -> Mechanism:
        """Return the same mechanism, but spending `factor` times as much."""
        parameters = {key: value for key, value in self.parameters.items() if key != "p"}
        return build(self.system, factor * self.mechanism.epsilon, self.domain, parameters)

    def redrawn(self, number: int) -> Mechanism:
        """Return the mechanism with fresh functions, if it has a pool of them, else itself."""
        if self.mechanism.encoder.pool is None:
            return self.mechanism
        return build(self.system, self.epsilon, self.domain, {**self.parameters, "seed": pool_seed(number)})


def pool_seed(number: int) -> str:
    """Return the seed of the numbered pool."""
    return number.to_bytes(32, "big").hex()


SMALL = [
    Case("grr-2", "grr", 1.0, 2),
    Case("grr-5", "grr", 0.5, 5),
    Case("grr-7-high", "grr", 3.0, 7),
    Case("ss-5-one", "ss", 1.0, 5, {"s": 1}),
    Case("ss-6-two", "ss", 1.0, 6, {"s": 2}),
    Case("ss-8-all-but-one", "ss", 2.0, 8, {"s": 7}),
    Case("gcms-2-4-one", "gcms", 2.0, None, {"k": 2, "m": 4, "s": 1, "seed": SEED}),
    Case("gcms-3-5-two", "gcms", 1.0, None, {"k": 3, "m": 5, "s": 2, "seed": SEED}),
    Case("gcms-2-6-saving", "gcms", 2.0, None, {"k": 2, "m": 6, "s": 3, "p": 0.75, "seed": SEED}),
    Case("ocms-5-binary", "ocms", 1.0, 5, {"B": 2}),
    Case("ocms-6-three", "ocms", 1.5, 6, {"B": 3}),
    Case("ocms-7-unfolded", "ocms", 2.0, 7, {"B": 7}),
    Case("ais-2", "ais", 1.0, 2, {"s": 1}),
    Case("ais-5", "ais", 1.0, 5, {"s": 2}),
    Case("ais-6-wide", "ais", 1.5, 6, {"s": 6}),
    Case("ais-11", "ais", 0.7, 11, {"s": 4}),
]
MEDIUM = [
    Case("grr-60", "grr", 4.0, 60, small=False),
    Case("ss-100-bitmap", "ss", 1.0, 100, {"s": 27}, small=False),
    Case("ss-300-list", "ss", 4.0, 300, {"s": 5}, small=False),
    Case("gcms-300-64", "gcms", 1.0, None, {"k": 300, "m": 64, "s": 17, "seed": SEED}, small=False),
    Case("gcms-16-1000", "gcms", 4.0, 500, {"k": 16, "m": 1000, "s": 18, "seed": SEED}, small=False),
    Case("ocms-100", "ocms", 1.0, 100, {"B": 4}, small=False),
    Case("ocms-1000", "ocms", 3.0, 1000, {"B": 21}, small=False),
    Case("ais-100", "ais", 1.0, 100, {"s": 27}, small=False),
    Case("ais-1000", "ais", 3.0, 1000, {"s": 48}, small=False),
]
CASES = SMALL + MEDIUM
