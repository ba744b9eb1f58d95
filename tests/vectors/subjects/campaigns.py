"""Campaign files to fingerprint, head, terms, bindings and lengths; and files that must be refused."""

from __future__ import annotations

import json
from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, in_random_order
from hushcount.campaigns.public_keys import evaluator_key_id, key_id
from hushcount.errors import FormatError
from hushcount.formats.reading import validated
from hushcount.numbers import Bins
from keys.evaluating import EvaluatorKey
from tests.hushcount.oracles.cases import SEED
from tests.vectors.subjects.script import octets, require_refused
from tests.vectors.subjects.sealing import keypair
from tests.vectors.subjects.windows import DAYS

WORDS = Dictionary(("one", "two", "three", "größer"))


def public_key(name: str, begin: str = "2020-01-01T00:00:00Z", end: str = "2120-01-01T00:00:00Z") -> dict[str, str]:
    """Return a role's public key as a campaign file has it."""
    key = keypair(name)[0]
    return {"id": key_id(key), "key": key.hex(), "not_before": begin, "not_after": end}


def evaluator_key(name: str = "evaluator") -> dict[str, str]:
    """Return an evaluator's public key as a campaign file has it."""
    key = EvaluatorKey(octets(32, name)).public_key
    return {**public_key("analyzer"), "id": evaluator_key_id(key), "key": key.hex()}


KEYS = {"analyzer": [public_key("analyzer")], "aux_server": [public_key("aux_server")]}
OBLIVIOUS_KEYS = {**KEYS, "evaluator": [evaluator_key()]}
DISCOVERY = {"epsilon": 1.0, "delta": 1e-8, "max_value_bytes": 24, "hash_key": octets(32, "hash key").hex()}
OBLIVIOUS = {"epsilon": 1.0, "delta": 1e-8, "max_value_bytes": 24, "hash": "oblivious"}
DICTIONARY = {"path": "words.txt", "items": 4, "digest": WORDS.digest}


TIMES = Bins(("2", "10.5", "300"), "ms")


def dictionary_of(bins: Bins) -> dict[str, Any]:
    """Return the part of a campaign file."""
    listed = Dictionary(in_random_order(bins.names))
    return {"path": "bins.txt", "items": len(bins), "digest": listed.digest}


def mechanism(name: str, epsilon: float, **parameters: Any) -> dict[str, Any]:
    """Return the part of a campaign file."""
    return {"name": name, "epsilon": epsilon, "parameters": parameters}


NOISE = {"epsilon": 1.0, "delta": 1e-8, "seconds": 86_400}
_ONE = {"cap": 1, "minimum_batch": 1, "delta": 1e-8}
_MOST = 1_124_502
"""The most items whose dummies are within the bound."""


_GIVEN: dict[str, dict[str, Any]] = {
    "grr": {"mechanism": mechanism("grr", 1.0), "dictionary": DICTIONARY},
    "second-epoch": {
        "mechanism": mechanism("grr", 1.0),
        "dictionary": DICTIONARY,
        "epoch": 2,
        "previous": octets(32, "head").hex(),
    },
    "last-epoch": {"mechanism": mechanism("he", 40.0), "dictionary": DICTIONARY, "epoch": 2_147_483_647},
    "both": {"mechanism": mechanism("ais", 0.5, s=2), "dictionary": DICTIONARY, "discovery": DISCOVERY},
    "open-domain": {"mechanism": mechanism("ocms", 2.0, B=8), "discovery": DISCOVERY},
    "large-integer": {"mechanism": mechanism("ais", 1.0, s="620136698185898879")},
    "sketch": {"mechanism": mechanism("gcms", 4.0, k=1024, m=1024, s=18, seed=SEED, p=0.3)},
    "target": {"mechanism": mechanism("gcms-target", 2.0, k=64, m=40, s=4, seed=SEED, f=1e-7)},
    "memory": {
        "mechanism": mechanism("rappor", 3.0000000000000004, k=64, m=128, seed=SEED),
        "dictionary": DICTIONARY,
        "memory": True,
        "memory_values": 3,
    },
    "discovery-only": {
        "discovery": {**DISCOVERY, "relation": "add-remove", "rule": "laplace", "epsilon": 0.25, "delta": 1e-7},
        "shuffle": {"cap": 10, "minimum_batch": 10**12, "delta": 1e-21},
    },
    "counts": {"discovery": {**DISCOVERY, "counts": True}, "shuffle": {"cap": 3, "minimum_batch": 1000, "delta": 1e-8}},
    "oblivious": {
        "mechanism": mechanism("grr", 1.0),
        "dictionary": DICTIONARY,
        "discovery": OBLIVIOUS,
        "keys": OBLIVIOUS_KEYS,
    },
    "oblivious-with-another-key": {
        "mechanism": mechanism("grr", 1.0),
        "dictionary": DICTIONARY,
        "discovery": OBLIVIOUS,
        "keys": {**KEYS, "evaluator": [evaluator_key("another evaluator")]},
    },
    "sample": {
        "mechanism": mechanism("grr", 1.0),
        "dictionary": DICTIONARY,
        "sample": {"layer": "settings-2026", "buckets": [[0, 500], [9000, 10000]]},
    },
    "number": {
        "mechanism": mechanism("grr", 1.0),
        "dictionary": dictionary_of(TIMES),
        "number": {"edges": ["2", "10.5", "300"], "unit": "ms", "mean": False},
    },
    "count": {
        "mechanism": mechanism("ais", 1.0, s=1),
        "dictionary": dictionary_of(Bins(("1", "2", "3"))),
        "number": {"edges": ["1", "2", "3"], "unit": "", "mean": False},
    },
    "mean": {
        "mechanism": mechanism("line", 2.0, m=7, b=1),
        "dictionary": {"path": "end.txt", "items": 1, "digest": Dictionary(("300 ms",)).digest},
        "number": {"edges": ["0", "300"], "unit": "ms", "mean": True},
    },
    "windows": {"mechanism": mechanism("grr", 1.0), "dictionary": DICTIONARY, "windows": DAYS},
    "hosts": {
        "mechanism": mechanism("grr", 1.0),
        "dictionary": DICTIONARY,
        "discovery": DISCOVERY,
        "url": {"take": "host"},
    },
    "paths": {
        "discovery": OBLIVIOUS,
        "keys": OBLIVIOUS_KEYS,
        "url": {"take": "path", "segments": 2},
    },
    "sites": {
        "mechanism": mechanism("gcms", 4.0, k=1024, m=1024, s=18, seed=SEED, p=0.3),
        "url": {"take": "site", "suffixes": ["*.ck", "co.uk", "com", "uk"]},
    },
    "axes": {
        "mechanism": mechanism("ais", 1.0, s=9),
        "dictionary": DICTIONARY,
        "axes": {
            "listed": [
                {"name": "version", "public": False, "values": ["2.1", "2.0"]},
                {"name": "platform", "public": False, "values": ["linux", "mac os"]},
            ],
            "key": octets(32, "axes").hex(),
        },
    },
    "public-axes": {
        "mechanism": mechanism("grr", 1.0),
        "dictionary": DICTIONARY,
        "axes": {
            "listed": [
                {"name": "version", "public": True, "values": ["2.1", "2.0"]},
                {"name": "platform", "public": False, "values": ["linux"]},
                {"name": "channel", "public": True, "values": ["beta"]},
            ],
            "key": octets(32, "axes").hex(),
        },
    },
    "noise": {"noise": NOISE, "dictionary": DICTIONARY, "shuffle": _ONE},
    "noise-in-many": {"noise": NOISE, "dictionary": {**DICTIONARY, "items": _MOST}, "shuffle": _ONE},
    "noise-by-day": {
        "noise": {"epsilon": 0.5, "delta": 1e-9},
        "dictionary": DICTIONARY,
        "discovery": DISCOVERY,
        "axes": {
            "listed": [{"name": "version", "public": False, "values": ["2.1", "2.0"]}],
            "key": octets(32, "axes").hex(),
        },
        "shuffle": {**_ONE, "cap": 3},
        "windows": DAYS,
    },
    "discovery-of-what-no-list-has": {"dictionary": DICTIONARY, "discovery": {**DISCOVERY, "max_value_bytes": 4096}},
}


def campaign(name: str) -> Campaign:
    """Return a campaign of the vectors."""
    return Campaign.model_validate({"id": f"vectors.{name}", "keys": KEYS, **_GIVEN[name]})


def file_of(made: Campaign) -> dict[str, Any]:
    """Return the content of a campaign's file as it is published, with every default."""
    content: dict[str, Any] = json.loads(made.text())
    return content


def _entry(name: str, made: Campaign) -> dict[str, Any]:
    return {
        "name": name,
        "file": file_of(made),
        "fingerprint": made.fingerprint.hex(),
        "terms": made.terms.hex(),
        "head": made.head.hex(),
        "bindings": {stream: made.binding(stream).hex() for stream in made.streams},
        "sealed_bytes": {stream: made.sealed_bytes(stream) for stream in made.streams},
    }


_GRR = {"name": "grr", "parameters": {"m": None, "b": None}}
_RULES = {"relation": "replace-one", "rule": "optimal", "hash": "keyed", "counts": False}
_TOO_MANY = [[2 * number, 2 * number + 1] for number in range(101)]
_KEY, _ASKED = KEYS["analyzer"][0], OBLIVIOUS_KEYS["evaluator"][0]
_WRONG: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("wrong_format", "grr", {"format": 1}),
    ("wrong_format", "grr", {"format": 3}),
    ("missing_field", "grr", {"id": None}),
    ("missing_field", "grr", {"keys": None}),
    ("missing_field", "grr", {"keys": {"analyzer": None}}),
    ("missing_field", "grr", {"dictionary": {"digest": None}}),
    ("missing_field", "both", {"discovery": {"delta": None}}),
    ("unknown_field", "grr", {"comment": "hello"}),
    ("unknown_field", "grr", {"shuffle": {"Cap": 1}}),
    ("unknown_field", "both", {"discovery": {"threshold": 3}}),
    ("unknown_field", "grr", {"mechanism": {"delta": 0.0}}),
    *(("wrong_id", "grr", {"id": name}) for name in ("", "A", ".", "../x", "-a", "a" * 65, "a b", "ä", "a\n", "a/b")),
    *(("out_of_range", "grr", {"epoch": epoch}) for epoch in (0, -1, 2_147_483_648, 1.5)),
    *(("out_of_range", "grr", {"mechanism": {"epsilon": epsilon}}) for epsilon in (0, 9e-5, 41, -1)),
    *(
        ("out_of_range", "grr", {"shuffle": part})
        for part in (
            {"cap": 0}, {"cap": 1001}, {"minimum_batch": 0}, {"minimum_batch": 10**12 + 1}, {"delta": 0},
            {"delta": 1},
        )
    ),
    *(
        ("out_of_range", "both", {"discovery": part})
        for part in (
            {"epsilon": 0}, {"delta": 0}, {"delta": 1}, {"max_value_bytes": 0}, {"max_value_bytes": 4097},
        )
    ),
    *(("out_of_range", "grr", {"dictionary": {"items": number}}) for number in (0, (1 << 24) + 1)),
    *(("out_of_range", "memory", {"memory_values": number}) for number in (0, 1001)),
    *(
        ("wrong_type", "grr", part)
        for part in (
            {"epoch": []}, {"epoch": "one"}, {"keys": []}, {"mechanism": "grr"}, {"memory": 2}, {"id": 7},
            {"mechanism": {"parameters": []}}, {"mechanism": {"epsilon": "one"}},
        )
    ),
    *(
        ("unknown_name", name, part)
        for name, part in (
            ("both", {"discovery": {"rule": "best"}}),
            ("both", {"discovery": {"relation": "edit"}}),
            ("oblivious", {"discovery": {"hash": "plain"}}),
            ("counts", {"discovery": {"rule": "laplace"}}),
            ("grr", {"unicode": "14.0"}),
            ("grr", {"mechanism": {"name": "grr2"}}),
        )
    ),
    *(
        ("not_hex", name, part)
        for name, part in (
            ("second-epoch", {"previous": "00" * 31}),
            ("second-epoch", {"previous": "AA" * 32}),
            ("grr", {"dictionary": {"digest": "0x" + "0" * 62}}),
            ("both", {"discovery": {"hash_key": "0" * 63}}),
            ("grr", {"keys": {"analyzer": [{**_KEY, "key": _KEY["key"][:-1]}]}}),
        )
    ),
    ("file_name", "grr", {"dictionary": {"path": "../words.txt"}}),
    ("file_name", "grr", {"dictionary": {"path": "/etc/passwd"}}),
    ("file_name", "grr", {"dictionary": {"path": ".words"}}),
    ("file_name", "grr", {"dictionary": {"path": ""}}),
    ("key_id", "grr", {"keys": {"analyzer": [{**_KEY, "id": "0" * 16}]}}),
    ("key_id", "grr", {"keys": {"analyzer": [{**_KEY, "key": "0" * 64}]}}),
    ("key_id", "oblivious", {"keys": {"evaluator": [{**_ASKED, "id": key_id(bytes.fromhex(_ASKED["key"]))}]}}),
    ("key_time", "grr", {"keys": {"analyzer": [{**_KEY, "not_after": _KEY["not_before"]}]}}),
    ("key_time", "grr", {"keys": {"analyzer": [{**_KEY, "not_before": "2020-01-01T00:00:00"}]}}),
    ("key_time", "grr", {"keys": {"analyzer": [{**_KEY, "not_before": "yesterday"}]}}),
    ("one_key_a_role", "grr", {"keys": {"analyzer": []}}),
    ("one_key_a_role", "grr", {"keys": {"analyzer": [_KEY, public_key("another")]}}),
    ("one_key_a_role", "both", {"keys": {"aux_server": []}}),
    ("one_key_a_role", "oblivious", {"keys": {"evaluator": []}}),
    ("one_key_a_role", "oblivious", {"keys": {"evaluator": [_ASKED, evaluator_key("another evaluator")]}}),
    ("one_key_a_role", "both", {"keys": {"evaluator": [_ASKED]}}),
    ("one_key_a_role", "grr", {"keys": {"evaluator": [_ASKED]}}),
    ("one_key_for_two_roles", "both", {"keys": {"aux_server": [_KEY]}}),
    ("no_stream", "grr", {"mechanism": None}),
    ("no_stream", "discovery-only", {"discovery": None}),
    ("of_no_use", "discovery-only", {"memory": True}),
    ("of_no_use", "grr", {"memory_values": 2}),
    ("wrong_type", "counts", {"discovery": {"counts": 2}}),
    ("hash_key", "both", {"discovery": {"hash_key": None}}),
    ("hash_key", "both", {"discovery": {"hash_key_commitment": "0" * 64}}),
    ("hash_key", "oblivious", {"discovery": {"hash_key": "0" * 64}}),
    ("hash_key", "oblivious", {"discovery": {"hash_key_commitment": "0" * 64}}),
    ("hash_key", "oblivious", {"discovery": {"hash": "keyed"}, "keys": {"evaluator": []}}),
    ("integer_too_large", "large-integer", {"mechanism": {"parameters": {"s": 620136698185898879}}}),
    ("integer_too_large", "sketch", {"mechanism": {"parameters": {"k": 9007199254740992}}}),
    *(
        ("sample", "sample", {"sample": part})
        for part in (
            {"buckets": []}, {"buckets": [[]]}, {"buckets": [[5]]}, {"buckets": [[1, 2, 3]]}, {"buckets": [[5, 5]]},
            {"buckets": [[9, 5]]}, {"buckets": [[0, 10], [10, 20]]}, {"buckets": [[0, 10], [5, 20]]},
            {"buckets": [[20, 30], [0, 10]]}, {"buckets": [[-1, 5]]}, {"buckets": [[0, 10001]]},
            {"buckets": [[0, 1.5]]}, {"buckets": [["zero", 5]]}, {"buckets": 5}, {"buckets": _TOO_MANY},
            {"layer": ""}, {"layer": "No Layer"}, {"layer": 7},
        )
    ),
    *(
        ("collectors", "grr", {"collectors": part})
        for part in ([], ["one", "one"], ["One"], [""], [7], "one", {"one": 1}, [f"c{number}" for number in range(17)])
    ),
    ("missing_field", "sample", {"sample": {"layer": None}}),
    *(
        ("number", "number", part)
        for part in (
            {"number": 5}, {"number": {"unit": None}}, {"number": {"edges": None}}, {"number": {"bins": 4}},
            {"number": {"edges": []}}, {"number": {"edges": "2"}}, {"number": {"edges": [2, 10.5, 300]}},
            {"number": {"edges": ["2", "2", "300"]}}, {"number": {"edges": ["300", "10.5", "2"]}},
            *({"number": {"edges": [edge, "10.5"]}} for edge in ("", "2.0", "02", "+2", "-0", "2e0", ".2", "2.")),
            {"number": {"edges": ["2", "10.5", "1e400"]}}, {"number": {"edges": ["1", "10.5", "300"]}},
            {"number": {"edges": [str(edge) for edge in range(1, 1025)]}},
            *({"number": {"unit": unit}} for unit in ("s", "m s", "m" * 17, "mä", 7)),
            {"dictionary": {"items": 5}}, {"dictionary": {"digest": "0" * 64}}, {"dictionary": None},
            {"number": {"mean": None}}, {"number": {"mean": 0}}, {"number": {"mean": True}},
            {"mechanism": mechanism("line", 1.0, m=7, b=1)},
            {"discovery": {**_RULES, **DISCOVERY}},
        )
    ),
    *(
        ("number", "mean", part)
        for part in (
            {"number": {"mean": False}}, {"number": {"edges": ["0", "200", "300"]}}, {"number": {"edges": ["300"]}},
            {"number": {"edges": ["0", "301"]}}, {"number": {"unit": "s"}}, {"number": None}, {"mechanism": _GRR},
        )
    ),
    *(
        ("mechanism", "mean", {"mechanism": {"parameters": part}})
        for part in ({"m": None}, {"b": None}, {"m": 1}, {"m": 257}, {"b": -1}, {"b": 8}, {"m": 7.5}, {"s": 1})
    ),
    ("unknown_field", "sample", {"sample": {"share": 0.5}}),
    ("windows", "windows", {"windows": {"unit": "week"}}),
    ("windows", "windows", {"passes": {"seconds": 86400, "first": "2026-11-28", "days": ["ab" * 32]}}),
    *(("url", name, {"url": part}) for name, part in (
        ("hosts", {"take": "path", "segments": 1}), ("hosts", {"take": "site"}), ("hosts", {"take": None}),
        ("hosts", {"segments": 2}), ("number", {"take": "host"}), ("sites", {"suffixes": ["uk", "com"]}),
        ("paths", {"segments": 9}),
    )),
    *(("axes", "axes", part) for part in (
        {"axes": {"key": "0"}}, {"axes": {"more": 1}}, {"axes": {"listed": []}},
        {"mechanism": mechanism("gcms", 4.0, k=1024, m=1024, s=18, seed=SEED, p=0.3)},
        {"mechanism": None, "discovery": {**_RULES, **DISCOVERY}}, {"dictionary": {"items": 1_864_135}},
    )),
    *(("noise", "noise", part) for part in (
        {"dictionary": None}, {"shuffle": {"minimum_batch": 2}}, {"keys": {"aux_server": []}},
        {"mechanism": mechanism("grr", 1.0)}, {"windows": DAYS}, {"noise": 5}, {"noise": {"mixes": 2}},
        *({"noise": {"epsilon": epsilon}} for epsilon in (None, 0, 9e-5, 1.9e-4, 41, "one")),
        *({"noise": {"delta": delta}} for delta in (None, 0, 1, 1e-20)),
        *({"noise": {"seconds": seconds}} for seconds in (None, 0, 1.5, 31_622_401)),
        {"noise": {"epsilon": 0.001}, "shuffle": {"cap": 6}},
    )),
    ("noise", "noise-in-many", {"dictionary": {"items": _MOST + 1}}),
    ("noise", "noise-by-day", {"noise": {"seconds": 86_400}}),
    ("noise", "public-axes", {"mechanism": None, "noise": NOISE, "shuffle": {"minimum_batch": 1}}),
    ("number", "mean", {"mechanism": None, "noise": NOISE, "shuffle": {"minimum_batch": 1}}),
    ("of_no_use", "noise", {"memory": True}),
    ("no_stream", "noise", {"noise": None}),
    ("mechanism", "both", {"mechanism": {"parameters": {"s": None}}}),
    ("mechanism", "both", {"mechanism": {"parameters": {"s": 5}}}),
    ("mechanism", "both", {"dictionary": None, "mechanism": {"name": "grr", "parameters": {"s": None}}}),
    ("mechanism", "sketch", {"mechanism": {"parameters": {"seed": "0" * 63}}}),
    ("mechanism", "sketch", {"mechanism": {"parameters": {"p": 0.9999}}}),
    ("mechanism", "grr", {"mechanism": {"parameters": {"B": 3}}}),
)  # fmt: skip


def patched(content: Any, patch: Any) -> Any:
    """Return JSON data with an RFC 7396 merge patch: null removes."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(content) if isinstance(content, dict) else {}
    for key, value in patch.items():
        merged[key] = patched(merged.get(key), value)
        if value is None:
            del merged[key]
    return merged


def _refused() -> list[dict[str, Any]]:
    made = []
    for reason, name, patch in _WRONG:
        require_refused(FormatError, validated, Campaign, patched(file_of(campaign(name)), patch), "it")
        made.append({"name": name, "patch": patch, "reason": reason})
    return made


def data() -> dict[str, Any]:
    """Return the file's content."""
    made = [_entry(name, campaign(name)) for name in _GIVEN]
    redacted = _entry("both-redacted", campaign("both").redacted())
    return {
        "subject": "campaigns",
        "about": "A campaign file to its hashes and lengths. Refuse the named file with an RFC 7396 merge patch",
        "accept": [*made, redacted],
        "refuse": _refused(),
    }
