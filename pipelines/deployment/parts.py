"""The tables [next_epoch], [analyzer], [dashboard] and [alerts] of the deployment file."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from hushcount.campaigns.dictionary import MOST_ITEMS
from hushcount.collection.windows import duration
from hushcount.delivery.site import Site
from hushcount.formats.models import Part
from hushcount.items import canonical, fault_of_item
from hushcount.questions.selecting import Choices
from hushcount.window_starts import UNITS, Unit

_YEAR = timedelta(days=365)
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def _duration(value: Any) -> Any:
    # Refuse a bare number, because pydantic would read it as seconds.
    if not isinstance(value, (str, timedelta)):
        raise ValueError(f"duration is {value!r}, must be a whole number and s, m, h or d, as in 15m or 1d")
    return duration(value) if isinstance(value, str) else value


Duration = Annotated[timedelta, BeforeValidator(_duration)]


def _length(value: object) -> object:
    try:
        return value if value in UNITS else _duration(value)
    except ValueError as error:
        raise ValueError(f"{error}, or {', '.join(UNITS[:-1])} or {UNITS[-1]}") from None


Length = Annotated[timedelta | Unit, BeforeValidator(_length)]


class NextEpochPart(Part):
    """The changes that `hushcount run` may make to a campaign from one epoch to the next."""

    add_found: bool = Field(default=True, description="whether discovered items join the dictionary")
    review: bool = Field(
        default=True,
        description="whether discovered items wait until hushcount campaign review approves them; if false, whoever "
        "can send discovery reports can add items to the dictionary",
    )
    most_additions: int = Field(
        default=100, ge=1, le=100_000, description="most discovered items that join in one epoch"
    )
    least_length: Duration = Field(
        default=timedelta(days=30),
        description="shortest length of an epoch: clients with a memory spend their epsilon anew in each epoch",
    )
    unseen_windows: int = Field(
        default=30,
        ge=1,
        le=1_000_000,
        description="a discovered item leaves the dictionary when it was unseen in so many windows",
    )
    target_rank: int | None = Field(
        default=None,
        ge=1,
        le=MOST_ITEMS,
        description="plan the mechanism for items as frequent as the item of this rank in the newest results",
    )
    settings: dict[str, int | float | str] = Field(
        default_factory=dict,
        description="mechanism parameters to keep instead of planning them anew, as in --set of campaign new",
    )
    sign_with: str | None = Field(
        default=None,
        description="the operator's key directory, relative to this file, env:NAME or gcp-secret://NAME, to sign new "
        "epochs; required if the newest epoch is signed",
    )
    delegation: str | None = Field(
        default=None,
        description="file of hushcount campaign delegate: sign_with is then the publisher's key directory, and the "
        "operator's key can stay offline",
    )
    evaluator_keys: tuple[str, ...] = Field(
        default=(),
        description="the evaluator's public.json files, or directories with one, relative to this file: each new "
        "epoch of an oblivious campaign takes the next unused key",
    )

    @model_validator(mode="after")
    def _check(self) -> NextEpochPart:
        if self.delegation is not None and self.sign_with is None:
            raise ValueError("delegation: needs sign_with, the key directory of the publisher that it names")
        return self


class AnalyzerPart(Part):
    """The evaluator and the groups of items that the analyzer here uses."""

    evaluator: str | None = Field(
        default=None,
        description="evaluator that verifies the released values of an oblivious campaign: its address, as in "
        "https://collector.example.com; or its key directory, env:NAME or gcp-secret://NAME, if its keys are here",
    )
    evaluator_token: str | None = Field(
        default=None,
        description="bearer token for the evaluator's address: a private file, env:NAME or gcp-secret://NAME",
    )
    groups: Choices = Field(
        default_factory=dict,
        description='groups of items by name, as in `large = {items = ["a", "b"]}`, for `ask`, dashboard and alerts',
    )

    @model_validator(mode="after")
    def _check(self) -> AnalyzerPart:
        if self.evaluator_token is not None and self.evaluator is None:
            raise ValueError("evaluator_token: needs evaluator, the address that gets this token")
        return self


class DashboardPart(Part):
    """The name and the logo of the pages of `hushcount dashboard`, and who may read them from its server."""

    name: str | None = Field(
        default=None,
        description="name of the deployment; by default the name of this file's directory",
        min_length=1,
        max_length=100,
    )
    logo: str | None = Field(
        default=None,
        description="picture beside the name, a .png or .svg of at most 64 KiB, relative to this file; the page "
        "contains it",
    )
    host: str = Field(
        default="127.0.0.1", description="address that the server listens on; without a login only this machine's own"
    )
    address: str | None = Field(
        default=None,
        description="where a team finds the server: an https origin of its own, at which a reverse proxy ends TLS",
        pattern=r"^https://[a-z0-9.-]+(:[0-9]{1,5})?$",
    )
    token: str | None = Field(
        default=None,
        description="what a reader must give, of 32 to 256 visible ASCII characters: a private file, env:NAME or "
        "gcp-secret://NAME",
    )
    user_header: str | None = Field(
        default=None,
        description="header in which the reverse proxy names the user that it has logged in; the proxy must drop what "
        "clients send in it, and be alone in reaching the server",
        pattern=r"^[A-Za-z][A-Za-z0-9-]{0,63}$",
    )

    @model_validator(mode="after")
    def _check(self) -> DashboardPart:
        if self.token is not None and self.user_header is not None:
            raise ValueError("token: is given beside user_header; give one of them")
        if self.host not in LOOPBACK and self.token is None and self.user_header is None:
            raise ValueError(f"host: is {self.host!r}, which others reach; give token or user_header too")
        if self.host not in LOOPBACK and self.address is None:
            raise ValueError(f"host: is {self.host!r}; give address too, or no request of others is answered")
        return self


def most_epochs_a_year(least_length: timedelta) -> int:
    """Return the most epochs of at least this length that 365 days can touch; the first may begin before these days."""
    return -(-_YEAR // least_length) + 1


SECONDS = 10.0
"""Timeout in seconds of one attempt to deliver an alert."""
_MOST_ITEMS, _LONGEST = 10_000, 2048
Argument = Annotated[str, StringConstraints(min_length=1, max_length=4096, pattern=r"^[^\x00]+$")]


class AlertsPart(Part):
    """The receiver of alerts: `hushcount run` compares the newest window of a campaign with the 7 windows before it.

    An alert contains released results only. Only the analyzer has results.
    """

    webhook: str | None = Field(
        default=None,
        description="address to which signed alerts are posted; https, or plain http on this machine",
    )
    secret: str | None = Field(
        default=None,
        description="secret that signs alerts, whsec_ and base64: a private file, env:NAME or gcp-secret://NAME",
    )
    command: tuple[Argument, ...] = Field(
        default=(),
        description="program and arguments instead of a webhook; it reads one alert as text from standard input",
    )
    items: tuple[str, ...] = Field(default=(), description="items to watch, in each campaign that has them")
    groups: tuple[str, ...] = Field(
        default=(),
        description="groups of [analyzer.groups] to watch; without items and groups, every item is watched",
    )
    false_alarms: float = Field(
        default=0.01,
        ge=1e-9,
        le=0.5,
        description="probability of an alert in a window of a campaign in which nothing changed",
    )
    least_change: float = Field(
        default=0.2,
        ge=0.0,
        le=100.0,
        description="smaller changes cause no alert; 0.2: a factor of 1.2, up or down",
    )

    @model_validator(mode="after")
    def _check(self) -> AlertsPart:
        if (self.webhook is None) == (not self.command):
            raise ValueError("webhook and command: give exactly one of them, the receiver of alerts")
        if (self.webhook is None) != (self.secret is None):
            raise ValueError("secret: give it if and only if webhook is given, because it signs posted alerts")
        if self.secret is not None and "whsec_" in self.secret:
            raise ValueError(
                "secret: is the secret itself, must be the place of the secret: a private file, env:NAME or "
                "gcp-secret://NAME; make a new secret, because this file is not private"
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
    """Return the site and the path of an address; ValueError does not repeat the address, which may hold a token."""
    try:
        if not webhook.isascii() or not webhook.isprintable() or set(webhook) & set("@# ") or len(webhook) > _LONGEST:
            raise ValueError
        parts = urlsplit(webhook)
        site = Site(f"{parts.scheme}://{parts.netloc}", seconds=SECONDS)
    except ValueError:
        raise ValueError(
            "webhook must be an address such as https://alerts.example.com/hushcount, without user name, space or #, "
            f"of at most {_LONGEST:,} characters, and https unless it is on this machine"
        ) from None
    return site, (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
