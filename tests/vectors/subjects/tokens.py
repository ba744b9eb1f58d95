"""A client's secret, a campaign's collectors, the name of a site and a window: the client token, or none."""

from __future__ import annotations

from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.delivery.tokens import collector_name, derived_token
from hushcount.newest import Untrusted
from hushcount.passes.slots import EVALUATOR_NAME, Slot
from tests.vectors.subjects.script import octets, require_refused

_DAY = 1_795_392_000
_NAMED: tuple[tuple[tuple[str, ...], str | None], ...] = (
    (("one",), None), (("one",), "one"), (("one", "two"), "two"), (("one", "two"), "one"), (("evaluator",), None),
    (("a" * 64, "b.c-d_e"), "a" * 64),
)  # fmt: skip
_UNNAMED: tuple[tuple[tuple[str, ...], str | None], ...] = (
    (("one", "two"), None), (("one",), "two"), (("one",), ""), (("one", "two"), "three"), (("one", "two"), "One"),
    (("one", "two"), "one "), (("constructor", "two"), "toString"),
)  # fmt: skip


def data() -> dict[str, Any]:
    """Return the file's content."""
    secret, accept, refuse = octets(32, "a client's secret"), list[dict[str, Any]](), list[dict[str, Any]]()
    for place, (collectors, site) in enumerate(_NAMED):
        entry = {"campaign": "features" if place else "c" * 64, "collectors": collectors, "site": site}
        campaign = Campaign.model_construct(id=str(entry["campaign"]), collectors=collectors)
        name = collector_name(campaign, site)
        window = _DAY + place * 86_400
        accept.append(_token(secret, "collector", name, window, entry))
        if place < 2:
            accept.append(_token(secret, "collector", name, -1 if place else 0, entry))
            accept.append(_token(octets(32, "another"), "evaluator", EVALUATOR_NAME, window, entry))
    for collectors, site in _UNNAMED:
        require_refused(Untrusted, collector_name, Campaign.model_construct(id="features", collectors=collectors), site)
        entry = {"campaign": "features", "collectors": collectors, "site": site}
        refuse.append(
            {"role": "collector", "secret": secret.hex(), "window": _DAY, **entry, "reason": "collector_name"}
        )
    return {
        "subject": "tokens",
        "about": "A client's secret, a campaign's collectors, the name of a site, when a window began: the token",
        "accept": accept,
        "refuse": refuse,
    }


def _token(secret: bytes, role: Any, name: str, window: int, entry: dict[str, Any]) -> dict[str, Any]:
    token = derived_token(secret, Slot(entry["campaign"], role, name, window))
    return {"role": role, "secret": secret.hex(), "window": window, **entry, "token": token}
