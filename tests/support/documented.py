"""What an OpenAPI document says of refusals."""

from __future__ import annotations

import re
from typing import Any


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
