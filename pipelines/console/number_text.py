"""Numbers with errors as text, and as what numbers outside the range of a mean count."""

from __future__ import annotations

import math
from collections.abc import Iterator

from hushcount.campaigns.parts import NumberPart


def numeral(value: float, error: float, signed: bool = False) -> str:
    """Return a number with as many digits as its error has, and one more."""
    digits = 0 if error <= 0.0 else max(0, 1 - math.floor(math.log10(error)))
    return f"{value:{'+' if signed else ''},.{digits}f}"


def of_range(part: NumberPart) -> Iterator[str]:
    """Say as what numbers outside the range of a mean count."""
    low, high = part.edges
    yield (
        f"a number below {low} counts as {low}, one above {high} as {high}, and a report without a number as {low}: "
        "of a text or NaN, or of a client whose budget is spent"
    )
