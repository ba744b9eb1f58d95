"""States of keys: pending, active, expiring, retired, by the dates in public.json and nothing else."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.campaigns.public_keys import PublicKeyPart, VerifyKeyPart
from hushcount.errors import UsageError
from keys.directories import create, read_public
from keys.listing import KeyListing, ListedKey, private_kind, read_listing
from keys.roles import OPENING_ROLES, ROLES, SIGNING_ROLES, Role

START = datetime(2026, 3, 1, tzinfo=timezone.utc)


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def listed(
    number: int, begins: float, ends: float, overlap: float = 0, retired: float | None = None, role: Role = "analyzer"
) -> ListedKey:
    """Return the key of a secret that is known by its number; dates are in days."""
    key = private_kind(role)(number.to_bytes(32, "big"))
    return ListedKey(
        role=role,
        id=key.id,
        key=key.public_key.hex(),
        not_before=day(begins),
        not_after=day(ends),
        overlap_seconds=round(overlap * 86400),
        retired_at=None if retired is None else day(retired),
    )


def states(listing: KeyListing, at: float) -> list[str]:
    return [listing.state(key, day(at)) for key in listing.keys]


def test_a_key_is_pending_then_active_then_expiring_then_retired() -> None:
    first, second = listed(1, 0, 30), listed(2, 20, 50, overlap=7)
    listing = KeyListing(keys=(first, second))
    assert states(listing, -1) == ["pending", "pending"]
    assert states(listing, 0) == ["active", "pending"]
    assert states(listing, 20 - 1e-5) == ["active", "pending"]
    assert states(listing, 20) == ["expiring", "active"]
    assert states(listing, 40) == ["expiring", "active"]
    assert states(listing, 50) == ["expiring", "expiring"]
    assert [listing.opened_until(key) for key in listing.keys] == [day(27), None]
    after = KeyListing(keys=(listed(1, 0, 30, retired=28), second))
    assert states(after, 30) == ["retired", "active"]
    assert states(after, -1) == ["retired", "pending"]


def test_a_key_without_a_successor_expires_when_its_time_is_over() -> None:
    listing = KeyListing(keys=(listed(1, 0, 30),))
    assert states(listing, 30 - 1e-5) == ["active"]
    assert states(listing, 30) == ["expiring"]
    assert listing.opened_until(listing.keys[0]) is None


def test_a_pending_key_that_is_retired_leaves_the_one_before_as_it_was() -> None:
    first, second = listed(1, 0, 30), listed(2, 20, 50, overlap=7, retired=5)
    listing = KeyListing(keys=(first, second))
    assert states(listing, 25) == ["active", "retired"]
    assert listing.opened_until(first) is None


def test_roles_have_states_of_their_own() -> None:
    listing = KeyListing(keys=tuple(listed(index, index, 30, role=role) for index, role in enumerate(ROLES, start=1)))
    assert states(listing, 2) == ["active", "active", *["pending"] * 6]


spans = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50), st.integers(0, 20), st.booleans()), max_size=6)


@given(spans, st.integers(-5, 110))
def test_at_most_one_key_is_active_and_it_is_the_newest_that_is_valid(
    given: list[tuple[int, int, int, bool]], at: int
) -> None:
    begins = {begin: (days, overlap, gone) for begin, days, overlap, gone in given}
    keys = tuple(
        listed(number, begin, begin + days, overlap, retired=begin if gone else None)
        for number, (begin, (days, overlap, gone)) in enumerate(begins.items(), start=1)
    )
    listing = KeyListing(keys=keys)
    valid = [key for key in keys if key.retired_at is None and key.not_before <= day(at) < key.not_after]
    active = [key for key, state in zip(keys, states(listing, at), strict=True) if state == "active"]
    assert active == ([max(valid, key=lambda key: key.not_before)] if valid else [])
    for key, state in zip(keys, states(listing, at), strict=True):
        assert (state == "retired") == (key.retired_at is not None)
        if state == "pending":
            assert key.not_before > day(at)
    assert KeyListing.model_validate_json(listing.model_dump_json(exclude_none=True)) == listing


def test_a_signing_key_is_no_key_that_clients_seal_to_and_the_other_way() -> None:
    """The same 32 bytes have another id under the other kind, so neither is taken for the other."""
    for role in OPENING_ROLES:
        assert isinstance(listed(1, 0, 1, role=role).part, PublicKeyPart)
    for role in SIGNING_ROLES:
        part = listed(1, 0, 1, role=role).part
        assert isinstance(part, VerifyKeyPart)
        with pytest.raises(ValueError, match="has id"):
            PublicKeyPart.model_validate(part.model_dump())
    with pytest.raises(ValueError, match="has id"):
        VerifyKeyPart.model_validate(listed(1, 0, 1).part.model_dump())


def test_a_damaged_listing_is_refused_with_its_file_and_field(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for change, says in (
        ({"id": "0" * 16}, "has id"),
        ({"key": "ab"}, "key"),
        ({"role": "collector"}, "role"),
        ({"overlap_seconds": -1}, "overlap_seconds"),
        ({"retired_at": "2026-01-01T00:00:00"}, "time zone"),
        ({"not_before": "2026-01-01T00:00:00"}, "time zone"),
        ({"not_after": "2020-01-01T00:00:00Z"}, "not_before"),
        ({"secret": "ab" * 32}, "secret"),
    ):
        with subtests.test(change=change):
            entry = listed(1, 0, 30).model_dump(mode="json")
            whole = KeyListing.model_validate({"keys": [entry]})
            (tmp_path / "public.json").write_text(whole.model_dump_json())
            assert read_listing(tmp_path) == whole
            (tmp_path / "public.json").write_text(json.dumps({"keys": [{**entry, **change}]}))
            with pytest.raises(UsageError, match=says) as caught:
                read_listing(tmp_path)
            assert str(tmp_path / "public.json") in str(caught.value)
            assert "ab" * 32 not in str(caught.value)


def test_an_id_or_a_beginning_listed_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        KeyListing(keys=(listed(1, 0, 30), listed(1, 1, 30)))
    with pytest.raises(ValueError, match="same time"):
        KeyListing(keys=(listed(1, 0, 30), listed(2, 0, 30)))


def test_a_campaign_takes_the_key_that_is_active_when_it_begins(tmp_path: Path) -> None:
    create(tmp_path, days=30, now=START)
    first = read_listing(tmp_path).keys
    later = tuple(listed(number, 20, 50, 7, role=role) for number, role in enumerate(OPENING_ROLES, start=1))
    (tmp_path / "public.json").write_text(KeyListing(keys=(*first, *later)).model_dump_json())
    assert read_public([tmp_path], day(10)).analyzer == (first[0].part,)
    assert read_public([tmp_path], day(20)).analyzer == (later[0].part,)
    assert read_public([tmp_path], day(20)).aux_server == (later[1].part,)
    with pytest.raises(UsageError, match=r"analyzer key .*2026-04-20") as caught:
        read_public([tmp_path], day(50))
    assert first[0].id in str(caught.value)
