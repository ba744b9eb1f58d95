"""What columns of answers hold, as their tables say it to who writes them."""

from __future__ import annotations

from collections.abc import Mapping

SHARE: Mapping[str, str] = {"unit": "share"}
"""Of a column with shares, ratios or probabilities: a CSV file has six significant digits of them, not thousandths."""
