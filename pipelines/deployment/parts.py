"""Tables of the deployment file that say what others are asked for, and how epochs follow."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from hushcount.campaigns.dictionary import MOST_ITEMS
from hushcount.collection.windows import duration
from hushcount.formats.models import Part
from hushcount.questions.selecting import Choices

_YEAR = timedelta(days=365)


def _duration(value: Any) -> Any:
    # A bare number would be taken for seconds.
    if not isinstance(value, (str, timedelta)):
        raise ValueError(f"duration is {value!r}, must be a whole number and s, m, h or d, as in 15m or 1d")
    return duration(value) if isinstance(value, str) else value


Duration = Annotated[timedelta, BeforeValidator(_duration)]


class NextEpochPart(Part):
    """What `hushcount run` may change in a campaign from one epoch to the next."""

    add_found: bool = Field(default=True, description="whether discovered items join the dictionary")
    review: bool = Field(
        default=True,
        description="whether they wait until hushcount epoch review approves them; if not, anybody can add some",
    )
    most_additions: int = Field(default=100, ge=1, le=100_000, description="discovered items that join in one epoch")
    least_length: Duration = Field(
        default=timedelta(days=30),
        description="shortest length of an epoch: clients with a memory answer each one afresh",
    )
    unseen_windows: int = Field(
        default=30, ge=1, le=1_000_000, description="after so many windows without it, a discovered item leaves"
    )
    target_rank: int | None = Field(
        default=None,
        ge=1,
        le=MOST_ITEMS,
        description="plan for the share of the item of this rank in the last estimate",
    )
    settings: dict[str, int | float | str] = Field(
        default_factory=dict, description="parameters that are not planned anew, as --set"
    )
    sign_with: str | None = Field(
        default=None,
        description="the operator's key directory, relative to this file, env:NAME or gcp-secret://NAME: new epochs "
        "are signed; needed where the newest is",
    )
    delegation: str | None = Field(
        default=None,
        description="file of hushcount campaign delegate: sign_with is then the publisher's, and the operator's key "
        "can stay offline",
    )
    evaluator_keys: tuple[str, ...] = Field(
        default=(),
        description="public.json files of the evaluator, or directories with one, relative to this file: each new "
        "epoch of an oblivious campaign takes the next key",
    )

    @model_validator(mode="after")
    def _check(self) -> NextEpochPart:
        if self.delegation is not None and self.sign_with is None:
            raise ValueError("delegation: needs sign_with, the key directory of the publisher that it names")
        return self


class AnalyzerPart(Part):
    """What the analyzer that runs here asks of others."""

    evaluator: str | None = Field(
        default=None,
        description="who is asked to verify what an oblivious campaign released: the evaluator's address, as in "
        "https://collector.example.com; or, where its keys are, its key directory, env:NAME or gcp-secret://NAME",
    )
    evaluator_token: str | None = Field(
        default=None,
        description="the bearer token that the evaluator at an address asks for: a private file, env:NAME or "
        "gcp-secret://NAME",
    )
    groups: Choices = Field(
        default_factory=dict,
        description='groups of items by name, as in `large = {items = ["a", "b"]}`, for `ask`, dashboard and alerts',
    )

    @model_validator(mode="after")
    def _check(self) -> AnalyzerPart:
        if self.evaluator_token is not None and self.evaluator is None:
            raise ValueError("evaluator_token: needs evaluator, the address where it is shown")
        return self


def most_epochs_a_year(least_length: timedelta) -> int:
    """Return in how many epochs of at least this length a client can answer in 365 days; the first began earlier."""
    return -(-_YEAR // least_length) + 1
