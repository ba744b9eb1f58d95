"""The table of the deployment file that says what alerts are made of, and where they go."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, StringConstraints, model_validator

from hushcount.delivery.site import Site
from hushcount.formats.models import Part
from hushcount.items import canonical, fault_of_item
from pipelines.deployment.parts import Duration

_SECOND, _MINUTE, _HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
_MOST_ITEMS = 10_000
Argument = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]


class AlertsPart(Part):
    """What `hushcount run` tells an operator, and where.

    An alert carries what results and `status` say, and nothing else.
    """

    webhook: str | None = Field(default=None, description="address that alerts are posted to, signed; https")
    secret: str | None = Field(
        default=None,
        description="what signs them, as whsec_ and base64: a private file, env:NAME or gcp-secret://NAME",
    )
    plain_http: bool = Field(default=False, description="permit http to other machines: results are then readable")
    command: tuple[Argument, ...] = Field(
        default=(), description="program and arguments instead of a webhook; it reads one alert, JSON, from its input"
    )
    timeout: Duration = Field(
        default=timedelta(seconds=10),
        description="how long an attempt may take, up to a minute; alerts prolong a run by four times that at most",
    )
    give_up_after: Duration = Field(
        default=timedelta(days=3), description="how long an alert is tried again; then run and status say that it fails"
    )
    items: tuple[str, ...] = Field(default=(), description="items whose change is told, in each campaign that has them")
    groups: tuple[str, ...] = Field(default=(), description="groups of [analyzer.groups] whose change is told")
    any_item: bool = Field(default=False, description="whether a change of any item that a campaign follows is told")
    false_alarms: float = Field(
        default=0.01,
        ge=1e-9,
        le=0.5,
        description="probability that a window of a campaign in which nothing changed tells of any change",
    )
    least_change: float = Field(
        default=0.2, ge=0.0, le=100.0, description="smaller changes are not told; 0.2: by a factor of 1.2, up or down"
    )
    windows_before: int = Field(
        default=7, ge=3, le=100, description="windows before the newest that say what is usual, in changes and volume"
    )
    dropped: bool = Field(default=True, description="whether reports that were or will be too late are told")
    differences: bool = Field(default=True, description="whether numbers that do not agree are told, as in status")
    budget_windows: int = Field(
        default=7,
        ge=0,
        le=29,
        description="told if the ledger allows at most so many windows before it renews; 0: never",
    )
    least_volume: float = Field(
        default=0.5, ge=0.0, lt=1.0, description="told if a window brings less than this share of usual; 0: never"
    )

    @model_validator(mode="after")
    def _check(self) -> AlertsPart:
        if (self.webhook is None) == (not self.command):
            raise ValueError("webhook and command: give one of them, the place where alerts go")
        if (self.webhook is None) != (self.secret is None):
            raise ValueError("secret: goes with webhook, and signs what is posted there")
        if self.secret is not None and "whsec_" in self.secret:
            raise ValueError(
                "secret: is the secret itself, must say where it is: a private file, env:NAME or "
                "gcp-secret://NAME; make a new one, because this file is not secret"
            )
        if self.webhook is not None:
            site_of(self.webhook, self.plain_http, self.timeout)
        for name, shortest, longest in (("timeout", _SECOND, _MINUTE), ("give_up_after", _HOUR, timedelta(days=365))):
            if not shortest <= getattr(self, name) <= longest:
                raise ValueError(f"{name} is {getattr(self, name)}, must be from {shortest} to {longest}")
        for item in self.items[: _MOST_ITEMS + 1]:
            if (fault := fault_of_item(canonical(item))) is not None:
                raise ValueError(f"items holds {item[:60]!r}, which {fault}")
        for name, listed in (("items", self.items), ("groups", self.groups)):
            if len(listed) > _MOST_ITEMS or len(set(listed)) < len(listed):
                raise ValueError(f"{name} must name at most {_MOST_ITEMS:,}, each once")
        return self


def site_of(webhook: str, plain: bool, timeout: timedelta) -> tuple[Site, str]:
    """Return the site of an address and the path there; ValueError without the address: it may hold a token."""
    parts = _parts(webhook)
    if parts is None:
        raise ValueError("webhook must be an address such as https://alerts.example.com/hushcount, without name or #")
    try:
        site = Site(f"{parts.scheme}://{parts.netloc}", plain=plain, seconds=timeout.total_seconds())
    except ValueError:
        raise ValueError(
            "webhook must begin with https://: results travel by TLS; localhost needs none, and plain_http = true "
            "permits http to other machines"
        ) from None
    return site, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _parts(webhook: str) -> SplitResult | None:
    try:
        parts = urlsplit(webhook)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        return None
    plain = webhook.isascii() and webhook.isprintable() and not set(webhook) & set("@# ") and len(webhook) <= 2048
    return parts if named and plain else None
