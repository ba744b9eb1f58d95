"""Private keys wrapped by a key service: a local FAKE of Google's, and moto's AWS KMS (tests/support/fake_kms.py)."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from hushcount.errors import HushcountError, UsageError
from hushcount.wire.sealing import Sealer
from keys import directories, rotation
from keys.directories import KeyReference, campaign_key
from keys.records import unwrap, wrap
from tests.support.fake_kms import AWS, GCP, OTHER, FakeServices
from tests.support.jobs import done, refused
from tests.support.records import key_file, key_reference

SECRET = bytes(range(100, 132))
ID = "0123456789abcdef"
services = pytest.mark.parametrize("service", [GCP, AWS], ids=["gcp", "aws"])


@services
@pytest.mark.long(but=("gcp",))
def test_what_is_wrapped_unwraps_for_the_same_role_and_key_only(fake: FakeServices, service: str) -> None:
    wrapped = wrap(service, SECRET, "analyzer", ID)
    assert SECRET not in wrapped
    assert unwrap(service, wrapped, "analyzer", ID) == SECRET
    for name, role, id in (
        (service, "aux_server", ID),
        (service, "analyzer", "0123456789abcdee"),
        (service[:-1] + OTHER, "analyzer", ID),
    ):
        with pytest.raises(
            HushcountError, match=r"400 (INVALID_ARGUMENT|InvalidCiphertextException|AccessDeniedException)"
        ):
            unwrap(name, wrapped, role, id)
    with pytest.raises(HushcountError, match="400"):
        unwrap(service, wrapped[:-1] + bytes([wrapped[-1] ^ 1]), "analyzer", ID)


@services
def test_a_directory_of_wrapped_keys_holds_no_secret_and_opens(
    fake: FakeServices, service: str, tmp_path: Path
) -> None:
    made = done("keys", "new", "--out", tmp_path / "k", "--wrap", service, "--json").json
    assert [key["private_key_here"] for key in made["keys"]] == [True, True]
    for role in ("analyzer", "aux_server"):
        record = json.loads(key_file(tmp_path / "k", role).read_text())
        assert set(record) == {"role", "id", "wrapped_by", "wrapped"}
        assert record["wrapped_by"] == service
    public = directories.read_public([tmp_path / "k"])
    asked = len(fake.asked)
    key = campaign_key(tmp_path / "k", "analyzer", public.analyzer).read()
    assert len(fake.asked) == asked + 2, "unwrapped each time it is opened, and kept nowhere"
    assert key.open(Sealer(bytes.fromhex(public.analyzer[0].key)).seal(b"plain")) == b"plain"


def test_the_next_key_is_wrapped_by_the_same_service(fake: FakeServices, tmp_path: Path) -> None:
    start = datetime.now(timezone.utc) - timedelta(days=1)
    directories.create(tmp_path, days=30, roles=("analyzer",), now=start, wrap=GCP)
    rotation.rotate(tmp_path, overlap=timedelta(days=1))
    records = [json.loads(path.read_text()) for path in tmp_path.glob("*.key")]
    assert [record.get("wrapped_by") for record in records] == [GCP, GCP]
    assert not any("secret" in record for record in records)


@services
@pytest.mark.long(but=("gcp",))
def test_a_wrapped_key_in_the_environment_opens(
    fake: FakeServices, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = directories.create(tmp_path, days=1, wrap=service)
    monkeypatch.setenv("WRAPPED", key_file(tmp_path, "analyzer").read_text())
    assert campaign_key("env:WRAPPED", "analyzer", public.analyzer).read().id == public.analyzer[0].id


@services
@pytest.mark.long(but=("gcp",))
def test_a_wrapped_key_in_anothers_place_does_not_open(fake: FakeServices, service: str, tmp_path: Path) -> None:
    """Whoever may write the file, but may not ask the service, cannot make one party's key open as another's."""
    directories.create(tmp_path, days=1, wrap=service)
    mine, other = (json.loads(key_file(tmp_path, role).read_text()) for role in ("analyzer", "aux_server"))
    key_file(tmp_path, "analyzer").write_text(json.dumps({**mine, "wrapped": other["wrapped"]}))
    with pytest.raises(HushcountError, match="400"):
        key_reference(tmp_path, "analyzer").read()


@services
@pytest.mark.long(but=("gcp",))
def test_what_the_service_returns_must_be_the_key_that_the_file_names(
    fake: FakeServices, service: str, tmp_path: Path
) -> None:
    directories.create(tmp_path, days=1, wrap=service)
    reference = key_reference(tmp_path, "analyzer")
    fake.garbage = SECRET
    with pytest.raises(UsageError, match=r"another key.* analyzer key"):
        reference.read()
    fake.garbage = SECRET[:31]
    with pytest.raises(HushcountError, match=r"31 bytes.* 32"):
        reference.read()


@services
def test_nothing_is_written_if_the_service_would_not_unwrap_it_again(
    fake: FakeServices, service: str, tmp_path: Path
) -> None:
    fake.garbage = bytes(32)
    refused("keys", "new", "--out", tmp_path / "k", "--wrap", service, status=1, says=["nothing was written"])
    assert not (tmp_path / "k").exists()


def test_a_reference_to_a_wrapped_key_holds_neither_secret_nor_credentials(fake: FakeServices, tmp_path: Path) -> None:
    public = directories.create(tmp_path, days=1, wrap=GCP)
    reference = campaign_key(tmp_path, "analyzer", public.analyzer)
    assert reference == KeyReference(str(tmp_path), "analyzer", public.analyzer[0].id)
