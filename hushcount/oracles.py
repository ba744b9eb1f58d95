"""The frequency oracles by name: each a line of parameters on the grid of docs/mathematics.md section 3."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hushcount import field61
from hushcount.designs import load_design, nearest_design
from hushcount.encoders.affine import Affine
from hushcount.encoders.base import Encoder
from hushcount.encoders.hadamard import Hadamard
from hushcount.encoders.identity import Identity
from hushcount.encoders.nested import Nested
from hushcount.encoders.pool import Pool
from hushcount.mechanism import Mechanism
from hushcount.parameters import Parameters, Value, integer, real
from hushcount.planning import Objective, best_buckets, best_size
from hushcount.primes import prime_at_least
from hushcount.probability import probability_threshold
from hushcount.responders.base import Responder
from hushcount.responders.interval import Interval
from hushcount.responders.randomised_response import RandomisedResponse
from hushcount.responders.subset import Subset
from hushcount.responders.unary import Unary
from hushcount.responders.weighted_design import WeightedDesign
from hushcount.variance import supporting

Rule = Callable[[float, int | None, Parameters, Objective], Value]
"""(epsilon, domain, parameters so far, objective) to a parameter."""


@dataclass(frozen=True)
class System:
    """How a named system is built and planned.

    Attributes:
        title: its name in full.
        source: where it is described.
        build: (epsilon, domain, parameters) to the mechanism; domain counts "other" as an item.
        parameters: every parameter that a campaign file must hold, with its default, or the rule that plans it.
        optional: further parameters, which need not be there.
        open_domain: whether it can serve items that no list holds.
        seeded: whether it needs a seed for a pool's functions.
    """

    title: str
    source: str
    build: Callable[[float, int | None, Parameters], Mechanism]
    parameters: Mapping[str, Value | Rule] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    open_domain: bool = False
    seeded: bool = False


def _identity(responder: Callable[[float, int], Responder]) -> Callable[[float, int | None, Parameters], Mechanism]:
    return lambda epsilon, domain, _: Mechanism(Identity(domain or 0), responder(epsilon, domain or 0))


def _pool(parameters: Parameters) -> Pool:
    return Pool(integer(parameters, "k"), integer(parameters, "m"), str(parameters["seed"]))


def _pooled(responder: Callable[[float, int], Responder]) -> Callable[[float, int | None, Parameters], Mechanism]:
    return lambda epsilon, _, given: Mechanism(_pool(given), responder(epsilon, integer(given, "m")))


def _subset_selection(epsilon: float, domain: int | None, given: Parameters) -> Mechanism:
    return Mechanism(Identity(domain or 0), Subset.spending(epsilon, domain or 0, integer(given, "s")))


def _weighted(epsilon: float, domain: int | None, given: Parameters) -> Mechanism:
    design = load_design(str(given["design"]))
    if design.width < (domain or 0):
        raise ValueError(f"design is {design.name}: its {design.width} cells must be at least the {domain} items")
    if "s" in given and integer(given, "s") != design.size:
        raise ValueError(f"s is {given['s']}, must be {design.size}, that of the design, or left out")
    return Mechanism(Identity(domain or 0, design.width), WeightedDesign.spending(epsilon, design))


def _gcms(epsilon: float, domain: int | None, given: Parameters) -> Mechanism:
    pool, size = _pool(given), integer(given, "s")
    if "p" not in given:
        return Mechanism(pool, Subset.spending(epsilon, pool.cells, size))
    responder = Subset(pool.cells, size, probability_threshold(real(given, "p"), "p"))
    if responder.epsilon > epsilon:
        raise ValueError(f"p is {given['p']}: it spends {responder.epsilon:.6g}, must not exceed {epsilon:.6g}")
    return Mechanism(pool, responder)


def _gcms_target(epsilon: float, domain: int | None, given: Parameters) -> Mechanism:
    _target(given)
    return _gcms(epsilon, domain, given)


def _hcms(epsilon: float, domain: int | None, given: Parameters) -> Mechanism:
    pool = _pool(given)
    return Mechanism(Nested(pool, Hadamard(pool.cells)), RandomisedResponse.spending(epsilon, 2))


def _hadamard(epsilon: float, domain: int | None, given: Parameters) -> Mechanism:
    return Mechanism(Hadamard(domain or 0), RandomisedResponse.spending(epsilon, 2))


def _recursive(epsilon: float, domain: int | None, given: Parameters) -> Mechanism:
    bits, most = integer(given, "b"), (domain or 2).bit_length()
    if not 1 <= bits <= most:
        raise ValueError(f"b is {bits}, must be in 1..{most} bits for {domain} items: there are 2**(b-1) blocks")
    encoder: Encoder = Hadamard(domain or 0, 1 << (bits - 1))
    return Mechanism(encoder, RandomisedResponse.spending(epsilon, encoder.cells))


def _folded(epsilon: float, domain: int | None, given: Parameters) -> Mechanism:
    buckets = integer(given, "B")
    encoder = Affine(domain, _prime(domain), buckets)
    return Mechanism(encoder, RandomisedResponse.spending(epsilon, buckets))


def _folded_for_worst_case(epsilon: float, domain: int | None, given: Parameters) -> Mechanism:
    _worst_case(given)
    return _folded(epsilon, domain, given)


def _ais(epsilon: float, domain: int | None, given: Parameters) -> Mechanism:
    prime = _prime(domain)
    return Mechanism(Affine(domain, prime, prime), Interval.spending(epsilon, prime, integer(given, "s")))


def _prime(domain: int | None) -> int:
    return field61.PRIME if domain is None else prime_at_least(domain)


def _size(epsilon: float, domain: int | None, given: Parameters, objective: Objective) -> Value:
    return best_size(epsilon, domain or 0, domain, objective)


def _window(epsilon: float, domain: int | None, given: Parameters, objective: Objective) -> Value:
    return best_size(epsilon, _prime(domain), domain, objective)


def _pool_size(epsilon: float, domain: int | None, given: Parameters, objective: Objective) -> Value:
    rows, cells = integer(given, "k"), integer(given, "m")
    Pool(rows, cells, str(given["seed"]))
    clash = 1.0 / (rows * (cells - 1))
    return best_size(epsilon, cells, domain, objective, lambda p, q: supporting(p, q, 1.0 / cells, clash))


def _target(given: Parameters) -> Objective:
    share = real(given, "f")
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"f is {share}, must be in [0, 1]")
    return Objective("target", share)


def _worst_case(given: Parameters) -> Objective:
    return Objective("mse", largest=real(given, "f"))


def _target_size(epsilon: float, domain: int | None, given: Parameters, objective: Objective) -> Value:
    return _pool_size(epsilon, domain, given, _target(given))


def _buckets(epsilon: float, domain: int | None, given: Parameters, objective: Objective) -> Value:
    return best_buckets(epsilon, _prime(domain), domain, objective)


def _worst_case_buckets(epsilon: float, domain: int | None, given: Parameters, objective: Objective) -> Value:
    return _buckets(epsilon, domain, given, _worst_case(given))


def _l2_buckets(epsilon: float, domain: int | None, given: Parameters, objective: Objective) -> Value:
    return _buckets(epsilon, domain, given, Objective("l2"))


def _rounded_buckets(epsilon: float, domain: int | None, given: Parameters, objective: Objective) -> Value:
    return min(max(2, round(1.0 + math.exp(epsilon))), _prime(domain))


def _bits(epsilon: float, domain: int | None, given: Parameters, objective: Objective) -> Value:
    """Chen et al.: as many bits as the budget can protect, `2^b >= e`; no more blocks than items."""
    return min(max(1, math.ceil(epsilon / math.log(2.0))), (domain or 2).bit_length())


def _design(epsilon: float, domain: int | None, given: Parameters, objective: Objective) -> Value:
    return nearest_design(domain or 0, epsilon, objective, integer(given, "s") if "s" in given else None).name


_APPLE: Mapping[str, Value | Rule] = {"k": 65_536, "m": 1024}

SYSTEMS: Mapping[str, System] = {
    "grr": System("Generalised randomised response", "Kairouz et al. 2016", _identity(RandomisedResponse.spending)),
    "ss": System("Subset Selection", "Ye, Barg 2018; [P26] 5.1", _subset_selection, {"s": _size}),
    "wss": System("Weighted Subset Selection", "[P26] 5.3", _weighted, {"design": _design}, optional=("s",)),
    "sue": System("Symmetric unary encoding, basic RAPPOR", "Wang et al. 2017", _identity(Unary.symmetric)),
    "oue": System(
        "Optimised unary encoding, asymmetric RAPPOR",
        "Wang et al. 2017",
        _identity(lambda epsilon, width: Unary.spending(epsilon, width, 0.5)),
    ),
    "rappor": System(
        "RAPPOR, a hash function for each cohort",
        "Erlingsson et al. 2014",
        _pooled(Unary.symmetric),
        {"k": 64, "m": 128},
        open_domain=True,
        seeded=True,
    ),
    "apple-cms": System(
        "Apple's Count Mean Sketch", "Apple 2017", _pooled(Unary.symmetric), _APPLE, open_domain=True, seeded=True
    ),
    "hcms": System("Apple's Hadamard Count Mean Sketch", "Apple 2017", _hcms, _APPLE, open_domain=True, seeded=True),
    "gcms": System(
        "General Count Mean Sketch",
        "[J] section 4.1",
        _gcms,
        {"k": 1024, "m": 1024, "s": _pool_size},
        optional=("p",),
        open_domain=True,
        seeded=True,
    ),
    "gcms-target": System(
        "Optimal Count Mean Sketch for a target share f",
        "[J] section 4.3",
        _gcms_target,
        {"k": 1024, "m": 1024, "f": 0.1, "s": _target_size},
        open_domain=True,
        seeded=True,
    ),
    "he": System("Hadamard encoding", "Bassily, Smith 2015; [P25] 4.1", _hadamard),
    "hr": System("Hadamard response", "Acharya, Sun 2019; [P25] 4.2, the same law as he", _hadamard),
    "rhr": System("Recursive Hadamard Response", "Chen et al. 2020; [P25] 4.3", _recursive, {"b": _bits}),
    "blh": System("Binary local hashing", "Wang et al. 2017", _folded, {"B": 2}, open_domain=True),
    "olh": System("Optimised local hashing", "Wang et al. 2017", _folded, {"B": _rounded_buckets}, open_domain=True),
    "ocms": System(
        "Optimised Count Mean Sketch, exact B", "docs/mathematics.md 5", _folded, {"B": _buckets}, open_domain=True
    ),
    "ocms-mse": System(
        "OCMS+RR for the worst case, prior f",
        "[P25] Theorem 3.6",
        _folded_for_worst_case,
        {"f": 1.0, "B": _worst_case_buckets},
        open_domain=True,
    ),
    "ocms-l2": System(
        "OCMS+RR for the l1 and l2 losses", "[P25] Theorem 3.8", _folded, {"B": _l2_buckets}, open_domain=True
    ),
    "ocms-round": System("OCMS, B = round(1 + e)", "[P26] 5.2", _folded, {"B": _rounded_buckets}, open_domain=True),
    "ais": System("Affine Interval Selection", "docs/mathematics.md 4", _ais, {"s": _window}, open_domain=True),
}
