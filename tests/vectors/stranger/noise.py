"""Campaigns whose mixes add the noise."""

from __future__ import annotations

import math
from typing import Any

from tests.vectors.stranger.basics import require

Content = dict[str, Any]
_LONGEST = 366 * 86_400


def check(part: Any, file: Content, cells: int | None, public: int) -> None:
    """Refuse a campaign file whose section does not fit."""
    require(isinstance(part, dict) and {"epsilon", "delta"} <= set(part) <= {"epsilon", "delta", "seconds"}, "noise")
    require(all(isinstance(value, int | float) for value in part.values()), "noise")
    require(1e-4 <= part["epsilon"] <= 40 and 0 < part["delta"] < 1, "noise")
    require(("seconds" in part) != ("windows" in file), "noise")
    seconds = part.get("seconds", 1)
    require(seconds == int(seconds) and 1 <= seconds <= _LONGEST, "noise")
    require(cells is not None and public == 1 and "mechanism" not in file and not file["memory"], "noise")
    require(file["shuffle"]["minimum_batch"] == 1 and len(file["keys"]["aux_server"]) == 1, "noise")
    require(_most_dummies(part["epsilon"], part["delta"], file["shuffle"]["cap"], cells or 0) <= 1 << 25, "noise")


def answer_bytes(cells: int) -> int:
    """Return the length of an answer."""
    return -(-(cells - 1).bit_length() // 8)


def _most_dummies(epsilon: float, delta: float, cap: int, cells: int) -> int:
    loss, gain = 3 / 5 * epsilon / cap, 2 / 5 * epsilon / cap
    step = delta / sum(math.exp(lost * loss) for lost in range(cap))
    require(step * 2**64 >= 1 and epsilon / (2 * cap) >= 1e-4, "noise")
    above = 1 / math.expm1(gain)
    below = [math.exp(-loss * number) for number in range(int(50 / loss))]
    mass, bound = above, 0
    for bound, weight in enumerate(below):
        mass += weight
        if weight <= step * mass and bound >= cap - 1:
            break
    weights = [*reversed(below[: bound + 1]), *(math.exp(-gain * number) for number in range(1, int(50 / gain)))]
    mean = sum(number * weight for number, weight in enumerate(weights)) / mass
    variance = sum((number - mean) ** 2 * weight for number, weight in enumerate(weights)) / mass
    return math.ceil(cells * mean + 8 * math.sqrt(cells * variance))
