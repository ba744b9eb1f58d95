"""A client as a whole: a value with the words and the secret that it draws to its sealed report."""

from __future__ import annotations

from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

from hushcount.arrays import Octets
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary, in_random_order
from hushcount.campaigns.public_keys import valid_key
from hushcount.errors import UsageError
from hushcount.many_clients import ManyClients
from hushcount.randomness import SystemWords
from tests.support.clocks import stopped
from tests.vectors.subjects.campaigns import WORDS, campaign
from tests.vectors.subjects.script import Recorder, octets, require_refused
from tests.vectors.subjects.signing import AT, moment

_STRATA: tuple[dict[str, str], ...] = (
    {}, {"version": "2.0", "platform": "mac os"}, {"version": "2.0", "platform": "Mac OS"},
    {"version": "1.9", "channel": "beta"},
)  # fmt: skip
_ACCEPTED: tuple[tuple[str, str, tuple[str | None, ...]], ...] = (
    ("grr", "reports", ("one", "größer", "gro\u0308ßer", "nobody's", "", "\ud800", "a\u202eb")),
    ("both", "reports", ("two", "four")),
    ("open-domain", "reports", ("anything", "e\u0301", "é", "", "a\nb")),
    ("large-integer", "reports", ("anything",)),
    ("sketch", "reports", ("anything", "\u200b")),
    ("memory", "reports", ("three", "four")),
    ("number", "reports", ("1.99", "312.5", "2 to 10.5 ms", "-Infinity")),
    ("count", "reports", ("2", "1000")),
    ("mean", "reports", ("1.99", "0", "300", "312.5", "slow", "-Infinity")),
    ("sites", "reports", ("https://www.Example.com/a?b", "example.com")),
    (
        "hosts",
        "discovery",
        ("https://www.Example.com/a?b", "https://www.a-long-one.example.com"),
    ),
    ("both", "discovery", ("four", "cafe\u0301", "café", "two", "", "\u202e", "\ud800", None, "x" * 24)),
    ("open-domain", "discovery", ("one", None)),
    ("discovery-only", "discovery", ("one",)),
)
_REFUSED: tuple[tuple[str, str, str, str], ...] = (
    ("value_too_long", "both", "discovery", "x" * 25),
    ("value_too_long", "both", "discovery", "日" * 9),
    ("value_too_long", "both", "discovery", "x" * 4097),
    ("value_too_long", "discovery-only", "discovery", "é" * 13),
    ("no_such_stream", "grr", "discovery", "one"),
    ("no_such_stream", "sketch", "discovery", "one"),
    ("another_dictionary", "number", "reports", "2"),
    ("another_dictionary", "count", "reports", "2"),
    ("another_dictionary", "mean", "reports", "2"),
    ("another_dictionary", "mean", "reports", "slow"),
    ("value_too_long", "both", "discovery", "日" * 10),
    ("no_such_stream", "large-integer", "discovery", "one"),
    ("no_such_stream", "discovery-only", "reports", "one"),
    ("no_such_stream", "windows", "discovery", "one"),
    ("no_such_stream", "axes", "discovery", "one"),
    ("no_such_stream", "public-axes", "discovery", "one"),
    ("no_such_stream", "memory", "discovery", "one"),
    ("no_such_stream", "second-epoch", "discovery", "one"),
    ("no_such_stream", "last-epoch", "discovery", "one"),
    ("no_such_stream", "sites", "discovery", "https://www.example.com/"),
    ("no_such_stream", "noise", "discovery", "one"),
    ("no_hash_key", "both-redacted", "discovery", "four"),
    ("no_hash_key", "both-redacted", "reports", "one"),
)
_LATE = "2026-06-01T23:59:59Z"
_OTHER_ITEMS = (("one", "two", "three"), ("two", "one", "three", "größer"), ("one", "two", "three", "grosser"))


def _of(name: str) -> Campaign:
    return campaign("both").redacted() if name == "both-redacted" else campaign(name)


def _report(
    name: str,
    stream: str,
    value: str | None,
    items: tuple[str, ...] | None = None,
    by: dict[str, str] | None = None,
    at: str = AT,
) -> dict[str, Any]:
    drawn = (name, stream, value) if by is None else (name, stream, value, *by.values())
    of, recorder, secret = _of(name), Recorder(*drawn), octets(32, "client", *drawn)
    usual = WORDS.items if of.number is None else in_random_order(of.number.items)
    listed = None if of.dictionary is None else Dictionary(items or usual)
    client = ManyClients(of, dictionary=listed, clock=stopped(moment(at)))
    told = {} if by is None else {"by": [by]}
    sealed = partial(client.reports if stream == "reports" else client.discovery_reports, [value], **told)

    # With noise, the box for the analyzer comes first.
    layer = octets(32, "layer", *drawn)
    left = [secret, layer]

    def secrets(_count: int, _size: int) -> Octets:
        return np.frombuffer(bytearray(left.pop(0)), dtype=np.uint8)[np.newaxis]

    with (
        patch.object(SystemWords, "words", lambda _, count: recorder.words(count)),
        patch("hushcount.wire.sealing.drawn_secrets", secrets),
    ):
        made = sealed().tobytes()
    return {
        "campaign": name,
        **({} if listed is None else {"items": list(listed.items)}),
        "stream": stream,
        "value": value,
        **({} if by is None else {"by": by}),
        "at": at,
        "words": [f"{one:016x}" for one in recorder.taken],
        "ephemeral_secret": secret.hex(),
        **({} if left else {"layer_secret": layer.hex()}),
        "report": made.hex(),
    }


def _refused() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for reason, name, stream, value in _REFUSED:
        require_refused(UsageError, _report, name, stream, value, WORDS.items)
        listed = {} if _of(name).dictionary is None else {"items": list(WORDS.items)}
        made.append({"campaign": name, **listed, "stream": stream, "value": value, "at": AT, "reason": reason})
    for items in _OTHER_ITEMS:
        require_refused(UsageError, _report, "grr", "reports", "one", items)
        for name in ("grr", "noise"):
            given = {"campaign": name, "items": list(items), "stream": "reports", "value": "one", "at": AT}
            made.append({**given, "reason": "another_dictionary"})
    for at in ("2019-12-31T23:59:59Z", "2120-01-01T00:00:00Z"):
        for stream in ("reports", "discovery"):
            require_refused(UsageError, valid_key, campaign("both").keys.analyzer, moment(at))
            given = {"campaign": "both", "items": list(WORDS.items), "stream": stream, "value": "one", "at": at}
            made.append({**given, "reason": "no_valid_key"})
    return made


def data() -> dict[str, Any]:
    """Return the file's content."""
    accept = [_report(name, stream, value) for name, stream, several in _ACCEPTED for value in several]
    accept += [_report("axes", "reports", value, by=by) for value in ("two", "four") for by in _STRATA]
    accept += [_report("public-axes", "reports", "two", by=by) for by in ({}, {"version": "2.0", "channel": "beta"})]
    accept += [_report("noise", "reports", value, at=at) for value, at in (("two", AT), ("four", _LATE))]
    accept.append(_report("noise-by-day", "reports", "one", by={"version": "2.0"}, at="2026-10-25T10:00:00Z"))
    return {
        "subject": "clients",
        "about": "A campaign of campaigns.json, its dictionary, a value, all words and a secret to the sealed report",
        "accept": accept,
        "refuse": _refused(),
    }
