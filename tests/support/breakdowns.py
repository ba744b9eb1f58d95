"""Questions of a site's campaign with axes, and whether a row of the answer is near the truth."""

from __future__ import annotations

from typing import Any

from tests.support.jobs import done
from tests.support.site import Site

FAR = 6.0
"""Standard errors that an estimate strays with a probability below 1e-8."""


def ask(site: Site, question: str, *options: object) -> Any:
    return done("ask", question, "--config", site.config, "--campaign", "parts", *options, "--json").json


def is_near(row: dict[str, Any], count: float) -> bool:
    return abs(float(row["count"]) - count) < FAR * max(row["standard_error"], 1.0)
