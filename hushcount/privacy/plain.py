"""The privacy statement in two sentences for people who decide about a product."""

from __future__ import annotations

import math
from typing import Any

from hushcount.privacy.rounding import ceiling

Guarantee = dict[str, Any]


def plain_sentences(result: dict[str, Any]) -> tuple[str, str]:
    """Return what the result tells about one person, and what would be left if the parties broke their promises.

    Args:
        result: the statement's figures: local, shuffled, discovery and total, as far as there are.

    The odds between any two values that a person may have sent are what epsilon bounds: seeing the result multiplies
    them by `exp(epsilon)` at most, but for a chance of delta. Figures are rounded up.
    """
    if "local" not in result:
        return _only_discovery(result["discovery"])
    strongest = result.get("total") or result["shuffled"]
    local = _odds(result["local"]["epsilon"])
    if strongest is None:
        return (
            "What anybody learns of a person's report changes the odds that the person sent one value rather than "
            f"another by {local} at most.",
            "That holds against everyone, all parties together included, because each report is randomised on the "
            "person's own device.",
        )
    first = (
        "What the results tell about any one person changes the odds that the person sent one value rather than "
        f"another by {_odds(strongest['epsilon'])} at most, but for a chance of {_chance(strongest['delta'])}, as long "
        "as the parties keep to their roles."
    )
    second = (
        "If all of them broke their promises together, a person's counted report would still change these odds by "
        f"{local} at most, because it is randomised on the person's own device"
    )
    if "discovery" in result:
        return first, f"{second}; a value sent for discovery would be open to them."
    return first, f"{second}."


def _only_discovery(part: Guarantee) -> tuple[str, str]:
    relation = "sent one value rather than another" if part["relation"] == "replace-one" else "took part"
    return (
        f"A value is shown only when enough people sent it, about {part['clients_for_even_chance']:,}, so that the "
        f"results change the odds that any one person {relation} by {_odds(part['epsilon'])} at most, but for a chance "
        f"of {_chance(part['delta'])}, as long as the parties keep to their roles.",
        "If the analyzer and the auxiliary server broke their promises together, the values sent would be open to "
        "them, because reports for discovery are sealed but not randomised.",
    )


def _odds(epsilon: float) -> str:
    """Return how much odds can change: per cent below a factor of two, else a factor; rounded up."""
    gain = math.expm1(epsilon) if epsilon < 700.0 else math.inf
    if gain < 1.0:
        return f"{ceiling(100.0 * gain, 2):f} %"
    return f"a factor of {ceiling(gain + 1.0, 3):f}" if math.isfinite(gain) else "any factor"


def _chance(delta: float) -> str:
    """Return delta as one in so many, not more than it is."""
    return f"1 in {math.floor(1.0 / delta):,}" if delta < 1.0 else "1"
