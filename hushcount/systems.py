"""From a system's name and settings to complete parameters, and from these to the mechanism."""

from __future__ import annotations

import difflib

from hushcount.errors import UsageError
from hushcount.mechanism import Mechanism
from hushcount.oracles import SYSTEMS, System
from hushcount.parameters import Parameters, Value
from hushcount.planning import Objective
from hushcount.probability import require_epsilon

__all__ = ["ANY_SEED", "MAX_DOMAIN", "SYSTEMS", "Parameters", "System", "build", "plan", "system"]
MAX_DOMAIN = (1 << 31) - 1
ANY_SEED = "0" * 64
"""For plans: which functions a pool has makes no difference to its law."""


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
    required = (*chosen.parameters, *(("seed",) if chosen.seeded else ()))
    missing = [key for key in required if key not in parameters]
    if missing:
        raise ValueError(f"mechanism {name} lacks the parameter {missing[0]}")
    return chosen.build(epsilon, domain, parameters)


def plan(
    name: str, epsilon: float, domain: int | None, settings: Parameters, objective: Objective, seed: str
) -> dict[str, Value]:
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
    planned = [key for key, value in chosen.parameters.items() if callable(value)]
    if "p" in settings and any(key not in settings for key in planned):
        raise ValueError(f"p is given without {planned[0]}: give both, or {planned[0]} alone, or neither")
    complete: dict[str, Value] = dict(settings)
    if chosen.seeded:
        complete.setdefault("seed", seed)
    for key, value in chosen.parameters.items():
        if key not in complete:
            complete[key] = value(epsilon, domain, complete, objective) if callable(value) else value
    build(name, epsilon, domain, complete)
    return complete


def _check_names(name: str, chosen: System, parameters: Parameters) -> None:
    known = (*chosen.parameters, *chosen.optional, *(("seed",) if chosen.seeded else ()))
    for key in parameters:
        if key not in known:
            takes = ", ".join(known) if known else "none"
            raise ValueError(f"parameter {key} is unknown to mechanism {name}, which takes: {takes}")


def _check_domain(name: str, chosen: System, domain: int | None) -> None:
    if domain is None and not chosen.open_domain:
        able = ", ".join(key for key, value in SYSTEMS.items() if value.open_domain)
        raise ValueError(f"mechanism {name} needs a dictionary; an open domain is served by {able}")
    if domain is not None and not 2 <= domain <= MAX_DOMAIN:
        raise ValueError(f"domain is {domain}, must be in 2..{MAX_DOMAIN} items, 'other' included")
