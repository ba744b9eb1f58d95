"""The campaign file: what its fingerprint is of, its two forms, its schema, and which key is sealed to."""

from __future__ import annotations

import copy
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, in_random_order
from hushcount.campaigns.parts import MechanismPart
from hushcount.campaigns.public_keys import PublicKeyPart, valid_key
from hushcount.errors import UsageError
from hushcount.many_clients import ManyClients
from hushcount.numbers import Bins
from keys.evaluating import EvaluatorKey
from keys.private import Guarded, PrivateKey
from tests.support.schema import violations

WORDS = Dictionary(("one", "two", "three"))
NOW = datetime.now(timezone.utc).replace(microsecond=0)


def public(secret: int, start: int = -1, days: int = 30) -> dict[str, Any]:
    """Return a public key that is valid from `start` days from now on."""
    return listed(PrivateKey(bytes([secret]) * 32), start, days)


def evaluator(secret: int) -> dict[str, Any]:
    return listed(EvaluatorKey(bytes([secret]) * 32))


def listed(key: Guarded, start: int = -1, days: int = 30) -> dict[str, Any]:
    """Return the public part of a key."""
    begin = NOW + timedelta(days=start)
    return {
        "id": key.id,
        "key": key.public_key.hex(),
        "not_before": begin.isoformat(),
        "not_after": (begin + timedelta(days=days)).isoformat(),
    }


def data() -> dict[str, Any]:
    """Return a campaign with every part."""
    return {
        "format": 2,
        "id": "words",
        "epoch": 2,
        "mechanism": {"name": "ss", "epsilon": 1.5, "parameters": {"s": 1}},
        "dictionary": {"path": "words.txt", "items": 3, "digest": WORDS.digest},
        "shuffle": {"cap": 2, "minimum_batch": 10, "delta": 1e-7},
        "discovery": {
            "epsilon": 1.0,
            "delta": 1e-6,
            "relation": "replace-one",
            "rule": "optimal",
            "counts": False,
            "max_value_bytes": 32,
            "hash": "keyed",
            "hash_key": "ab" * 32,
        },
        "keys": {"analyzer": [public(1)], "aux_server": [public(2)], "evaluator": []},
    }


def changed(path: str, value: Any) -> dict[str, Any]:
    result = copy.deepcopy(data())
    *parents, last = path.split(".")
    part: Any = result
    for name in parents:
        part = part[int(name)] if name.isdigit() else part[name]
    part[int(last) if last.isdigit() else last] = value
    return result


CHANGES: dict[str, Any] = {
    "id": "words-2",
    "epoch": 3,
    "previous": "ab" * 32,
    "collectors": ["one", "two"],
    "memory": True,
    "noise": {"epsilon": 1.0, "delta": 1e-8, "seconds": 86400},
    "memory_values": 3,
    "mechanism.name": "grr",
    "mechanism.epsilon": 1.25,
    "mechanism.parameters.s": 2,
    "dictionary.items": 4,
    "dictionary.digest": "0" * 64,
    "sample": {"layer": "shared", "buckets": [[0, 500]]},
    "number": {"edges": ["2", "10.5"], "unit": "ms", "mean": False},
    "passes": {"seconds": 86400, "first": "2026-11-28", "days": ["ab" * 32]},
    "windows": {"unit": "day", "starts": [1795993200, 1796079600]},
    "url": {"take": "host"},
    "axes": {"listed": [{"name": "platform", "public": False, "values": ["linux"]}], "key": "ab" * 32},
    "shuffle.cap": 3,
    "shuffle.minimum_batch": 11,
    "shuffle.delta": 2e-7,
    "discovery.epsilon": 2.0,
    "discovery.delta": 2e-6,
    "discovery.relation": "add-remove",
    "discovery.rule": "laplace",
    "discovery.counts": True,
    "discovery.max_value_bytes": 33,
    "discovery.hash_key": "ac" * 32,
    "discovery.hash_key_commitment": "cd" * 32,
    "discovery": None,
    "keys.analyzer": [public(3)],
    "keys.analyzer.0": public(1, days=31),
    "keys.aux_server": [public(4)],
    "discovery.hash": "oblivious",
    "keys.evaluator": [evaluator(6)],
}


def with_change(path: str) -> dict[str, Any]:
    """Return the campaign with one of CHANGES, and with what that one needs."""
    different = changed(path, CHANGES[path])
    if path == "mechanism.name":
        different["mechanism"]["parameters"] = {}
    if path == "number":
        bins = Dictionary(in_random_order(Bins(("2", "10.5"), "ms").names))
        different |= {"discovery": None, "dictionary": {"path": "words.txt", "items": 3, "digest": bins.digest}}
    if path == "noise":
        different["mechanism"] = None
        different["shuffle"]["minimum_batch"] = 1
    if path == "memory_values":
        different["memory"] = True
    if path == "discovery.hash_key_commitment":
        del different["discovery"]["hash_key"]
    if path == "discovery.hash":
        different["keys"]["evaluator"] = [evaluator(5)]
    if path == "keys.evaluator":
        different["discovery"]["hash"] = "oblivious"
    if different["keys"]["evaluator"]:
        del different["discovery"]["hash_key"]
    return different


def test_every_parameter_changes_the_fingerprint_and_both_bindings() -> None:
    seen = {Campaign.model_validate(data()).fingerprint: "nothing"}
    bindings = {
        Campaign.model_validate(data()).binding("reports"),
        Campaign.model_validate(data()).binding("discovery"),
    }
    for path in CHANGES:
        different = with_change(path)
        campaign = Campaign.model_validate(different)
        assert campaign.fingerprint not in seen, f"{path} gives the fingerprint of {seen[campaign.fingerprint]}"
        seen[campaign.fingerprint] = path
        bindings |= {campaign.binding("reports"), campaign.binding("discovery")}
    assert len(bindings) == 2 * (len(CHANGES) + 1)
    assert all(len(fingerprint) == 32 for fingerprint in seen)
    assert all(len(binding) == 16 for binding in bindings)


def test_every_field_of_the_model_is_among_the_changes() -> None:
    """So that a parameter added later is not forgotten above; the dictionary's path is none, two have one value yet."""
    named = {path.split(".")[0] for path in CHANGES}
    assert set(Campaign.model_fields) - named == {"format", "unicode"}
    for part in ("mechanism", "dictionary", "shuffle", "discovery", "keys"):
        # The commitment stands in the key's place, where it stands.
        fields = set(data()[part]) | ({"hash_key_commitment"} if part == "discovery" else set())
        model = Campaign.model_validate(data())
        assert fields == set(type(getattr(model, part)).model_fields)
        told = {path.split(".")[1] for path in CHANGES if path.startswith(f"{part}.")}
        assert fields - told == ({"path"} if part == "dictionary" else set())


def test_where_the_dictionary_lies_is_not_part_of_the_fingerprint() -> None:
    moved = Campaign.model_validate(changed("dictionary.path", "w.txt.gz"))
    assert moved.fingerprint == Campaign.model_validate(data()).fingerprint


def test_a_campaign_is_what_was_written(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for number, without in enumerate(["", "mechanism", "discovery", "dictionary"]):
        home = tmp_path / str(number)
        home.mkdir()
        with subtests.test(without=without):
            made = {name: part for name, part in data().items() if name != without}
            if without == "dictionary":
                made["mechanism"] = {
                    "name": "gcms",
                    "epsilon": 1,
                    "parameters": {"k": 8, "m": 16, "s": 4, "seed": "0" * 64},
                }
            campaign = Campaign.model_validate(made)
            campaign.write(home / "c.json")
            again = Campaign.read(home / "c.json")
            assert again.model_dump() == campaign.model_dump()
            assert again.fingerprint == campaign.fingerprint
            assert again.binding("reports") == campaign.binding("reports")


def test_a_file_written_by_hand_may_leave_out_defaults_and_write_times_otherwise(tmp_path: Path) -> None:
    made = data()
    del made["format"]
    text = json.dumps(made).replace("+00:00", "Z").replace("1.5", "1.50")
    (tmp_path / "c.json").write_text(text)
    assert Campaign.read(tmp_path / "c.json").fingerprint == Campaign.model_validate(data()).fingerprint


def test_a_parameter_of_a_mechanism_is_the_same_integer_with_and_without_a_point() -> None:
    data = {"name": "ss", "epsilon": 1.0}
    part = MechanismPart.model_validate({**data, "parameters": {"s": 2.0}})
    assert part == MechanismPart.model_validate({**data, "parameters": {"s": 2}})
    assert isinstance(part.parameters["s"], int)
    assert MechanismPart.model_validate({**data, "parameters": {"p": 0.25}}).parameters == {"p": 0.25}


def test_a_copy_with_another_mechanism_and_cap_promises_what_these_cost() -> None:
    campaign = Campaign.model_validate(data())
    assert campaign.mechanism is not None
    stronger = campaign.mechanism.model_copy(update={"epsilon": 6.0})
    copied = campaign.model_copy(
        update={"mechanism": stronger, "shuffle": campaign.shuffle.model_copy(update={"cap": 5})}
    )
    assert copied.frequency is not None
    assert copied.keep_rule is not None
    assert (copied.frequency.epsilon, copied.keep_rule.cap) == (6.0, 5)


def test_the_schema_accepts_what_is_valid_and_refuses_what_is_not() -> None:
    schema = Campaign.model_json_schema()
    json.dumps(schema)
    assert violations(schema, data()) == []
    assert violations(schema, json.loads(Campaign.model_validate(data()).model_dump_json())) == []
    for path, value in {
        "id": "Words!",
        "format": 1,
        "epoch": 0,
        "mechanism.epsilon": 0,
        "mechanism.surprise": 1,
        "dictionary.digest": "xyz",
        "shuffle.cap": 0,
        "shuffle.delta": 1,
        "discovery.rule": "best",
        "discovery.max_value_bytes": 5000,
        "keys.analyzer": [],
        "keys.analyzer.0.key": "ab",
    }.items():
        wrong = changed(path, value)
        assert violations(schema, wrong), path
        with pytest.raises(ValueError, match=path.split(".")[0]):
            Campaign.model_validate(wrong)
    incomplete = data()
    del incomplete["keys"]
    assert violations(schema, incomplete)


# Which key clients seal to.


def parts(*keys: dict[str, Any]) -> tuple[PublicKeyPart, ...]:
    return tuple(PublicKeyPart.model_validate(key) for key in keys)


def test_the_newest_valid_key_is_taken_whatever_the_order() -> None:
    old, new, coming, gone = public(1, -20, 30), public(2, -5, 10), public(3, 2), public(4, -3, 2)
    for order in ((old, new, coming, gone), (gone, coming, new, old), (new, gone, old, coming)):
        assert valid_key(parts(*order)).id == new["id"]
    assert valid_key(parts(old, new, coming, gone), NOW + timedelta(days=3)).id == coming["id"]
    assert valid_key(parts(old, new, gone), NOW - timedelta(days=10)).id == old["id"]


def test_validity_begins_with_its_first_second_and_ends_before_its_last() -> None:
    (key,) = parts(public(1))
    assert valid_key((key,), key.not_before) == key
    assert valid_key((key,), key.not_after - timedelta(seconds=1)) == key
    for moment in (key.not_before - timedelta(seconds=1), key.not_after):
        with pytest.raises(UsageError, match="no key of the campaign is valid") as caught:
            valid_key((key,), moment)
        assert key.id in str(caught.value)


def test_a_client_refuses_an_expired_key_and_one_not_valid_yet(subtests: pytest.Subtests) -> None:
    for role in ["analyzer", "aux_server"]:
        for start in [-40, 5]:
            with subtests.test(role=role, start=start):
                campaign = Campaign.model_validate(changed(f"keys.{role}", [public(9, start)]))
                with pytest.raises(UsageError, match="no key of the campaign is valid"):
                    ManyClients(campaign, dictionary=WORDS).discovery_report("four")
                if role == "analyzer":
                    with pytest.raises(UsageError, match="no key of the campaign is valid"):
                        ManyClients(campaign, dictionary=WORDS).report("one")


def test_a_campaign_of_another_version_of_unicode_is_refused(tmp_path: Path) -> None:
    """A client that spells values by other tables would make other items of some of them."""
    (tmp_path / "c.json").write_text(json.dumps(data() | {"unicode": "15.1"}))
    with pytest.raises(UsageError, match=r"unicode is '15\.1'.*'13\.0'"):
        Campaign.read(tmp_path / "c.json")
