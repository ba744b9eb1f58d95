"""Signatures of campaigns, batches, manifests and summaries: of these bytes, for this purpose, by this key."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import read_campaign_signature, verify_campaign
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.campaigns.signatures import (
    Purpose,
    Signature,
    SignatureError,
    signed_bytes,
    verify,
)
from hushcount.errors import FormatError, UsageError
from keys.directories import active_key, create, verify_keys
from keys.private import SigningKey
from keys.rotation import retire, rotate
from tests.support.jobs import done, new_campaign, new_keys, refused, write_lines

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
KEY, OTHER = SigningKey(bytes(range(32))), SigningKey(bytes(range(1, 33)))
START = datetime(2026, 1, 1, tzinfo=timezone.utc)
purposes = st.sampled_from(PURPOSES)


def part(key: SigningKey) -> VerifyKeyPart:
    return VerifyKeyPart(id=key.id, key=key.public_key.hex(), not_before=START, not_after=START + timedelta(days=1))


@given(st.binary(max_size=300), purposes)
def test_what_was_signed_verifies(payload: bytes, purpose: Purpose) -> None:
    signature = KEY.sign(payload, purpose)
    assert verify((part(OTHER), part(KEY)), payload, purpose, signature) == part(KEY)
    assert Signature.model_validate_json(signature.model_dump_json()) == signature


@given(st.binary(max_size=100), st.binary(max_size=100), purposes, purposes)
def test_other_bytes_or_another_purpose_do_not(payload: bytes, other: bytes, made: Purpose, asked: Purpose) -> None:
    signature = KEY.sign(payload, made)
    if (payload, made) == (other, asked):
        return
    with pytest.raises(SignatureError, match="is wrong"):
        verify((part(KEY),), other, asked, signature)


@given(st.binary(max_size=100), purposes, st.integers(0, 511))
def test_a_signature_with_one_bit_changed_does_not(payload: bytes, purpose: Purpose, bit: int) -> None:
    raw = bytearray.fromhex(KEY.sign(payload, purpose).signature)
    raw[bit // 8] ^= 1 << bit % 8
    with pytest.raises(SignatureError):
        verify((part(KEY),), payload, purpose, Signature(key_id=KEY.id, signature=raw.hex()))


@given(st.binary(max_size=60), st.binary(max_size=60), purposes, purposes)
def test_what_is_signed_names_its_purpose_without_doubt(
    one: bytes, two: bytes, first: Purpose, second: Purpose
) -> None:
    assert (signed_bytes(one, first) == signed_bytes(two, second)) == ((one, first) == (two, second))


def test_only_trusted_keys_count() -> None:
    signature = KEY.sign(b"manifest", "manifest")
    with pytest.raises(SignatureError, match=f"{KEY.id}.*{OTHER.id}"):
        verify((part(OTHER),), b"manifest", "manifest", signature)
    with pytest.raises(SignatureError, match="none"):
        verify((), b"manifest", "manifest", signature)
    forged = Signature(key_id=KEY.id, signature=OTHER.sign(b"manifest", "manifest").signature)
    with pytest.raises(SignatureError, match="is wrong"):
        verify((part(KEY),), b"manifest", "manifest", forged)


def test_a_purpose_that_is_none_is_refused() -> None:
    for purpose in ("", "manifest\0", "Campaign", "else"):
        with pytest.raises(ValueError, match="purpose is"):
            KEY.sign(b"", purpose)  # type: ignore[arg-type]


def test_a_reference_signs_and_the_directory_verifies(tmp_path: Path) -> None:
    create(tmp_path, days=30, roles=("shuffler",))
    reference = active_key(tmp_path, "shuffler")
    signature = reference.sign(b"manifest", "manifest")
    for place in (tmp_path, tmp_path / "public.json"):
        assert verify(verify_keys(place, "shuffler"), b"manifest", "manifest", signature).id == reference.id
    with pytest.raises(UsageError, match="key of the operator"):
        verify_keys(tmp_path, "operator")


def test_keys_of_every_state_verify_but_a_retired_one(tmp_path: Path) -> None:
    now = datetime.now(timezone.utc)
    create(tmp_path, days=30, roles=("operator",), now=now - timedelta(days=2))
    old = active_key(tmp_path, "operator").sign(b"x", "campaign")
    rotate(tmp_path, overlap=timedelta(days=1), now=now - timedelta(days=1, seconds=1))
    new = active_key(tmp_path, "operator").sign(b"x", "campaign")
    assert old.key_id != new.key_id
    for signature in (old, new):
        verify(verify_keys(tmp_path, "operator"), b"x", "campaign", signature)
    retire(tmp_path, old.key_id)
    verify(verify_keys(tmp_path, "operator"), b"x", "campaign", new)
    with pytest.raises(SignatureError, match="trusted"):
        verify(verify_keys(tmp_path, "operator"), b"x", "campaign", old)


# Campaign files.


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    words = write_lines(tmp_path / "words.txt", ["alpha", "beta"])
    return new_campaign(tmp_path / "words.json", new_keys(tmp_path / "keys"), dictionary=words, discovery=1.0)


def test_one_signature_serves_the_whole_and_the_redacted_file(campaign: Path, tmp_path: Path) -> None:
    done("keys", "new", "--role", "operator", "--out", tmp_path / "operator")
    made = done("campaign", "sign", "--campaign", campaign, "--keys", tmp_path / "operator", "--json").json
    assert made["fingerprint"] == Campaign.read(campaign).fingerprint.hex()
    signature = tmp_path / "words.json.sig"
    trusted = ("--keys", tmp_path / "operator" / "public.json")
    assert done("campaign", "verify", "--campaign", campaign, *trusted, "--json").json == made
    done("campaign", "redact", "--campaign", campaign, "--out", tmp_path / "redacted.json")
    done("campaign", "verify", "--campaign", tmp_path / "redacted.json", "--signature", signature, *trusted)
    keys = verify_keys(tmp_path / "operator", "operator")
    assert verify_campaign(keys, Campaign.read(campaign), read_campaign_signature(signature))[0].id == made["key"]
    refused("campaign", "sign", "--campaign", campaign, "--keys", tmp_path / "operator", says=["exists"])


def test_a_campaign_that_was_altered_does_not_verify(campaign: Path, tmp_path: Path) -> None:
    done("keys", "new", "--role", "operator", "--out", tmp_path / "operator")
    done("campaign", "sign", "--campaign", campaign, "--keys", tmp_path / "operator")
    data = json.loads(campaign.read_text())
    data["mechanism"]["epsilon"] = 8.0
    campaign.write_text(json.dumps(data))
    verify_it = ("campaign", "verify", "--campaign", campaign, "--keys", tmp_path / "operator")
    refused(*verify_it, status=1, says=["signature of the campaign", "is wrong"])
    done("keys", "new", "--role", "operator", "--out", tmp_path / "another")
    refused(*verify_it[:-1], tmp_path / "another", status=1, says=["trusted"])
    refused(*verify_it[:-1], tmp_path / "keys", says=["key of the operator"])


def test_a_signature_file_that_is_none_is_one_sentence(
    subtests: pytest.Subtests, campaign: Path, tmp_path: Path
) -> None:
    done("keys", "new", "--role", "operator", "--out", tmp_path / "operator")
    path = tmp_path / "words.json.sig"
    verify_it = ("campaign", "verify", "--campaign", campaign, "--keys", tmp_path / "operator")
    refused(*verify_it, says=[f"signature {path}", "No such file"])
    for content in ("", "{}", "[]", '{"key_id": "0", "signature": "0"}', "\xff", "[" * 100_000):
        with subtests.test(content=content[:40]):
            path.write_bytes(content.encode("latin-1"))
            refused(*verify_it, says=[f"signature {path} "])
            with pytest.raises(FormatError):
                read_campaign_signature(path)


def test_an_opening_partys_key_signs_no_campaign(campaign: Path, tmp_path: Path) -> None:
    says = ["no active key of the operator"]
    refused("campaign", "sign", "--campaign", campaign, "--keys", tmp_path / "keys", says=says)
    assert not (tmp_path / "words.json.sig").exists()
