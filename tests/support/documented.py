"""What an OpenAPI document says of refusals, and what a service has."""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, Phase, settings

from service import refusals
from service.refusals import Reason

SHORT = settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
"""For requests that a document describes, which a real service answers."""


def documented_refusals(document: dict[str, Any]) -> set[tuple[int, str, str]]:
    """Return status, title and name of every refusal that a document names."""
    answers = [
        (int(status), answer["description"])
        for path in document["paths"].values()
        for method in ("get", "post")
        for status, answer in path.get(method, {"responses": {}})["responses"].items()
        if int(status) >= 400
    ]
    return {
        (status, title.removeprefix("Not ready, or: "), name)
        for status, told in answers
        for title, name in re.findall(r"(?:^|; )([^;]+) \((\w+)\)", told)
    }


def reasons_of(own: ModuleType) -> list[Reason]:
    """Return the reasons that all services have, and those of a service's own module."""
    named = [value for module in (refusals, own) for value in vars(module).values()]
    return [value for value in named if isinstance(value, Reason)]
