"""Show the answer of `hushcount privacy` as lines for people."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import RenderableType

from hushcount.maths.figures import rounded_up
from pipelines.console.tables import facts


def guarantee(title: str, answer: Mapping[str, object]) -> RenderableType:
    """Return an answer of `hushcount.privacy.queries` as lines, one for each figure; fractions are rounded up."""
    return facts(title, {name: _text(value) for name, value in answer.items()})


def _text(value: object) -> str:
    if isinstance(value, float):
        return rounded_up(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
