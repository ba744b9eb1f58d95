"""References to private keys: a directory or an environment variable, which key they find, and what they refuse."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.errors import RetiredKey, UsageError
from hushcount.wire.sealing import Sealer
from keys.directories import KeyReference, PublicFile, active_key, campaign_key, create, private_keys
from keys.listing import read_listing
from keys.roles import ROLES
from keys.rotation import retire, rotate
from tests.support.records import key_file, key_reference

YESTERDAY = datetime.now(timezone.utc).replace(microsecond=0) - timedelta(days=1)


@pytest.fixture
def public(tmp_path: Path) -> PublicFile:
    """The public keys of a directory `keys` with a key of every role, a day old."""
    return create(tmp_path / "keys", days=30, roles=ROLES, now=YESTERDAY)


def secret_of(path: Path) -> str:
    return str(json.loads(path.read_text())["secret"])


def test_the_key_of_the_campaign_is_found_among_all(tmp_path: Path, public: PublicFile) -> None:
    rotate(tmp_path / "keys", overlap=timedelta(days=7))
    old, new = read_listing(tmp_path / "keys").of("analyzer")
    for key in (old, new):
        found = campaign_key(tmp_path / "keys", "analyzer", (key.part,)).read()  # type: ignore[arg-type]
        assert found.id == key.id
        assert found.open(Sealer(bytes.fromhex(key.key)).seal(b"plain")) == b"plain"


def test_a_retired_key_is_known_as_such_even_if_its_file_comes_back(tmp_path: Path, public: PublicFile) -> None:
    keys = tmp_path / "keys"
    kept = key_file(keys, "analyzer").read_bytes()
    path = key_file(keys, "analyzer")
    retire(keys, public.analyzer[0].id, now=YESTERDAY + timedelta(days=31))
    for _ in range(2):
        with pytest.raises(RetiredKey) as caught:
            campaign_key(keys, "analyzer", public.analyzer)
        assert caught.value.id == public.analyzer[0].id
        assert caught.value.exit_status == 1
        path.write_bytes(kept)
        path.chmod(0o600)


def test_a_party_may_have_its_key_file_without_any_listing(tmp_path: Path, public: PublicFile) -> None:
    (tmp_path / "keys" / "public.json").unlink()
    assert campaign_key(tmp_path / "keys", "analyzer", public.analyzer).read().id == public.analyzer[0].id


def test_a_key_file_that_others_may_use_is_refused(
    subtests: pytest.Subtests, tmp_path: Path, public: PublicFile
) -> None:
    for mode in (0o640, 0o604, 0o660, 0o610):
        with subtests.test(mode=mode):
            key_file(tmp_path / "keys", "analyzer").chmod(mode)
            with pytest.raises(UsageError, match=f"mode {mode:04o}.*0600: chmod 600"):
                campaign_key(tmp_path / "keys", "analyzer", public.analyzer)


def test_a_key_file_that_says_it_is_another_key_is_refused(
    subtests: pytest.Subtests, tmp_path: Path, public: PublicFile
) -> None:
    for change in (
        {"role": "aux_server"},
        {"id": "0" * 16},
        {"role": None},
        {"id": None},
    ):
        with subtests.test(change=change):
            path = key_file(tmp_path / "keys", "analyzer")
            path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
            with pytest.raises(UsageError, match=r"another key.* analyzer key "):
                campaign_key(tmp_path / "keys", "analyzer", public.analyzer)


def test_a_directory_with_other_keys_says_which_it_has(tmp_path: Path, public: PublicFile) -> None:
    other = create(tmp_path / "other", days=1)
    with pytest.raises(UsageError, match="no key file") as caught:
        campaign_key(tmp_path / "keys", "analyzer", other.analyzer)
    assert other.analyzer[0].id in str(caught.value)
    assert public.analyzer[0].id in str(caught.value)
    assert public.aux_server[0].id not in str(caught.value)
    with pytest.raises(UsageError, match=r"No such file"):
        campaign_key(tmp_path / "none", "analyzer", other.analyzer)


@pytest.mark.parametrize("form", ["hexadecimal", "key file", "two key files"])
def test_a_key_may_come_from_an_environment_variable(
    tmp_path: Path, public: PublicFile, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    keys = tmp_path / "keys"
    analyzer, aux = (key_file(keys, role).read_text() for role in ("analyzer", "aux_server"))
    content = {
        "hexadecimal": secret_of(key_file(keys, "analyzer")) + "\n",
        "key file": analyzer,
        "two key files": aux + "\n" + analyzer,
    }
    monkeypatch.setenv("HUSHCOUNT_TEST_KEY", content[form])
    reference = campaign_key("env:HUSHCOUNT_TEST_KEY", "analyzer", public.analyzer)
    assert reference == KeyReference("env:HUSHCOUNT_TEST_KEY", "analyzer", public.analyzer[0].id)
    assert pickle.loads(pickle.dumps(reference)).read().id == public.analyzer[0].id  # noqa: S301  # our own bytes
    held = secret_of(key_file(keys, "analyzer"))
    assert held not in repr(reference) + str(asdict(reference))
    assert bytes.fromhex(held)[:8] not in pickle.dumps(reference)
    with pytest.raises(UsageError, match="HUSHCOUNT_TEST_KEY holds no key"):
        campaign_key("env:HUSHCOUNT_TEST_KEY", "analyzer", create(tmp_path / "other", days=1).analyzer)


def test_a_variable_that_holds_no_key_is_named_and_not_repeated(
    subtests: pytest.Subtests, public: PublicFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    for content in (
        "",
        " \n",
        "z" * 64,
        "ab" * 31,
        "ab" * 33,
        "AB" * 32,
        "{",
        "[]",
        "null",
        "5",
        '{"role": "analyzer"}',
        '{"role": "analyzer", "id": "0", "secret": 5}',
        '{"role": "analyzer", "id": "0", "secret": "' + "cd" * 31 + '"}',
        '{"role": "analyzer", "id": "0", "wrapped_by": "gcp-kms://x", "wrapped": "*"}',
        '{"role": "analyzer", "id": "0", "wrapped_by": "gcp-kms://x", "wrapped": "é"}',
        "[" * 100_000,
        '{"role": "analyzer", "id": "0", "wrapped_by": "vault://x", "wrapped": "YQ=="}',
    ):
        with subtests.test(content=content):
            monkeypatch.setenv("HUSHCOUNT_TEST_KEY", content)
            with pytest.raises(UsageError, match=r"variable HUSHCOUNT_TEST_KEY|key service is") as caught:
                campaign_key("env:HUSHCOUNT_TEST_KEY", "analyzer", public.analyzer)
            for hidden in ("cdcdcdcd", "abababab", "zzzz", "[["):
                assert hidden not in str(caught.value)


def test_a_variable_that_is_not_set_is_named(public: PublicFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HUSHCOUNT_TEST_KEY", raising=False)
    with pytest.raises(UsageError, match="HUSHCOUNT_TEST_KEY is not set"):
        campaign_key("env:HUSHCOUNT_TEST_KEY", "analyzer", public.analyzer)


def test_a_key_of_the_other_role_is_no_key(tmp_path: Path, public: PublicFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUSHCOUNT_TEST_KEY", key_file(tmp_path / "keys", "aux_server").read_text())
    with pytest.raises(UsageError, match="holds no key"):
        campaign_key("env:HUSHCOUNT_TEST_KEY", "analyzer", public.analyzer)


def test_who_signs_opens_nothing_and_who_opens_signs_nothing(tmp_path: Path, public: PublicFile) -> None:
    keys = tmp_path / "keys"
    with pytest.raises(UsageError, match="role operator"):
        key_reference(keys, "operator").read()
    with pytest.raises(UsageError, match="role analyzer"):
        key_reference(keys, "analyzer").read_signing()


def test_the_active_signing_key_is_found_in_both_kinds_of_places(
    tmp_path: Path, public: PublicFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = tmp_path / "keys"
    (listed,) = read_listing(keys).of("shuffler")
    assert active_key(keys, "shuffler").read_signing().id == listed.id
    for content in (key_file(keys, "shuffler").read_text(), secret_of(key_file(keys, "shuffler"))):
        monkeypatch.setenv("HUSHCOUNT_TEST_KEY", content)
        assert active_key("env:HUSHCOUNT_TEST_KEY", "shuffler").read_signing().id == listed.id
    monkeypatch.setenv("HUSHCOUNT_TEST_KEY", key_file(keys, "operator").read_text())
    with pytest.raises(UsageError, match="0 keys of the shuffler"):
        active_key("env:HUSHCOUNT_TEST_KEY", "shuffler")
    with pytest.raises(UsageError, match="active key of the shuffler"):
        active_key(keys, "shuffler", YESTERDAY + timedelta(days=30))


def test_all_private_keys_of_a_directory_can_be_listed_for_a_search(tmp_path: Path, public: PublicFile) -> None:
    rotate(tmp_path / "keys", overlap=timedelta(days=7))
    found = private_keys(tmp_path / "keys")
    assert sorted(key.id for key in found) == sorted(key.id for key in read_listing(tmp_path / "keys").keys)
    assert len(found) == 2 * len(ROLES)
