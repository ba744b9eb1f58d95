"""Keys of passes belong to the slots of a day, and only those of the campaign file are used."""

from __future__ import annotations

import json
import secrets
from datetime import date, datetime, timezone
from pathlib import Path

import pytest
from pydantic import ValidationError

from hushcount.campaigns.parts import PassesPart
from hushcount.errors import UsageError
from hushcount.passes.pass_keys import PassKeys, checked_day, day_octets, read_pass_keys
from hushcount.passes.slots import day_begins, own_slots, slot_at, slots_of
from tests.hushcount.delivery.fake_collector import campaign, oblivious

FIRST = date(2026, 11, 28)


def keys(parties: int, seconds: int, days: int = 2, evaluator: bool = False) -> PassKeys:
    """Return moduli without known factors: nobody can sign with them."""
    names = tuple(f"collector-{number}" for number in range(parties - evaluator))
    slots = parties * 86400 // seconds
    made = tuple(tuple(f"{_modulus():0512x}" for _ in range(slots)) for _ in range(days))
    of = {"campaign": "words", "collectors": names, "evaluator": evaluator}
    return PassKeys(**of, seconds=seconds, first=FIRST, days=made)  # type: ignore[arg-type]


def _modulus() -> int:
    return secrets.randbits(2048) | 1 << 2047 | 1


def test_a_day_has_a_slot_for_each_party_and_period_in_the_order_of_the_keys() -> None:
    made = keys(3, 43_200, evaluator=True)
    one = oblivious(passes=made.part(), collectors=made.collectors)
    slots = slots_of(one, FIRST)
    begin = int(datetime(2026, 11, 28, tzinfo=timezone.utc).timestamp())
    assert [(slot.role, slot.name, slot.begins) for slot in slots] == [
        (role, name, begins)
        for role, name in (("collector", "collector-0"), ("collector", "collector-1"), ("evaluator", "evaluator"))
        for begins in (begin, begin + 43_200)
    ]
    assert own_slots(one, "collector-1", FIRST) == slots[2:]
    moduli = checked_day(one, FIRST, day_octets(made.days[0]))
    assert [modulus.hex() for modulus in moduli] == list(made.days[0])


def test_slots_tile_the_days() -> None:
    one = campaign(passes=keys(1, 14_400).part())
    for moment in (day_begins(FIRST), day_begins(FIRST) + 86_399, -1, 0):
        slot = slot_at(one, "collector", "one", moment)
        assert slot.begins <= moment < slot.begins + 14_400
        assert slot in slots_of(one, date.fromordinal(date(1970, 1, 1).toordinal() + slot.begins // 86400))


def test_keys_that_the_campaign_file_does_not_name_are_refused() -> None:
    made = keys(1, 43_200)
    one = campaign(passes=made.part())
    good = day_octets(made.days[1])
    for day, octets in (
        (FIRST, good),
        (date(2026, 11, 29), good[:-1]),
        (date(2026, 11, 29), bytes([good[0] ^ 1]) + good[1:]),
        (date(2026, 11, 29), good[256:] + good[:256]),
        (date(2026, 11, 27), good),
        (date(2026, 11, 30), good),
    ):
        with pytest.raises(UsageError):
            checked_day(one, day, octets)
    assert len(checked_day(one, date(2026, 11, 29), good)) == 2


@pytest.mark.parametrize("bad", [f"{1 << 2046 | 1:0512x}", f"{_modulus() - 1:0512x}"])
def test_a_modulus_that_is_short_or_even_is_refused(bad: str) -> None:
    made = keys(1, 86_400, days=1).model_copy(update={"days": ((bad,),)})
    with pytest.raises(ValueError, match="2048"):
        checked_day(campaign(passes=made.part()), FIRST, day_octets(made.days[0]))


@pytest.mark.parametrize("seconds", [0, 3599, 5000, 86_401, 172_800])
def test_a_period_that_does_not_divide_a_day_is_refused(seconds: int) -> None:
    with pytest.raises(ValidationError):
        PassesPart(seconds=seconds, first=FIRST, days=("0" * 64,))


def test_a_file_of_keys_whose_period_does_not_divide_a_day_is_refused_in_a_sentence(tmp_path: Path) -> None:
    made = keys(1, 86_400, days=1).model_dump(mode="json")
    slots = [f"{_modulus():0512x}" for _ in range(86_400 // 5000)]
    path = tmp_path / "words.passes.json"
    path.write_text(json.dumps({**made, "seconds": 5000, "days": [slots]}))
    with pytest.raises(UsageError, match="5000, must divide a day"):
        read_pass_keys(path)


def test_a_campaign_has_at_most_100_days_of_passes() -> None:
    with pytest.raises(ValidationError):
        PassesPart(seconds=86_400, first=FIRST, days=("0" * 64,) * 101)


def test_a_publisher_may_add_days_and_not_change_the_period() -> None:
    made = keys(1, 43_200)
    one = campaign(passes=made.part())
    more = campaign(passes={**made.part().model_dump(), "days": [*made.part().days, "0" * 64]})
    other = campaign(passes={**made.part().model_dump(), "seconds": 86_400})
    assert one.terms == more.terms != other.terms
    assert one.fingerprint != more.fingerprint
    assert campaign().terms != one.terms
