"""Why a hop rejects a record: a complete list of reasons. docs/contributors.md says how to add a reason."""

from __future__ import annotations

from typing import Literal, get_args

Reason = Literal[
    "duplicate", "over_cap", "wrong_campaign", "wrong_length", "corrupt_block", "truncated", "not_opened", "malformed",
    "not_utf8", "no_client", "value_too_long", "below_minimum", "retired_key", "unverified", "nothing", "no_item",
    "small_atom", "other_window",
]  # fmt: skip
Counted = Literal["accepted"] | Reason
REASONS: tuple[Reason, ...] = get_args(Reason)
DUMMIES = "dummies"
"""The name of the count of dummies that a mix added."""
DAMAGE: tuple[Reason, ...] = ("corrupt_block", "truncated")
"""The reasons that mean that a record cannot be read."""


def reason_of(text: str) -> Reason | None:
    """Return the reason with this name, or None if there is no such reason."""
    return next((reason for reason in REASONS if reason == text), None)


def rejected(reason: Reason, number: int) -> tuple[Reason, int]:
    """Return a reason and its number of rejected records, as jobs yield it; type checkers find misspelt reasons."""
    return reason, number
