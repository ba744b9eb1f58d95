"""The named systems: each a line of parameters on the grid of encoder and responder (docs/mathematics.md section 3).

Their further names have their place here: apple-cms, hcms, hr, rhr, olh, blh, rappor, sue, oue, wss.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hushcount.encoders.affine import Affine
from hushcount.encoders.identity import Identity
from hushcount.encoders.pool import Pool
from hushcount.errors import UsageError
from hushcount.mechanism import Mechanism
from hushcount.planning import Objective, best_buckets, best_size
from hushcount.primes import prime_at_least
from hushcount.probability import probability_threshold, require_epsilon
from hushcount.responders.interval import Interval
from hushcount.responders.randomised_response import RandomisedResponse
from hushcount.responders.subset import Subset

Parameters = Mapping[str, int | float | str]
"""A system's own parameters by the letters of docs/mathematics.md: k, m, s, p, B, seed."""


def grr(epsilon: float, domain: int, parameters: Parameters) -> Mechanism:
    """Generalised randomised response: identity x randomised response."""
    return Mechanism(Identity(domain), RandomisedResponse.spending(epsilon, domain))


def subset_selection(epsilon: float, domain: int, parameters: Parameters) -> Mechanism:
    """Subset Selection: identity x subset; parameter s."""
    return Mechanism(Identity(domain), Subset.spending(epsilon, domain, _integer(parameters, "s")))


def gcms(epsilon: float, domain: int | None, parameters: Parameters) -> Mechanism:
    """General Count Mean Sketch [J]: pool x subset; parameters k, m, seed, s, and p where it is not to spend all."""
    width, size = _integer(parameters, "m"), _integer(parameters, "s")
    pool = Pool(_integer(parameters, "k"), width, str(parameters["seed"]))
    if "p" not in parameters:
        return Mechanism(pool, Subset.spending(epsilon, width, size))
    responder = Subset(width, size, probability_threshold(_real(parameters, "p"), "p"))
    if responder.epsilon > epsilon:
        raise ValueError(f"p is {parameters['p']}: it spends {responder.epsilon:.6g}, must not exceed {epsilon:.6g}")
    return Mechanism(pool, responder)


def ocms(epsilon: float, domain: int, parameters: Parameters) -> Mechanism:
    """Optimised Count Mean Sketch with randomised response [P25], [P26]: affine folded mod B; parameter B."""
    buckets = _integer(parameters, "B")
    return Mechanism(Affine(domain, prime_at_least(domain), buckets), RandomisedResponse.spending(epsilon, buckets))


def ais(epsilon: float, domain: int, parameters: Parameters) -> Mechanism:
    """Affine Interval Selection (docs/mathematics.md section 4): affine x interval; parameter s."""
    prime = prime_at_least(domain)
    return Mechanism(Affine(domain, prime, prime), Interval.spending(epsilon, prime, _integer(parameters, "s")))


@dataclass(frozen=True)
class System:
    """How a named system is built and planned.

    Attributes:
        build: (epsilon, domain, parameters) to the mechanism; domain counts "other" as an item.
        fixed: parameters that have a default, with it.
        planned: the integer parameter that planning chooses when it is not given, or None.
        optional: further parameters.
        open_domain: whether it can serve items that no list holds.
    """

    build: Callable[[float, int, Parameters], Mechanism]
    fixed: Parameters
    planned: str | None
    optional: tuple[str, ...] = ()
    open_domain: bool = False


SYSTEMS: Mapping[str, System] = {
    "gcms": System(gcms, {"k": 1024, "m": 1024}, "s", optional=("p", "seed"), open_domain=True),
    "ocms": System(ocms, {}, "B"),
    "ais": System(ais, {}, "s"),
    "ss": System(subset_selection, {}, "s"),
    "grr": System(grr, {}, None),
}
MAX_DOMAIN = (1 << 31) - 1


def system(name: str) -> System:
    """Return the named system.

    Raises:
        UsageError: no system has the name; the known ones are listed and the nearest suggested.
    """
    if name in SYSTEMS:
        return SYSTEMS[name]
    near = difflib.get_close_matches(name.lower(), SYSTEMS, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise UsageError(f"mechanism is {name!r}, must be one of {', '.join(SYSTEMS)}{hint}")


def build(name: str, epsilon: float, domain: int | None, parameters: Parameters) -> Mechanism:
    """Build a mechanism from complete parameters, as a campaign file holds them.

    Args:
        name: a key of SYSTEMS.
        epsilon: the local budget of one report, in [0.0001, 40].
        domain: the number of items, "other" among them; None for an open domain.
        parameters: by the letters of docs/mathematics.md.

    Raises:
        ValueError: a parameter is missing, unknown or out of range; the sentence says which and the range.
    """
    chosen = system(name)
    require_epsilon(epsilon)
    _check_names(name, chosen, parameters)
    _check_domain(name, chosen, domain)
    required = (*chosen.fixed, *([chosen.planned] if chosen.planned else []), *(["seed"] if name == "gcms" else []))
    missing = [key for key in required if key not in parameters]
    if missing:
        raise ValueError(f"mechanism {name} lacks the parameter {missing[0]}")
    return chosen.build(epsilon, domain or 0, parameters)


def plan(
    name: str, epsilon: float, domain: int | None, settings: Parameters, objective: Objective, seed: str
) -> dict[str, int | float | str]:
    """Complete the settings: defaults, and the integer that minimises the exact variance for the objective.

    Args:
        settings: what the user fixed; the rest is filled in.
        seed: 64 hexadecimal digits for a pool's functions, where the settings hold none.

    Returns:
        Parameters that `build` takes.
    """
    chosen = system(name)
    require_epsilon(epsilon)
    _check_names(name, chosen, settings)
    _check_domain(name, chosen, domain)
    complete = {**chosen.fixed, **settings}
    if "seed" in chosen.optional:
        complete.setdefault("seed", seed)
    if "p" in complete and chosen.planned not in complete:
        raise ValueError(f"p is given without {chosen.planned}: give both, or {chosen.planned} alone, or neither")
    if chosen.planned and chosen.planned not in complete:
        # The smallest choice is always allowed, so what fails here is one of the other settings.
        build(name, epsilon, domain, {**complete, chosen.planned: 2 if chosen.planned == "B" else 1})
    if chosen.planned == "B" and "B" not in complete:
        items = domain or 2
        complete["B"] = best_buckets(epsilon, prime_at_least(items), items, objective)
    elif chosen.planned == "s" and "s" not in complete:
        width = _width(name, domain, complete)
        collision, pool = (1.0 / width, float(_integer(complete, "k"))) if chosen.open_domain else (0.0, math.inf)
        complete["s"] = best_size(epsilon, width, domain, objective, collision, pool)
    build(name, epsilon, domain, complete)
    return complete


def _width(name: str, domain: int | None, parameters: Parameters) -> int:
    if "m" in parameters:
        return _integer(parameters, "m")
    return prime_at_least(domain or 2) if name == "ais" else domain or 2


def _check_names(name: str, chosen: System, parameters: Parameters) -> None:
    known = (*chosen.fixed, *([chosen.planned] if chosen.planned else []), *chosen.optional)
    for key in parameters:
        if key not in known:
            takes = ", ".join(known) if known else "none"
            raise ValueError(f"parameter {key} is unknown to mechanism {name}, which takes: {takes}")


def _integer(parameters: Parameters, key: str) -> int:
    value = parameters[key]
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{key} is {value!r}, must be an integer")
    return value


def _check_domain(name: str, chosen: System, domain: int | None) -> None:
    if domain is None and not chosen.open_domain:
        able = ", ".join(key for key, value in SYSTEMS.items() if value.open_domain)
        raise ValueError(f"mechanism {name} needs a dictionary; an open domain is served by {able}")
    if domain is not None and not 2 <= domain <= MAX_DOMAIN:
        raise ValueError(f"domain is {domain}, must be in 2..{MAX_DOMAIN} items, 'other' included")


def _real(parameters: Parameters, key: str) -> float:
    value = parameters[key]
    if isinstance(value, (bool, str)):
        raise ValueError(f"{key} is {value!r}, must be a number")
    return float(value)
