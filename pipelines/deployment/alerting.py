"""The table of the deployment file that says who is told what changed."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, model_validator

from hushcount.delivery.site import Site
from hushcount.formats.models import Part
from hushcount.items import canonical, fault_of_item

SECONDS = 10.0
"""What an attempt to hand an alert over may take."""
_MOST_ITEMS, _LONGEST = 10_000, 2048
Argument = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]


class AlertsPart(Part):
    """Whom `hushcount run` tells what changed in the newest window of a campaign, compared with the 7 before.

    An alert carries what results say, and nothing else. Only the analyzer has results.
    """

    webhook: str | None = Field(
        default=None, description="address that alerts are posted to, signed; https, or this machine"
    )
    secret: str | None = Field(
        default=None,
        description="what signs them, as whsec_ and base64: a private file, env:NAME or gcp-secret://NAME",
    )
    command: tuple[Argument, ...] = Field(
        default=(), description="program and arguments instead of a webhook; it reads one alert, a text, from its input"
    )
    items: tuple[str, ...] = Field(default=(), description="items that are looked at, in each campaign that has them")
    groups: tuple[str, ...] = Field(
        default=(), description="groups of [analyzer.groups] that are; without items and groups, each item is"
    )
    false_alarms: float = Field(
        default=0.01,
        ge=1e-9,
        le=0.5,
        description="probability that a window of a campaign in which nothing changed has an alert",
    )
    least_change: float = Field(
        default=0.2, ge=0.0, le=100.0, description="smaller changes are not told; 0.2: by a factor of 1.2, up or down"
    )

    @model_validator(mode="after")
    def _check(self) -> AlertsPart:
        if (self.webhook is None) == (not self.command):
            raise ValueError("webhook and command: give one of them, the receiver of alerts")
        if (self.webhook is None) != (self.secret is None):
            raise ValueError("secret: goes with webhook, and signs what is posted there")
        if self.secret is not None and "whsec_" in self.secret:
            raise ValueError(
                "secret: is the secret itself, must say where it is: a private file, env:NAME or "
                "gcp-secret://NAME; make a new one, because this file is not secret"
            )
        if self.webhook is not None:
            site_of(self.webhook)
        for item in self.items[: _MOST_ITEMS + 1]:
            if (fault := fault_of_item(canonical(item))) is not None:
                raise ValueError(f"items holds {item[:60]!r}, which {fault}")
        for name, listed in (("items", self.items), ("groups", self.groups)):
            if len(listed) > _MOST_ITEMS or len(set(listed)) < len(listed):
                raise ValueError(f"{name} must name at most {_MOST_ITEMS:,}, each once")
        return self


def site_of(webhook: str) -> tuple[Site, str]:
    """Return the site of an address and the path there; ValueError without the address: it may hold a token."""
    try:
        if not webhook.isascii() or not webhook.isprintable() or set(webhook) & set("@# ") or len(webhook) > _LONGEST:
            raise ValueError
        parts = urlsplit(webhook)
        site = Site(f"{parts.scheme}://{parts.netloc}", seconds=SECONDS)
    except ValueError:
        raise ValueError(
            "webhook must be an address such as https://alerts.example.com/hushcount, without name, space or #, and of "
            f"at most {_LONGEST:,} characters; results travel by TLS, and only localhost needs none"
        ) from None
    return site, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
