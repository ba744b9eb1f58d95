"""The catalogue of frequency oracles: one entry for each name, on the grid of docs/mathematics.md section 3."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from hushcount.errors import UsageError
from hushcount.maths.objectives import Objective
from hushcount.maths.probability import require_epsilon
from hushcount.oracles import recipes
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.parameters import Parameters, Value
from hushcount.oracles.recipes import Build, Rule, over_identity, over_pool
from hushcount.oracles.responders.randomised_response import RandomisedResponse
from hushcount.oracles.responders.unary import Unary

MAX_DOMAIN = (1 << 31) - 1
ANY_SEED = "0" * 64
"""A seed for plans; any seed serves, because the law of a pool does not depend on the pool's functions."""


@dataclass(frozen=True)
class FrequencyOracle:
    """How to build and plan a named frequency oracle.

    Attributes:
        title: its name in full.
        source: the publication that describes it.
        build: makes the mechanism from epsilon, domain and parameters.
        parameters: every parameter that a campaign file must have, with its default, or the rule that plans it.
        optional: further parameters, which may be left out.
        objective: makes from the parameters the objective that the rules minimise; None if the user chooses the
            objective.
        open_domain: whether the oracle works without a dictionary.
        seeded: whether the oracle needs a seed for a pool's functions.
        blocks: whether the oracle puts items in blocks.
        bit_for_each_item: whether a report grows with the dictionary.
    """

    title: str
    source: str
    build: Build
    parameters: Mapping[str, Value | Rule] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    objective: Callable[[Parameters], Objective] | None = None
    open_domain: bool = False
    seeded: bool = False
    blocks: bool = False
    bit_for_each_item: bool = False


_whole = partial(FrequencyOracle, bit_for_each_item=True)
_open = partial(FrequencyOracle, open_domain=True)
_pooled = partial(FrequencyOracle, open_domain=True, seeded=True)
_APPLE: Mapping[str, Value | Rule] = {"k": 65_536, "m": 1024}
_SKETCH: Mapping[str, Value | Rule] = {"k": 1024, "m": 1024, "s": recipes.pool_size}
_TARGET: Mapping[str, Value | Rule] = {"k": 1024, "m": 1024, "f": 0.1, "s": recipes.pool_size}
_BUCKETS: Mapping[str, Value | Rule] = {"B": recipes.buckets}

CATALOGUE: Mapping[str, FrequencyOracle] = {
    "grr": FrequencyOracle(
        "Generalised randomised response", "Kairouz et al. 2016", over_identity(RandomisedResponse.spending)
    ),
    "ss": _whole("Subset Selection", "Ye, Barg 2018; [P26] 5.1", recipes.subset_selection, {"s": recipes.size}),
    "wss": _whole(
        "Weighted Subset Selection", "[P26] 5.3", recipes.weighted_subset_selection, {"design": recipes.design}, ("s",)
    ),
    "sue": _whole("Symmetric unary encoding, basic RAPPOR", "Wang et al. 2017", over_identity(Unary.symmetric)),
    "oue": _whole(
        "Optimised unary encoding, asymmetric RAPPOR",
        "Wang et al. 2017",
        over_identity(lambda epsilon, width: Unary.spending(epsilon, width, 0.5)),
    ),
    "rappor": _pooled(
        "RAPPOR, a hash function for each cohort",
        "Erlingsson et al. 2014",
        over_pool(Unary.symmetric),
        {"k": 64, "m": 128},
    ),
    "apple-cms": _pooled("Apple's Count Mean Sketch", "Apple 2017", over_pool(Unary.symmetric), _APPLE),
    "hcms": _pooled("Apple's Hadamard Count Mean Sketch", "Apple 2017", recipes.hadamard_sketch, _APPLE),
    "gcms": _pooled("General Count Mean Sketch", "[J] section 4.1", recipes.general_sketch, _SKETCH, ("p",)),
    "gcms-target": _pooled(
        "Optimal CMS for a target share f", "[J] section 4.3", recipes.general_sketch, _TARGET, objective=recipes.target
    ),
    "he": FrequencyOracle("Hadamard encoding", "Bassily, Smith 2015; [P25] 4.1", recipes.hadamard),
    "hr": FrequencyOracle("Hadamard response", "Acharya, Sun 2019; [P25] 4.2, the same law as he", recipes.hadamard),
    "rhr": FrequencyOracle(
        "Recursive Hadamard Response", "Chen et al. 2020; [P25] 4.3", recipes.hadamard, {"b": recipes.bits}, blocks=True
    ),
    "blh": _open("Binary local hashing", "Wang et al. 2017", recipes.folded, {"B": 2}),
    "olh": _open("Optimised local hashing", "Wang et al. 2017", recipes.folded, {"B": recipes.rounded_buckets}),
    "ocms": _open("Optimised Count Mean Sketch, exact B", "docs/mathematics.md 5", recipes.folded, _BUCKETS),
    "ocms-mse": _open(
        "OCMS+RR, worst case, prior f",
        "[P25] Theorem 3.6",
        recipes.folded,
        {"f": 1.0, **_BUCKETS},
        objective=recipes.worst_case,
    ),
    "ocms-l2": _open(
        "OCMS+RR, l1 and l2 losses", "[P25] Theorem 3.8", recipes.folded, _BUCKETS, objective=lambda _: Objective("l2")
    ),
    "ocms-round": _open("OCMS, B = round(1 + e)", "[P26] 5.2", recipes.folded, {"B": recipes.rounded_buckets}),
    "ais": _open("Affine Interval Selection", "docs/mathematics.md 4", recipes.affine_intervals, {"s": recipes.window}),
}

MEANS: Mapping[str, FrequencyOracle] = {
    "line": FrequencyOracle(
        "Windows on a line, for the mean of numbers",
        "docs/mathematics.md 11",
        recipes.line,
        {"m": recipes.points, "b": recipes.spare_cells},
    ),
}
"""Oracles of one item that clients hold in part: the count of the item is the sum of their positions in a range."""


def frequency_oracle(name: str) -> FrequencyOracle:
    """Return the named frequency oracle.

    Raises:
        UsageError: no oracle has the name; the message lists the known names and suggests the nearest.
    """
    if (found := CATALOGUE.get(name) or MEANS.get(name)) is not None:
        return found
    near = difflib.get_close_matches(name.lower(), CATALOGUE, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise UsageError(f"mechanism is {name!r}, must be one of {', '.join(CATALOGUE)}{hint}")


def build(name: str, epsilon: float, domain: int | None, parameters: Parameters) -> Mechanism:
    """Build a mechanism from complete parameters, as a campaign file holds them.

    Args:
        name: a key of CATALOGUE.
        epsilon: the local budget of one report, in [0.0001, 40].
        domain: the number of items, "other" included; None for an open domain.
        parameters: by the letters of docs/mathematics.md.

    Raises:
        ValueError: a parameter is missing, unknown or out of range; the message names the parameter and the range.
    """
    chosen = _checked(name, epsilon, domain, parameters)
    required = (*chosen.parameters, *(("seed",) if chosen.seeded else ()))
    missing = [key for key in required if key not in parameters]
    if missing:
        raise ValueError(f"mechanism {name} lacks the parameter {missing[0]}")
    if chosen.objective:
        chosen.objective(parameters)
    return chosen.build(epsilon, domain, parameters)


def plan(
    name: str, epsilon: float, domain: int | None, settings: Parameters, objective: Objective, seed: str
) -> dict[str, Value]:
    """Complete the settings: defaults, and the integer that minimises the exact variance for the objective.

    Args:
        settings: the parameters that the user fixed; all others are filled in.
        seed: 64 hexadecimal digits for a pool's functions, used if the settings have no seed.

    Returns:
        Parameters that `build` takes.
    """
    chosen = _checked(name, epsilon, domain, settings)
    planned = [key for key, value in chosen.parameters.items() if callable(value)]
    if "p" in settings and any(key not in settings for key in planned):
        raise ValueError(f"p is given without {planned[0]}: give both, or {planned[0]} alone, or neither")
    complete: dict[str, Value] = dict(settings)
    if chosen.seeded:
        complete.setdefault("seed", seed)
    for key, value in chosen.parameters.items():
        if not callable(value):
            complete.setdefault(key, value)
        elif key not in complete:
            own = chosen.objective(complete) if chosen.objective else objective
            complete[key] = value(epsilon, domain, complete, own)
    build(name, epsilon, domain, complete)
    return complete


def _checked(name: str, epsilon: float, domain: int | None, parameters: Parameters) -> FrequencyOracle:
    """Return the named oracle; ValueError if the oracle lacks one of the parameters, or does not serve the domain."""
    chosen = frequency_oracle(name)
    require_epsilon(epsilon)
    known = (*chosen.parameters, *chosen.optional, *(("seed",) if chosen.seeded else ()))
    for key in parameters:
        if key not in known:
            takes = ", ".join(known) or "none"
            raise ValueError(f"parameter {key} is unknown to mechanism {name}, which takes: {takes}")
    if domain is None and not chosen.open_domain:
        able = ", ".join(key for key, value in CATALOGUE.items() if value.open_domain)
        raise ValueError(f"mechanism {name} needs a dictionary; an open domain is served by {able}")
    if domain is not None and not 2 <= domain <= MAX_DOMAIN:
        raise ValueError(f"domain is {domain}, must be in 2..{MAX_DOMAIN} items, 'other' included")
    return chosen
