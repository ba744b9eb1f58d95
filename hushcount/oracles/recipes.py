"""How the named frequency oracles are made: functions that build a mechanism, and rules that plan a parameter."""

from __future__ import annotations

import math
from collections.abc import Callable

from hushcount.maths import field61
from hushcount.maths.line import best_line
from hushcount.maths.objectives import Objective, best_buckets, best_size
from hushcount.maths.primes import prime_at_least
from hushcount.maths.probability import probability_threshold
from hushcount.maths.variance import supporting
from hushcount.oracles.encoders.affine import Affine
from hushcount.oracles.encoders.hadamard import Hadamard
from hushcount.oracles.encoders.identity import Identity
from hushcount.oracles.encoders.line import Line
from hushcount.oracles.encoders.nested import Nested
from hushcount.oracles.encoders.pool import Pool
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.parameters import Parameters, Value, integer, real
from hushcount.oracles.responders.base import Responder
from hushcount.oracles.responders.interval import Interval
from hushcount.oracles.responders.randomised_response import RandomisedResponse
from hushcount.oracles.responders.subset import Subset

Build = Callable[[float, int | None, Parameters], Mechanism]
"""Makes a mechanism from (epsilon, domain, parameters); domain counts "other" as an item."""
Rule = Callable[[float, int | None, Parameters, Objective], Value]
"""Plans a parameter from (epsilon, domain, parameters so far, objective)."""


def over_identity(responder: Callable[[float, int], Responder]) -> Build:
    """Return the builder of a responder over the items themselves; `responder` takes (epsilon, cells)."""
    return lambda epsilon, domain, _: Mechanism(Identity(domain or 0), responder(epsilon, domain or 0))


def over_pool(responder: Callable[[float, int], Responder]) -> Build:
    """Return the builder of a responder over the cells of a pool; `responder` takes (epsilon, cells)."""
    return lambda epsilon, _, parameters: Mechanism(_pool(parameters), responder(epsilon, integer(parameters, "m")))


def _pool(parameters: Parameters) -> Pool:
    return Pool(integer(parameters, "k"), integer(parameters, "m"), str(parameters["seed"]))


def subset_selection(epsilon: float, domain: int | None, parameters: Parameters) -> Mechanism:
    """Subsets of the items."""
    return Mechanism(Identity(domain or 0), Subset.spending(epsilon, domain or 0, integer(parameters, "s")))


def weighted_subset_selection(epsilon: float, domain: int | None, parameters: Parameters) -> Mechanism:
    """Reports are rows of a weighted design over the items."""
    # Imported here: other mechanisms need no designs, and clients start sooner without them.
    from hushcount.designs.sources import load_design
    from hushcount.oracles.responders.weighted_design import WeightedDesign

    design = load_design(str(parameters["design"]))
    if design.width < (domain or 0):
        raise ValueError(f"design is {design.name}: its {design.width} cells must be at least the {domain} items")
    if "s" in parameters and integer(parameters, "s") != design.size:
        raise ValueError(f"s is {parameters['s']}, must be {design.size}, that of the design, or left out")
    return Mechanism(Identity(domain or 0, design.width), WeightedDesign.of_design(epsilon, design))


def line(epsilon: float, domain: int | None, parameters: Parameters) -> Mechanism:
    """Reports are windows of points on a line."""
    points, spare = integer(parameters, "m"), integer(parameters, "b")
    if domain != 2:
        raise ValueError("mechanism line serves a mean of numbers: make the campaign with --number LOW:HIGH --mean")
    responder = Interval.spending(epsilon, points + 2 * spare, 2 * spare + 1)
    return Mechanism(Line(points, spare, responder.p), responder)


def general_sketch(epsilon: float, domain: int | None, parameters: Parameters) -> Mechanism:
    """Reports are subsets of a pool's cells; p may be smaller than the budget allows."""
    pool, size = _pool(parameters), integer(parameters, "s")
    if "p" not in parameters:
        return Mechanism(pool, Subset.spending(epsilon, pool.cells, size))
    responder = Subset(pool.cells, size, probability_threshold(real(parameters, "p"), "p"))
    if responder.epsilon > epsilon:
        raise ValueError(f"p is {parameters['p']}: it spends {responder.epsilon:.6g}, must not exceed {epsilon:.6g}")
    return Mechanism(pool, responder)


def hadamard_sketch(epsilon: float, domain: int | None, parameters: Parameters) -> Mechanism:
    """Reports are signs of a pool's cells."""
    pool = _pool(parameters)
    return Mechanism(Nested(pool, Hadamard(pool.cells)), RandomisedResponse.spending(epsilon, 2))


def hadamard(epsilon: float, domain: int | None, parameters: Parameters) -> Mechanism:
    """Reports are signs of the items in `2**(b-1)` blocks, or in one block if there is no b."""
    bits, most = integer(parameters, "b") if "b" in parameters else 1, (domain or 2).bit_length()
    if not 1 <= bits <= most:
        raise ValueError(f"b is {bits}, must be in 1..{most} bits for {domain} items: there are 2**(b-1) blocks")
    encoder = Hadamard(domain or 0, 1 << (bits - 1))
    return Mechanism(encoder, RandomisedResponse.spending(epsilon, encoder.cells))


def folded(epsilon: float, domain: int | None, parameters: Parameters) -> Mechanism:
    """Affine functions are folded into B buckets, with randomised response over the buckets."""
    buckets = integer(parameters, "B")
    return Mechanism(Affine(domain, _prime(domain), buckets), RandomisedResponse.spending(epsilon, buckets))


def affine_intervals(epsilon: float, domain: int | None, parameters: Parameters) -> Mechanism:
    """Windows of affine residues."""
    prime = _prime(domain)
    return Mechanism(Affine(domain, prime, prime), Interval.spending(epsilon, prime, integer(parameters, "s")))


def _prime(domain: int | None) -> int:
    return field61.PRIME if domain is None else prime_at_least(domain)


def target(parameters: Parameters) -> Objective:
    """The variance of items of share f."""
    share = real(parameters, "f")
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"f is {share}, must be in [0, 1]")
    return Objective("target", share)


def worst_case(parameters: Parameters) -> Objective:
    """The largest variance at any share up to f."""
    return Objective("mse", largest=real(parameters, "f"))


def size(epsilon: float, domain: int | None, parameters: Parameters, objective: Objective) -> Value:
    """The size s of subsets of the items."""
    return best_size(epsilon, domain or 0, domain, objective)


def window(epsilon: float, domain: int | None, parameters: Parameters, objective: Objective) -> Value:
    """The size s of windows of residues."""
    return best_size(epsilon, _prime(domain), domain, objective)


def pool_size(epsilon: float, domain: int | None, parameters: Parameters, objective: Objective) -> Value:
    """The size s of subsets of a pool's cells."""
    pool = _pool(parameters)
    clash = 1.0 / (pool.rows * (pool.cells - 1))
    return best_size(epsilon, pool.cells, domain, objective, lambda p, q: supporting(p, q, 1.0 / pool.cells, clash))


def buckets(epsilon: float, domain: int | None, parameters: Parameters, objective: Objective) -> Value:
    """The number B of buckets that is best for the objective."""
    return best_buckets(epsilon, _prime(domain), domain, objective)


def rounded_buckets(epsilon: float, domain: int | None, parameters: Parameters, objective: Objective) -> Value:
    """The number B of buckets of optimal local hashing, `round(1 + e)`."""
    return min(max(2, round(1.0 + math.exp(epsilon))), _prime(domain))


def bits(epsilon: float, domain: int | None, parameters: Parameters, objective: Objective) -> Value:
    """The b of Chen et al.: the least b with `2^b >= e`, but at most as many blocks as items."""
    return min(max(1, math.ceil(epsilon / math.log(2.0))), (domain or 2).bit_length())


def design(epsilon: float, domain: int | None, parameters: Parameters, objective: Objective) -> Value:
    """The nearest available design."""
    from hushcount.designs.sources import nearest_design

    return nearest_design(domain or 0, epsilon, objective, integer(parameters, "s") if "s" in parameters else None).name


def points(epsilon: float, domain: int | None, parameters: Parameters, objective: Objective) -> int:
    """Plan m of a line, by the worst variance."""
    return best_line(epsilon)[0]


def spare_cells(epsilon: float, domain: int | None, parameters: Parameters, objective: Objective) -> int:
    """Plan b of a line, by the worst variance."""
    return best_line(epsilon, integer(parameters, "m"))[1]
