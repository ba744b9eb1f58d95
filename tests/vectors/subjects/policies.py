"""Policies with campaigns that they accept and refuse, at a time, by a client that has accepted nothing yet."""

from __future__ import annotations

from typing import Any

from hushcount.campaigns.delegation import CampaignSignature
from hushcount.errors import FormatError
from hushcount.formats.reading import validated
from hushcount.newest import Newest, Untrusted
from hushcount.policy import Policy, PolicyTerms
from tests.vectors.subjects.campaigns import campaign
from tests.vectors.subjects.script import require_refused
from tests.vectors.subjects.signatures import wrong_campaigns
from tests.vectors.subjects.signing import AT, OPERATOR, delegated, delegation, moment, part, plain, signed


def _policy(name: str, **changes: Any) -> PolicyTerms:
    made: dict[str, Any] = {"campaign_id": f"vectors.{name}", "operator_keys": (part(OPERATOR),), "max_epsilon": 1.0}
    return PolicyTerms(**{**made, **changes})


_DISCOVERS = {"max_epsilon": 0.5, "max_discovery_epsilon": 1.0}
_ALONE = {"max_epsilon": 0.0, "max_discovery_epsilon": 0.5}
_BOTH_STREAMS = {"max_epsilon": 1.0, "max_discovery_epsilon": 1.0}
_PATHS = {"max_epsilon": 0.0, "max_discovery_epsilon": 1.0}
_LONG = {"max_epsilon": 0.0, "max_discovery_epsilon": 1.0}
_NOISE = {"max_epsilon": 0.0, "max_noise_epsilon": 1.0, "max_delta": 1e-8, "min_batch": 1}
_ACCEPTED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("grr", {}),
    ("grr", {"max_epsilon": 1.5, "max_delta": 1e-8, "min_batch": 1, "max_report_bytes": 65}),
    ("both", _DISCOVERS),
    ("both", {**_DISCOVERS, "max_delta": 1e-8}),
    # Three values remembered, of epsilon 3 each.
    ("memory", {"max_epsilon": 9.01}),
    # The rule is of add-remove: replaced, a client costs twice as much, and so does delta.
    ("discovery-only", _ALONE),
    ("discovery-only", {**_ALONE, "max_delta": 2e-7, "min_batch": 10**12}),
    ("discovery-of-what-no-list-has", _LONG),
    ("oblivious", {**_BOTH_STREAMS, "oblivious": True}),
    ("oblivious", _BOTH_STREAMS),
    # Without discovery there is nothing to guess.
    ("grr", {"oblivious": True}),
    ("noise", _NOISE),
    ("second-epoch", {}),
    ("large-integer", {}),
    ("last-epoch", {"max_epsilon": 40.01}),
    ("sample", {"layers": ("settings-2026",)}),
    ("sample", {"layers": ("a", "b", "settings-2026"), "least_share": 0.15}),
    ("paths", {**_PATHS, "hosts": ("a.b", "www.example.com")}),
    ("grr", {"hosts": ("www.example.com",)}),
    ("sites", {"max_epsilon": 4.01, "take": "site"}),
    ("number", {"take": "site"}),
    ("axes", {"axes": ("platform", "version")}),
    ("axes", {"axes": ("country", "platform", "version")}),
    ("grr", {"axes": ("version",)}),
    ("public-axes", {"axes": ("platform",), "public_axes": ("channel", "version"), "public_strata": 6}),
    ("grr", {"public_axes": ("version",), "public_strata": 1}),
    # Without a sample all clients are asked.
    ("grr", {"layers": ("a",), "least_share": 1.0}),
)
_TOLD: dict[str, Any] = {"axes": ("platform",), "public_axes": ("channel", "version")}
_REFUSED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("another_campaign", "grr", {"campaign_id": "vectors.both"}),
    ("another_campaign", "grr", {"campaign_id": "vectors"}),
    ("epsilon", "grr", {"max_epsilon": 0.99}),
    ("epsilon", "grr", {"max_epsilon": 0.0}),
    ("epsilon", "memory", {"max_epsilon": 8.99}),
    ("epsilon", "memory", {"max_epsilon": 3.01}),
    ("epsilon", "both", {**_DISCOVERS, "max_epsilon": 0.49}),
    ("epsilon", "last-epoch", {"max_epsilon": 39.9}),
    ("discovery_epsilon", "both", {"max_epsilon": 0.5}),
    ("discovery_epsilon", "both", {**_DISCOVERS, "max_discovery_epsilon": 0.99}),
    ("discovery_epsilon", "discovery-only", {**_ALONE, "max_discovery_epsilon": 0.25}),
    ("discovery_epsilon", "discovery-only", {**_ALONE, "max_discovery_epsilon": 0.49}),
    # No other consent is one to reports that are not randomised.
    ("noise_epsilon", "noise", {"max_epsilon": 40.0, "max_discovery_epsilon": 40.0, "min_batch": 1}),
    ("noise_epsilon", "noise", {**_NOISE, "max_noise_epsilon": 0.99}),
    ("delta", "noise-by-day", {**_NOISE, "max_discovery_epsilon": 1.0, "axes": ("version",), "max_delta": 9e-10}),
    ("keyed", "both", {**_DISCOVERS, "oblivious": True}),
    ("keyed", "discovery-only", {**_ALONE, "oblivious": True}),
    ("delta", "both", {**_DISCOVERS, "max_delta": 9e-9}),
    ("delta", "grr", {"max_delta": 9e-9}),
    ("delta", "grr", {"max_delta": 0.0}),
    ("delta", "discovery-only", {**_ALONE, "max_delta": 1e-7}),
    ("min_batch", "grr", {"min_batch": 1001}),
    ("min_batch", "both", {**_DISCOVERS, "min_batch": 10**12}),
    ("report_bytes", "grr", {"max_report_bytes": 64}),
    ("report_bytes", "discovery-of-what-no-list-has", {**_LONG, "max_report_bytes": 4257}),
    ("layer", "sample", {}),
    ("layer", "sample", {"layers": ("a", "b", "settings-2027")}),
    ("least_share", "sample", {"layers": ("settings-2026",), "least_share": 0.1501}),
    ("hosts", "paths", _PATHS),
    ("take", "paths", {**_PATHS, "hosts": ("a.b",), "take": "host"}),
    ("take", "hosts", {**_DISCOVERS, "max_epsilon": 1.0, "take": "site"}),
    ("take", "grr", {"take": "path"}),
    ("axes", "axes", {}),
    ("axes", "axes", {"axes": ("version", "country")}),
    ("axes", "axes", {"public_axes": ("version", "platform")}),
    ("axes", "public-axes", {"axes": ("version", "platform", "channel")}),
    ("axes", "public-axes", {"public_axes": ("version", "platform", "channel")}),
    ("public_strata", "public-axes", {**_TOLD, "public_strata": 5}),
    ("report_bytes", "both", {**_DISCOVERS, "max_report_bytes": 100}),
)
_MALFORMED: tuple[dict[str, Any], ...] = (
    {"format": 2},
    {"campaign_id": ""},
    {"campaign_id": None},
    {"operator_keys": []},
    {"operator_keys": None},
    {"operator_keys": [{**plain(part(OPERATOR)), "id": "0" * 16}]},
    {"max_epsilon": None},
    {"max_epsilon": -1.0},
    {"max_epsilon": "much"},
    {"max_discovery_epsilon": -0.1},
    {"max_noise_epsilon": -0.1},
    {"oblivious": "perhaps"},
    {"oblivious": 2},
    {"max_delta": 1.0},
    {"max_delta": -1e-9},
    {"min_batch": 0},
    {"min_batch": 1.5},
    {"layers": "a"},
    {"layers": ["A"]},
    {"layers": ["a", "b", "c", "d"]},
    *({"hosts": hosts} for hosts in ("a.b", ["a"], ["A.b"], ["a..b"], ["a.b/"], [7])),
    *({"axes": axes} for axes in ("version", ["Version"], [7], [f"a{number}" for number in range(9)])),
    *({"public_axes": axes} for axes in ("version", ["Version"])),
    *({"public_strata": most} for most in (0, 4097, 1.5)),
    {"take": "url"},
    {"take": "Host"},
    {"least_share": 0.0099},
    {"least_share": 1.01},
    {"max_report_bytes": 0},
    {"max_dictionary_bytes": 0},
    {"max_dictionary_bytes": (1 << 28) + 1},
    {"max_Epsilon": 1.0},
)


def _reports_to(name: str, terms: PolicyTerms, signature: CampaignSignature | None, at: str = AT) -> bool:
    try:
        Policy(**dict(terms), newest=Newest()).accept(campaign(name), signature, now=moment(at))
    except Untrusted:
        return False
    return True


def _entry(name: str, terms: PolicyTerms, signature: CampaignSignature | None, at: str = AT) -> dict[str, Any]:
    # Without what is at its default, which the malformed ones below have.
    given = {
        "policy": {"format": 1, **terms.model_dump(mode="json", exclude_defaults=True)},
        "campaign": name,
        "at": at,
    }
    return given if signature is None else {**given, "signature": plain(signature)}


def _accepted() -> list[dict[str, Any]]:
    made = []
    for name, changes in _ACCEPTED:
        terms, signature = _policy(name, **changes), signed(campaign(name))
        assert _reports_to(name, terms, signature), (name, changes)
        made.append(_entry(name, terms, signature))
    second = campaign("second-epoch")
    by_publisher = delegated(second, delegation(second))
    assert _reports_to("second-epoch", _policy("second-epoch"), by_publisher)
    return [*made, _entry("second-epoch", _policy("second-epoch"), by_publisher)]


def _refused() -> list[dict[str, Any]]:
    chosen = [
        (reason, name, _policy(name, **changes), signed(campaign(name)), AT) for reason, name, changes in _REFUSED
    ]
    chosen.append(("unsigned", "grr", _policy("grr"), None, AT))  # type: ignore[arg-type]
    for name, reason, signature, keys, at in wrong_campaigns():
        if [key.id for key in keys] == [OPERATOR.id]:
            limits = {"operator_keys": tuple(keys), "max_epsilon": 50.0, "max_discovery_epsilon": 10.0}
            chosen.append((reason, name, _policy(name, **limits), signature, at))
    made = []
    for reason, name, terms, given, at in chosen:
        assert not _reports_to(name, terms, given, at), (reason, name)
        made.append({**_entry(name, terms, given, at), "reason": reason})
    for changes in _MALFORMED:
        content = {key: value for key, value in {**plain(_policy("grr")), **changes}.items() if value is not None}
        require_refused(FormatError, validated, PolicyTerms, content, "it")
        made.append(
            {
                "policy": content,
                "campaign": "grr",
                "at": AT,
                "signature": plain(signed(campaign("grr"))),
                "reason": "malformed",
            }
        )
    return made


def data() -> dict[str, Any]:
    """Return the file's content."""
    return {
        "subject": "policies",
        "about": "A policy file and a signed campaign of campaigns.json at a time: whether a new client reports to it",
        "accept": _accepted(),
        "refuse": _refused(),
    }
