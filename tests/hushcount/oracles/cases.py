"""The cases that the contract is held against: every law of the catalogue, small enough to enumerate, and medium."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pytest

from hushcount.arrays import UInt64Array
from hushcount.campaigns.parts import NoisePart
from hushcount.designs.sources import find_design
from hushcount.maths.fingerprints import fingerprints
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import CATALOGUE, MEANS, build, plan
from hushcount.oracles.encoders.pool import Pooled
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.parameters import Parameters, Value

SEED = "5eed" * 16


@dataclass(frozen=True, eq=False)
class Case:
    """One mechanism by the line of parameters that a campaign file holds.

    Attributes:
        name: of the case, and of its entries in the vectors.
        small: whether all its reports can be enumerated.
        spends: whether it spends all of `epsilon`; one with a given p need not.
    """

    name: str
    oracle: str
    epsilon: float
    domain: int | None
    parameters: Parameters = field(default_factory=dict)
    small: bool = True

    @property
    def spends(self) -> bool:
        return "p" not in self.parameters

    @cached_property
    def mechanism(self) -> Mechanism:
        return build(self.oracle, self.epsilon, self.domain, self.parameters)

    @property
    def items(self) -> UInt64Array:
        """All items of a small dictionary, both ends of a line, else eight, the first and the last among them."""
        if self.domain is None:
            return fingerprints(f"item {number}" for number in range(8))
        if self.oracle in MEANS:
            return np.array([0, (self.mechanism.encoder.domain or 0) - 1], dtype=np.uint64)
        return np.unique(np.linspace(0, self.domain - 1, self.domain if self.small else 8).round().astype(np.uint64))

    @property
    def pooled(self) -> bool:
        return isinstance(self.mechanism.encoder, Pooled)

    @property
    def in_blocks(self) -> bool:
        return self.mechanism.encoder.near_users(self.items, np.ones(len(self.items))) is not None

    def at(self, factor: float) -> Mechanism:
        """Return the same mechanism, but spending `factor` times as much."""
        parameters = {key: value for key, value in self.parameters.items() if key != "p"}
        return build(self.oracle, factor * self.mechanism.epsilon, self.domain, parameters)

    def redrawn(self, number: int) -> Mechanism:
        """Return the mechanism with fresh functions, if it has a pool of them, else itself."""
        if not self.pooled:
            return self.mechanism
        return build(self.oracle, self.epsilon, self.domain, {**self.parameters, "seed": pool_seed(number)})


def pool_seed(number: int) -> str:
    """Return the seed of the numbered pool."""
    return number.to_bytes(32, "big").hex()


def design(width: int, size: int) -> Parameters:
    """Return the parameters of a weighted design."""
    return {"design": find_design(width, size).name}


def pool(rows: int, cells: int, **more: Value) -> Parameters:
    """Return the parameters of a pool and of what answers for it."""
    return {"k": rows, "m": cells, "seed": SEED, **more}


_SMALL = [
    Case("grr-2", "grr", 1.0, 2),
    Case("grr-5", "grr", 0.5, 5),
    Case("grr-7-high", "grr", 3.0, 7),
    Case("ss-5-one", "ss", 1.0, 5, {"s": 1}),
    Case("ss-6-two", "ss", 1.0, 6, {"s": 2}),
    Case("ss-8-all-but-one", "ss", 2.0, 8, {"s": 7}),
    Case("wss-7-windows", "wss", 1.0, 7, design(7, 2)),
    Case("wss-10-one-stays", "wss", 1.5, 10, design(10, 3)),
    Case("wss-9-in-10", "wss", 0.7, 9, design(10, 4)),
    Case("sue-2", "sue", 1.0, 2),
    Case("sue-9-two-bytes", "sue", 0.8, 9),
    Case("oue-4", "oue", 1.0, 4),
    Case("oue-8-one-byte", "oue", 0.4, 8),
    Case("rappor-3-4", "rappor", 1.0, None, pool(3, 4)),
    Case("apple-cms-2-5", "apple-cms", 2.0, None, pool(2, 5)),
    Case("hcms-2-4", "hcms", 1.0, None, pool(2, 4)),
    Case("hcms-3-5-uneven", "hcms", 2.0, 6, pool(3, 5)),
    Case("gcms-2-4-one", "gcms", 2.0, None, pool(2, 4, s=1)),
    Case("gcms-3-5-two", "gcms", 1.0, None, pool(3, 5, s=2)),
    Case("gcms-2-6-saving", "gcms", 2.0, None, pool(2, 6, s=3, p=0.75)),
    Case("gcms-target-2-4", "gcms-target", 1.0, None, pool(2, 4, s=2, f=0.5)),
    Case("he-5", "he", 1.0, 5),
    Case("hr-8", "hr", 2.0, 8),
    Case("rhr-4-one-block", "rhr", 1.0, 4, {"b": 1}),
    Case("rhr-7-two-blocks", "rhr", 1.5, 7, {"b": 2}),
    Case("rhr-6-lone-items", "rhr", 2.0, 6, {"b": 3}),
    Case("blh-5", "blh", 1.0, 5, {"B": 2}),
    Case("olh-7", "olh", 1.0, 7, {"B": 4}),
    Case("ocms-5-binary", "ocms", 1.0, 5, {"B": 2}),
    Case("ocms-6-three", "ocms", 1.5, 6, {"B": 3}),
    Case("ocms-7-unfolded", "ocms", 2.0, 7, {"B": 7}),
    Case("ocms-mse-7", "ocms-mse", 1.0, 7, {"B": 3, "f": 0.5}),
    Case("ocms-l2-3", "ocms-l2", 1.0, 3, {"B": 2}),
    Case("ocms-round-6", "ocms-round", 1.0, 6, {"B": 4}),
    Case("ais-2", "ais", 1.0, 2, {"s": 1}),
    Case("ais-5", "ais", 1.0, 5, {"s": 2}),
    Case("ais-6-wide", "ais", 1.5, 6, {"s": 6}),
    Case("ais-11", "ais", 0.7, 11, {"s": 4}),
    Case("line-2", "line", 1.0, 2, {"m": 2, "b": 0}),
    Case("line-5", "line", 1.5, 2, {"m": 5, "b": 1}),
]
_MEDIUM = [
    Case("grr-60", "grr", 4.0, 60, small=False),
    Case("ss-100-ranked", "ss", 1.0, 100, {"s": 27}, small=False),
    Case("ss-300-few", "ss", 4.0, 300, {"s": 5}, small=False),
    Case("ss-1600-bitmap", "ss", 1.0, 1600, {"s": 430}, small=False),
    Case("gcms-list", "gcms", 6.0, None, {"k": 64, "m": 16_384, "s": 72, "seed": SEED}, small=False),
    Case("wss-98-in-100", "wss", 1.0, 98, design(100, 27), small=False),
    Case("sue-100", "sue", 1.0, 100, small=False),
    Case("oue-70", "oue", 2.0, 70, small=False),
    Case("rappor-64-128", "rappor", 3.0, 500, pool(64, 128), small=False),
    Case("apple-cms-300-64", "apple-cms", 2.0, None, pool(300, 64), small=False),
    Case("hcms-100-50", "hcms", 2.0, 500, pool(100, 50), small=False),
    Case("gcms-300-64", "gcms", 1.0, None, pool(300, 64, s=17), small=False),
    Case("gcms-16-1000", "gcms", 4.0, 500, pool(16, 1000, s=18), small=False),
    Case("gcms-target-200-40", "gcms-target", 2.0, None, pool(200, 40, s=4, f=0.2), small=False),
    Case("he-100", "he", 1.0, 100, small=False),
    Case("hr-256", "hr", 3.0, 256, small=False),
    Case("rhr-100", "rhr", 2.0, 100, {"b": 3}, small=False),
    Case("blh-1000", "blh", 0.5, 1000, {"B": 2}, small=False),
    Case("olh-300", "olh", 2.0, 300, {"B": 8}, small=False),
    Case("ocms-100", "ocms", 1.0, 100, {"B": 4}, small=False),
    Case("ocms-1000", "ocms", 3.0, 1000, {"B": 21}, small=False),
    Case("ocms-mse-200", "ocms-mse", 2.0, 200, {"B": 5, "f": 0.3}, small=False),
    Case("ocms-l2-200", "ocms-l2", 2.0, 200, {"B": 9}, small=False),
    Case("ocms-round-70000", "ocms-round", 1.0, 70_000, {"B": 4}, small=False),
    Case("ais-100", "ais", 1.0, 100, {"s": 27}, small=False),
    Case("ais-1000", "ais", 3.0, 1000, {"s": 48}, small=False),
    Case("ais-open", "ais", 1.0, None, {"s": 620_136_698_185_898_879}, small=False),
    Case("ocms-open", "ocms", 2.0, None, {"B": 8}, small=False),
    Case("line-44", "line", 6.0, 2, {"m": 44, "b": 3}, small=False),
]
CHOSEN = {case.oracle for case in _SMALL}
for name, one in CATALOGUE.items():
    # An oracle that nobody has chosen cases for is held to the contract as it is planned.
    for cases, domain in ((_SMALL, 5), (_MEDIUM, 100)):
        if name not in CHOSEN:
            planned = plan(name, 1.0, domain, pool(3, 4) if one.seeded else {}, Objective(), SEED)
            cases.append(Case(f"{name}-{domain}", name, 1.0, domain, planned, small=domain == 5))
NAMED = _SMALL + _MEDIUM
"""Of every name of the catalogue: what the vectors are of."""
ALIASES: Mapping[str, str] = {
    "apple-cms": "rappor",
    "gcms-target": "gcms",
    "hr": "he",
    **dict.fromkeys(("blh", "olh", "ocms-mse", "ocms-l2", "ocms-round"), "ocms"),
}
"""Names of a law that has another name too: with the same parameters both build equal mechanisms."""
SMALL, MEDIUM = ([case for case in cases if case.oracle not in ALIASES] for cases in (_SMALL, _MEDIUM))
CASES = SMALL + MEDIUM


class Sealed(Case):
    """Reports without noise of their own, and dummies of two mixes; no name of the catalogue."""

    @cached_property
    def mechanism(self) -> Mechanism:
        return NoisePart(epsilon=1.0, delta=1e-8).mechanism(self.domain or 0, 1)


SEALED = Sealed("sealed-9", "", math.inf, 9)


def each(cases: Sequence[Case]) -> Callable[[Callable[[Case], None]], Callable[[pytest.Subtests], None]]:
    """Make a check of one case a test of all of them, which names every case that fails."""

    def loop(check: Callable[[Case], None]) -> Callable[[pytest.Subtests], None]:
        def test(subtests: pytest.Subtests) -> None:
            for case in cases:
                with subtests.test(case.name):
                    check(case)

        # Not functools.wraps: pytest would read the signature of the check.
        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return loop
