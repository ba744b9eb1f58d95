"""The issuer's keys sign as the official vectors say, and show themselves nowhere."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from hushcount.errors import FormatError, UsageError
from keys import issuing
from keys.issuing import IssuingKey, drawn_keys, private_file, read_private_keys
from pipelines.deployment.issuer import issue
from pipelines.deployment.settings import Deployment
from tests.hushcount.passes.test_tokens import OFFICIAL
from tests.issuer.running import keys_of, make_issuer

HALF = 128


@pytest.mark.parametrize("entry", OFFICIAL)
def test_it_signs_as_the_official_vectors_say(entry: dict[str, Any]) -> None:
    """RFC 9474's own vectors have 4096 bits; those of RFC 9578 are signatures of RFC 9474 with 2048."""
    private = load_pem_private_key(bytes.fromhex(entry["skS"]), None)
    assert isinstance(private, RSAPrivateKey)
    numbers = private.private_numbers()
    key = IssuingKey(numbers.p.to_bytes(HALF, "big") + numbers.q.to_bytes(HALF, "big"))
    request = bytes.fromhex(entry["token_request"])
    assert request[2:3] == key.token_key_id[-1:]
    assert key.sign(request[3:]).hex() == key.sign(request[3:]).hex() == entry["token_response"]


def test_a_wrong_signature_never_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong half: whoever got that signature could compute the primes."""
    gmpy2 = issuing.arithmetic()
    key = IssuingKey(bytes.fromhex(drawn_keys(1, lambda keys, _: keys)[0]))

    class Erring:
        powmod_sec = staticmethod(lambda *numbers: gmpy2.powmod_sec(*numbers) + 1)

        def __getattr__(self, name: str) -> object:
            return getattr(gmpy2, name)

    monkeypatch.setattr(issuing, "arithmetic", Erring)
    with pytest.raises(ArithmeticError):
        key.sign(bytes(255) + b"\7")


def test_an_issuer_without_arithmetic_in_constant_time_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = make_issuer(tmp_path / "site", days=1)
    monkeypatch.setitem(sys.modules, "gmpy2", None)
    with pytest.raises(UsageError, match="gmpy2"):
        issue(Deployment.read(site.config))


@pytest.mark.parametrize("shown", [repr, str, "{}".format, lambda keys: f"{keys!r:>9}", lambda keys: f"{[keys]}"])
def test_private_keys_print_no_digit_of_themselves(tmp_path: Path, shown: Callable[[object], str]) -> None:
    site = make_issuer(tmp_path / "site", days=1)
    private = read_private_keys(private_file(site.base / "passes", "words"))
    text = shown(private) + shown(keys_of(site, -1)[0])
    assert not any(private.days[0][0][place : place + 8] in text for place in range(0, 512, 8))
    for secret in (private, keys_of(site, -1)[0]):
        with pytest.raises(TypeError):
            pickle.dumps(secret)


@pytest.mark.parametrize(
    "damage", [lambda digits: digits[:30], lambda digits: f"{digits}00", lambda digits: digits + '"']
)
def test_a_damaged_file_is_named_without_its_content(tmp_path: Path, damage: Callable[[str], str]) -> None:
    site = make_issuer(tmp_path / "site", days=1)
    path = private_file(site.base / "passes", "words")
    digits = json.loads(path.read_text())["days"][0][0]
    path.write_text(path.read_text().replace(digits, damage(digits)))
    with pytest.raises(FormatError, match="damaged") as caught:
        read_private_keys(path)
    assert digits[:8] not in str(caught.value)
