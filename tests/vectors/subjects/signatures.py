"""Signatures of bytes for a purpose, of campaigns, by the operator's key or by a publisher's with a delegation."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, Restart, verify_campaign
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.campaigns.signatures import Signature, SignatureError, signed_bytes, verify
from keys.private import SigningKey
from tests.vectors.subjects.campaigns import campaign, evaluator_key
from tests.vectors.subjects.script import require_refused
from tests.vectors.subjects.signing import (
    AT,
    BEGIN,
    END,
    OPERATOR,
    PUBLISHER,
    STRANGER,
    delegated,
    delegation,
    moment,
    part,
    plain,
    restart,
    signed,
)

_ORDER = (1 << 252) + 27742317777372353535851937790883648493
_PURPOSES = ("campaign", "delegation", "restart", "batch", "manifest", "summary")
_LATE, _EARLY = "2027-06-01T00:00:00Z", "2025-12-31T23:59:59Z"


def _bytes_signed() -> list[dict[str, Any]]:
    made = []
    for number, purpose in enumerate(_PURPOSES):
        payload = bytes(range(8 * number))
        signature = OPERATOR.sign(payload, purpose)  # type: ignore[arg-type]
        verify([part(OPERATOR)], payload, purpose, signature)  # type: ignore[arg-type]
        message = signed_bytes(payload, purpose)  # type: ignore[arg-type]
        given = {"purpose": purpose, "payload": payload.hex(), "signed_bytes": message.hex()}
        made.append({"rule": "bytes", "keys": _keys(OPERATOR), **given, "signature": plain(signature)})
    return made


def _keys(*keys: SigningKey) -> list[dict[str, Any]]:
    return [plain(part(key)) for key in keys]


def _bytes_refused() -> list[dict[str, Any]]:
    payload = b"payload"
    good = OPERATOR.sign(payload, "campaign")
    octets = bytes.fromhex(good.signature)
    scalar = int.from_bytes(octets[32:], "little") + _ORDER
    greater = Signature(key_id=good.key_id, signature=(octets[:32] + scalar.to_bytes(32, "little")).hex())
    wrong: list[tuple[str, str, bytes, Signature]] = [
        ("unknown_key", "campaign", payload, STRANGER.sign(payload, "campaign")),
        (
            "wrong_signature",
            "campaign",
            payload,
            Signature(key_id=OPERATOR.id, signature=STRANGER.sign(payload, "campaign").signature),
        ),
        ("wrong_signature", "delegation", payload, good),
        ("wrong_signature", "campaign", payload + b"\0", good),
        ("wrong_signature", "campaign", b"", good),
        ("wrong_signature", "campaign", payload, greater),
        ("wrong_signature", "campaign", payload, Signature(key_id=OPERATOR.id, signature="0" * 128)),
    ]
    for place in (0, 31, 32, 63):
        turned = octets[:place] + bytes([octets[place] ^ 1]) + octets[place + 1 :]
        wrong.append(("wrong_signature", "campaign", payload, Signature(key_id=good.key_id, signature=turned.hex())))
    made = []
    for reason, purpose, given, signature in wrong:
        require_refused(SignatureError, verify, [part(OPERATOR)], given, purpose, signature)
        made.append(
            {
                "rule": "bytes",
                "keys": _keys(OPERATOR),
                "purpose": purpose,
                "payload": given.hex(),
                "signature": plain(signature),
                "reason": reason,
            }
        )
    for changes in (
        {"signature": good.signature[:-2]},
        {"signature": good.signature.upper()},
        {"key_id": "0" * 15},
        {"at": AT},
    ):
        content = {**plain(good), **changes}
        require_refused(ValidationError, Signature.model_validate, content)
        made.append(
            {
                "rule": "bytes",
                "keys": _keys(OPERATOR),
                "purpose": "campaign",
                "payload": payload.hex(),
                "signature": content,
                "reason": "malformed",
            }
        )
    return made


def _campaigns_signed() -> list[dict[str, Any]]:
    made = []
    grr, second, both, asked = (campaign(name) for name in ("grr", "second-epoch", "both", "oblivious"))
    keys = [evaluator_key(name)["key"] for name in ("another evaluator", "evaluator")]
    first = delegation(second, last_epoch=2)
    chosen: list[tuple[str, Campaign, CampaignSignature, str]] = [
        ("grr", grr, signed(grr), AT),
        ("grr", grr, signed(grr), BEGIN),
        ("grr", grr, signed(grr), "2026-12-31T23:59:59.999999Z"),
        ("both", both, signed(both), AT),
        ("both-redacted", both.redacted(), signed(both), AT),
        ("second-epoch", second, delegated(second, first), AT),
        ("both", both, delegated(both, delegation(both)), AT),
        ("oblivious", asked, signed(asked), AT),
        ("oblivious", asked, delegated(asked, delegation(asked, evaluator_keys=keys)), AT),
        ("memory", campaign("memory"), delegated(campaign("memory"), delegation(campaign("memory"), last_epoch=1)), AT),
        ("second-epoch", second, signed(second, restart=_before(second, 1)), AT),
        ("grr", grr, signed(grr, restart=restart(grr, 2_147_483_647)), AT),
        ("second-epoch", second, delegated(second, delegation(second, serial=2), restart=restart(second, 2)), AT),
        ("second-epoch", second, delegated(second, delegation(second, serial=3), restart=_before(second, 2)), AT),
    ]
    for name, of, signature, at in chosen:
        vouching = verify_campaign([part(STRANGER), part(OPERATOR)], of, signature, moment(at))
        more = {}
        if signature.delegation is not None:
            more["delegation_signed"] = signature.delegation.signed().decode()
        if signature.restart is not None:
            more["restart_signed"] = signature.restart.signed().decode()
        made.append(
            {
                "rule": "campaign",
                "keys": _keys(STRANGER, OPERATOR),
                "campaign": name,
                "at": at,
                "signature": plain(signature),
                **more,
                "vouching": [key.id for key in vouching],
            }
        )
    return made


def wrong_campaigns() -> list[tuple[str, str, CampaignSignature, list[VerifyKeyPart], str]]:
    """Return campaigns by their names with signatures that do not hold, why, the keys and the time."""
    grr, second, both, memory = (campaign(name) for name in ("grr", "second-epoch", "both", "memory"))
    asked, other = campaign("oblivious"), evaluator_key("another evaluator")["key"]
    trusted = [part(OPERATOR)]
    good = delegation(second)
    short = part(PUBLISHER, BEGIN, "2026-02-01T00:00:00Z")
    altered = good.model_copy(update={"last_epoch": 101})
    other_key = good.model_copy(update={"publisher": part(STRANGER)})
    return [
        ("grr", "unknown_key", signed(grr, STRANGER), trusted, AT),
        ("grr", "unknown_key", signed(grr, PUBLISHER), trusted, AT),
        ("grr", "unknown_key", signed(grr), [], AT),
        ("grr", "wrong_signature", signed(second), trusted, AT),
        ("both", "wrong_signature", signed(grr), trusted, AT),
        ("grr", "key_not_valid", signed(grr), trusted, _LATE),
        ("grr", "key_not_valid", signed(grr), trusted, END),
        ("grr", "key_not_valid", signed(grr), trusted, _EARLY),
        ("second-epoch", "unknown_key", delegated(second, delegation(second, by=STRANGER)), trusted, AT),
        ("second-epoch", "unknown_key", delegated(second, good, key=STRANGER), trusted, AT),
        ("second-epoch", "unknown_key", delegated(second, good, key=OPERATOR), trusted, AT),
        ("second-epoch", "wrong_signature", delegated(second, altered), trusted, AT),
        ("second-epoch", "wrong_signature", delegated(second, other_key, key=STRANGER), trusted, AT),
        ("second-epoch", "wrong_signature", delegated(grr, good), trusted, AT),
        ("both", "other_terms", delegated(both, delegation(memory)), trusted, AT),
        ("second-epoch", "other_terms", delegated(second, delegation(second, terms="0" * 64)), trusted, AT),
        ("second-epoch", "other_terms", delegated(second, delegation(second, campaign="another")), trusted, AT),
        ("second-epoch", "after_last_epoch", delegated(second, delegation(second, last_epoch=1)), trusted, AT),
        ("oblivious", "other_evaluator_key", delegated(asked, delegation(asked)), trusted, AT),
        ("oblivious", "other_evaluator_key", delegated(asked, delegation(asked, evaluator_keys=[other])), trusted, AT),
        ("second-epoch", "key_not_valid", delegated(second, delegation(second, publisher=short)), trusted, AT),
        ("second-epoch", "key_not_valid", delegated(second, good), trusted, _LATE),
        ("second-epoch", "key_not_valid", delegated(second, good), [part(OPERATOR, BEGIN, "2026-05-01T00:00:00Z")], AT),
        *_wrong_restarts(second, both),
    ]


def _before(second: Campaign, serial: int, by: SigningKey = OPERATOR) -> Restart:
    """Return a restart at the epoch before."""
    return restart(second, serial, by, epoch=1, head=second.previous)


def _wrong_restarts(
    second: Campaign, both: Campaign
) -> list[tuple[str, str, CampaignSignature, list[VerifyKeyPart], str]]:
    trusted, good = [part(OPERATOR)], _before(second, 2)
    altered = (
        good.model_copy(update={"serial": 3}),
        good.model_copy(update={"epoch": 3}),
        good.model_copy(update={"head": both.head.hex()}),
        good.model_copy(update={"signature": OPERATOR.sign(good.signed(), "delegation")}),
    )
    by_stranger = signed(second, restart=_before(second, 2, STRANGER))
    newer = delegation(second, serial=3)
    short = [part(OPERATOR), part(STRANGER, BEGIN, "2026-02-01T00:00:00Z")]
    return [
        ("second-epoch", "unknown_key", signed(second, restart=_before(second, 2, PUBLISHER)), trusted, AT),
        ("second-epoch", "unknown_key", delegated(second, newer, restart=_before(second, 2, PUBLISHER)), trusted, AT),
        ("second-epoch", "unknown_key", by_stranger, trusted, AT),
        *(("second-epoch", "wrong_signature", signed(second, restart=one), trusted, AT) for one in altered),
        ("second-epoch", "wrong_signature", delegated(second, newer, restart=altered[0]), trusted, AT),
        ("second-epoch", "other_restart", signed(second, restart=restart(both, 2)), trusted, AT),
        ("second-epoch", "other_restart", delegated(second, newer, restart=restart(both, 2)), trusted, AT),
        ("second-epoch", "ended_delegation", delegated(second, delegation(second), restart=good), trusted, AT),
        ("second-epoch", "key_not_valid", by_stranger, short, AT),
    ]


def _campaigns_refused() -> list[dict[str, Any]]:
    made = []
    for name, reason, signature, keys, at in wrong_campaigns():
        require_refused(SignatureError, verify_campaign, keys, campaign(name), signature, moment(at))
        given = {"rule": "campaign", "keys": [plain(key) for key in keys], "campaign": name, "at": at}
        made.append({**given, "signature": plain(signature), "reason": reason})
    return made


def _statements_malformed() -> list[dict[str, Any]]:
    grr = campaign("grr")
    made = []
    for name, good in (("delegation", plain(delegation(grr))), ("restart", plain(restart(grr, 2)))):
        less = {key: value for key, value in good.items() if key != "serial"}
        wrong = [less, {**good, "format": 2}, {**good, "serial": 0}, {**good, "serial": 2_147_483_648}]
        wrong += [{**good, "serial": 1.5}, {**good, "at": AT}]
        if name == "restart":
            wrong += [{**good, "epoch": 0}, {**good, "epoch": 2_147_483_648}, {**good, "head": good["head"].upper()}]
        for one in wrong:
            content = {**plain(signed(grr)), name: one}
            require_refused(ValidationError, CampaignSignature.model_validate_json, json.dumps(content))
            given = {"rule": "campaign", "keys": _keys(OPERATOR), "campaign": "grr", "at": AT}
            made.append({**given, "signature": content, "reason": "malformed"})
    return made


def data() -> dict[str, Any]:
    """Return the file's content."""
    return {
        "subject": "signatures",
        "about": "Signatures of bytes for a purpose, and of campaigns of campaigns.json by the keys at a time",
        "accept": [*_bytes_signed(), *_campaigns_signed()],
        "refuse": [*_bytes_refused(), *_campaigns_refused(), *_statements_malformed()],
    }
