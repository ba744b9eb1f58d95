"""Show the answer of `hushcount privacy` as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType

from hushcount.maths.figures import odds_of, rounded_up
from pipelines.console.tables import facts

_RELATIONS = {
    "replace-one": "replace-one: one client's reports have other values",
    "add-remove": "add-remove: one client's reports are there or not",
}


def in_short(answer: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Yield an answer of `hushcount.privacy.queries` in two lines, and a third one for several windows."""
    pair = f"epsilon {rounded_up(answer.get('epsilon', answer.get('shuffled_epsilon')))}, delta {answer['delta']:g}"
    if "keep_probability" in answer:
        even, sure = answer["clients_for_even_chance"], answer["clients_for_95_percent"]
        yield f"what is revealed says little of one client and its cap of {answer['cap']:,}: {pair}"
        yield f"a value of {even:,} clients is found with probability 50 %, of {sure:,} with 95 % (--explain: more)"
        return
    windows = f"in {answer['windows']:,} windows: epsilon " if "windows" in answer else ""
    if windows:
        total, joint = (rounded_up(answer[f"windows_epsilon_{name}"]) for name in ("sum", "joint"))
        windows += f"{total} as a sum, {joint} jointly"
    if "local_epsilon" not in answer:
        yield f"one window of a client's reports, sealed and not randomised: {pair} (--explain: more)"
        if windows:
            yield f"{windows} at delta {answer['windows_delta']:g}"
        return
    local = answer["local_epsilon"]
    yield f"one report alone changes odds by {odds_of(local)} (epsilon {rounded_up(local)})"
    gain = "no gain is claimed" if answer["bound"] is None else pair
    yield f"shuffled with {answer['reports']:,} honest reports: {gain} (--explain: more)"
    if windows:
        yield windows


def guarantee(title: str, answer: Mapping[str, object]) -> RenderableType:
    """Return an answer of `hushcount.privacy.queries` as lines, one for each figure; fractions are rounded up."""
    return facts(title, {name: _RELATIONS.get(str(value)) or _text(value) for name, value in answer.items()})


def _text(value: object) -> str:
    if isinstance(value, float):
        return rounded_up(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
