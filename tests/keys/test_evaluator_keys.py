"""The evaluator's keys: made for several epochs ahead, each taken once, and destroyed only on purpose."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.errors import UsageError
from keys.directories import create, private_keys
from keys.listing import listed_keys, next_key, read_listing
from keys.rotation import retire, rotate
from tests.support.jobs import done, refused

START = datetime(2026, 3, 1, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)


def day(number: float) -> datetime:
    return START + timedelta(days=number)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    create(tmp_path / "keys", days=30, roles=("evaluator",), now=START, number=3)
    return tmp_path / "keys"


def test_each_epoch_takes_the_next_key_and_then_none_is_left(keys: Path) -> None:
    first, second, third = listed_keys([keys])
    assert listed_keys([keys / "public.json", keys]) == (first, second, third)
    assert next_key([keys], day(1)) == first
    assert next_key([keys], day(1), [first.id]) == second
    # Not the second, though only the third is named: earlier ones served epochs that are not known here.
    with pytest.raises(UsageError, match=r"no key of the evaluator"):
        next_key([keys], day(1), [third.id])
    with pytest.raises(UsageError, match=f"holds {second.id} from .* to .*, {third.id} from"):
        next_key([keys], day(30), [first.id])
    rotate(keys, overlap=SECOND, begins=day(20), number=2, now=day(10))
    fourth, fifth = listed_keys([keys])[3:]
    assert next_key([keys], day(20), [third.id]) == fourth
    assert next_key([keys], day(20), [fourth.id]) == fifth


def test_a_destroyed_key_is_taken_by_no_epoch(keys: Path) -> None:
    first, second, _ = listed_keys([keys])
    retire(keys, first.id, early=True, now=day(1))
    assert next_key([keys], day(1)) == second
    assert [key.id for key in private_keys(keys)].count(first.id) == 0


def test_no_key_takes_the_place_of_another(keys: Path) -> None:
    rotate(keys, overlap=SECOND, now=day(10))
    listing = read_listing(keys)
    assert [listing.state(key, day(20)) for key in listing.keys] == ["active"] * 4
    assert [listing.state(key, day(35)) for key in listing.keys] == ["expiring"] * 3 + ["active"]
    assert {listing.opened_until(key) for key in listing.keys} == {None}
    first, *_, last = listing.keys
    with pytest.raises(UsageError, match=r"--early"):
        retire(keys, last.id, now=day(35))
    assert retire(keys, first.id, now=day(35)).retired_at == day(35)
    assert retire(keys, last.id, early=True, now=day(35)).retired_at == day(35)


def test_several_at_once_are_the_evaluators_only(tmp_path: Path) -> None:
    refused("keys", "new", "--out", tmp_path / "k", "--number", 2, says=["number is 2", "analyzer"])
    assert not (tmp_path / "k").exists()
    made = done("keys", "new", "--role", "evaluator", "--out", tmp_path / "e", "--number", 2, "--json").json
    assert [key["state"] for key in made["keys"]] == ["active", "active"]
    first = made["keys"][0]["id"]
    refused("keys", "retire", "--keys", tmp_path / "e", "--id", first, "--yes", says=["hushcount doctor"])
    done("keys", "retire", "--keys", tmp_path / "e", "--id", first, "--yes", "--early")
    assert len(list((tmp_path / "e").glob("*.key"))) == 1
