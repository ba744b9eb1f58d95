"""Why a record goes no further: the closed list of reasons by which every hop counts.

To add one: name it here, count it where it happens, and explain it in the table of docs/operators.md.
"""

from __future__ import annotations

from typing import Literal, get_args

Reason = Literal[
    "duplicate", "over_cap", "wrong_campaign", "wrong_length", "corrupt_block", "truncated", "not_opened", "malformed",
    "not_utf8", "no_client", "value_too_long", "below_minimum", "retired_key", "unverified", "nothing", "no_item",
]  # fmt: skip
Counted = Literal["accepted"] | Reason
"""What a job counts a record as."""
REASONS: tuple[Reason, ...] = get_args(Reason)
DAMAGE: tuple[Reason, ...] = ("corrupt_block", "truncated")
"""Reasons of records that were written and cannot be read."""


def reason_of(text: str) -> Reason | None:
    """Return the reason of that name; None: no job of ours counts by it."""
    return next((reason for reason in REASONS if reason == text), None)


def rejected(reason: Reason, number: int) -> tuple[Reason, int]:
    """Return a count of records that go no further, as a job yields it: a misspelt reason is an error of types."""
    return reason, number
