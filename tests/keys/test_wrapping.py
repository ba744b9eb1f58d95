"""Private keys wrapped by a key service, against a local FAKE of Google's and Amazon's (tests/support/fake_kms.py)."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hushcount.errors import HushcountError, UsageError
from hushcount.wire.sealing import Sealer
from keys import rest, rotation, store
from keys.aws_kms import Credentials, sign_request
from keys.store import KeyReference, campaign_key
from keys.wrapping import unwrap, wrap
from tests.support.fake_kms import ACCESS_KEY, AWS, GCP, SECRET_KEY, TOKEN, FakeServices, fake_services
from tests.support.jobs import done, refused
from tests.support.records import key_file, key_reference

SECRET = bytes(range(100, 132))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServices]:
    """The services, and credentials for them in the environment."""
    with fake_services() as services:
        monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS", services.url)
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", services.url)
        monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", TOKEN)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
        monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
        monkeypatch.setattr(rest, "_PAUSES", (0.0, 0.0))
        yield services


services = pytest.mark.parametrize("service", [GCP, AWS], ids=["gcp", "aws"])


@services
def test_what_is_wrapped_unwraps_for_the_same_role_and_key_only(fake: FakeServices, service: str) -> None:
    wrapped = wrap(service, SECRET, "analyzer", "0123456789abcdef")
    assert SECRET not in wrapped
    assert unwrap(service, wrapped, "analyzer", "0123456789abcdef") == SECRET
    other = service[:-1] + ("x" if service == GCP else "c")
    for name, role, id in (
        (service, "aux_server", "0123456789abcdef"),
        (service, "analyzer", "0123456789abcdee"),
        (other, "analyzer", "0123456789abcdef"),
    ):
        with pytest.raises(HushcountError, match=r"answered 400 (INVALID_ARGUMENT|InvalidCiphertextException)"):
            unwrap(name, wrapped, role, id)
    with pytest.raises(HushcountError, match="answered 400"):
        unwrap(service, wrapped[:-1] + bytes([wrapped[-1] ^ 1]), "analyzer", "0123456789abcdef")


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
    public = store.read_public([tmp_path / "k"])
    asked = len(fake.asked)
    key = campaign_key(tmp_path / "k", "analyzer", public.analyzer).read()
    assert len(fake.asked) == asked + 2, "unwrapped each time it is opened, and kept nowhere"
    assert key.open(Sealer(bytes.fromhex(public.analyzer[0].key)).seal(b"plain")) == b"plain"


def test_the_next_key_is_wrapped_by_the_same_service(fake: FakeServices, tmp_path: Path) -> None:
    start = datetime.now(timezone.utc) - timedelta(days=1)
    store.create(tmp_path, days=30, roles=("analyzer",), now=start, wrap=GCP)
    rotation.rotate(tmp_path, overlap=timedelta(days=1))
    records = [json.loads(path.read_text()) for path in tmp_path.glob("*.key")]
    assert [record.get("wrapped_by") for record in records] == [GCP, GCP]
    assert not any("secret" in record for record in records)


@services
def test_a_wrapped_key_in_the_environment_opens(
    fake: FakeServices, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    public = store.create(tmp_path, days=1, wrap=service)
    monkeypatch.setenv("WRAPPED", key_file(tmp_path, "analyzer").read_text())
    assert campaign_key("env:WRAPPED", "analyzer", public.analyzer).read().id == public.analyzer[0].id


@services
def test_a_wrapped_key_in_anothers_place_does_not_open(fake: FakeServices, service: str, tmp_path: Path) -> None:
    """Whoever may write the file, but may not ask the service, cannot make one party's key open as another's."""
    store.create(tmp_path, days=1, wrap=service)
    mine, other = (json.loads(key_file(tmp_path, role).read_text()) for role in ("analyzer", "aux_server"))
    key_file(tmp_path, "analyzer").write_text(json.dumps({**mine, "wrapped": other["wrapped"]}))
    with pytest.raises(HushcountError, match="answered 400"):
        key_reference(tmp_path, "analyzer").read()


@services
def test_what_the_service_returns_must_be_the_key_that_the_file_names(
    fake: FakeServices, service: str, tmp_path: Path
) -> None:
    store.create(tmp_path, days=1, wrap=service)
    reference = key_reference(tmp_path, "analyzer")
    fake.garbage = SECRET
    with pytest.raises(UsageError, match="is not the key of the role"):
        reference.read()
    fake.garbage = SECRET[:31]
    with pytest.raises(HushcountError, match="unwrapped 31 bytes, must be 32"):
        reference.read()


@services
def test_nothing_is_written_if_the_service_would_not_unwrap_it_again(
    fake: FakeServices, service: str, tmp_path: Path
) -> None:
    fake.garbage = bytes(32)
    refused("keys", "new", "--out", tmp_path / "k", "--wrap", service, status=1, says=["nothing was written"])
    assert not (tmp_path / "k").exists()


@services
def test_a_busy_service_is_asked_again_and_a_refusal_is_not(fake: FakeServices, service: str) -> None:
    wrapped = wrap(service, SECRET, "analyzer", "0123456789abcdef")
    fake.asked.clear()
    fake.statuses = [503, 429]
    assert unwrap(service, wrapped, "analyzer", "0123456789abcdef") == SECRET
    assert len(fake.asked) == 3
    for statuses, asked in (([503, 503, 503], 3), ([403], 1), ([307], 1), ([404], 1)):
        fake.asked.clear()
        fake.statuses = list(statuses)
        with pytest.raises(HushcountError, match=f"answered {statuses[-1]}"):
            unwrap(service, wrapped, "analyzer", "0123456789abcdef")
        assert len(fake.asked) == asked, "no redirect is followed"


@services
@pytest.mark.parametrize(
    "answer", [[], "x", None, {}, {"plaintext": 5, "Plaintext": 5}, {"plaintext": "é", "Plaintext": "*"}]
)
def test_an_answer_that_is_none_is_one_sentence(fake: FakeServices, service: str, answer: object) -> None:
    fake.answers = [answer]
    with pytest.raises(HushcountError, match=r"answered (200|without [pP]laintext)"):
        unwrap(service, b"wrapped", "analyzer", "0123456789abcdef")


@services
def test_no_message_repeats_what_was_asked_or_who_asked(fake: FakeServices, service: str) -> None:
    """The fake puts the request into its error, as a service may."""
    fake.statuses = [403]
    with pytest.raises(HushcountError) as caught:
        wrap(service, SECRET, "analyzer", "0123456789abcdef")
    assert base64.b64encode(SECRET) in fake.bodies[-1]
    said = str(caught.value) + repr(caught.value.__dict__)
    assert "PERMISSION_DENIED" in said
    for hidden in (base64.b64encode(SECRET).decode(), SECRET.hex(), TOKEN, SECRET_KEY, ACCESS_KEY):
        assert hidden not in said


def test_a_token_comes_from_the_metadata_server_where_none_is_given(
    fake: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GOOGLE_OAUTH_ACCESS_TOKEN")
    monkeypatch.setenv("GCE_METADATA_HOST", fake.url.removeprefix("http://"))
    assert unwrap(GCP, wrap(GCP, SECRET, "analyzer", "0" * 16), "analyzer", "0" * 16) == SECRET
    assert fake.asked[0] == "/computeMetadata/v1/instance/service-accounts/default/token"
    fake.statuses = [404]
    with pytest.raises(HushcountError, match=r"no credentials for Google Cloud KMS.*gcloud auth print-access-token"):
        wrap(GCP, SECRET, "analyzer", "0" * 16)


def test_wrong_credentials_are_refused_by_the_services(fake: FakeServices, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the fake's taking the right ones says something."""
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "another")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY + "x")
    for service, status in ((GCP, 401), (AWS, 400)):
        with pytest.raises(HushcountError, match=f"answered {status}"):
            wrap(service, SECRET, "analyzer", "0" * 16)


def test_credentials_that_are_missing_or_none_are_named_and_not_repeated(
    fake: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "hidden\r\nX-Evil: 1")
    with pytest.raises(UsageError, match="printable ASCII") as caught:
        wrap(AWS, SECRET, "analyzer", "0" * 16)
    assert "hidden" not in str(caught.value)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(UsageError, match="AWS_SECRET_ACCESS_KEY not set"):
        wrap(AWS, SECRET, "analyzer", "0" * 16)
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "hidden token")
    with pytest.raises(HushcountError, match="printable ASCII") as caught:
        wrap(GCP, SECRET, "analyzer", "0" * 16)
    assert "hidden" not in str(caught.value)
    assert not fake.asked


@pytest.mark.parametrize(
    "service",
    [
        "vault://x", "gcp-kms://", "gcp-kms://projects/p/locations/l/keyRings/r", "aws-kms://", "env:X", "",
        "gcp-kms://projects/p/locations/l/keyRings/r/cryptoKeys/k/../../x",
        "gcp-kms://projects/a b/locations/l/keyRings/r/cryptoKeys/k",
        "aws-kms://arn:aws:kms:eu@evil.example:123456789012:key/1", "aws-kms://arn:aws:s3:eu-1:123456789012:key/1",
    ],
)  # fmt: skip
def test_a_service_that_is_none_is_refused_before_anything_is_asked(fake: FakeServices, service: str) -> None:
    with pytest.raises(UsageError, match=r"key service is|key of Google Cloud KMS is|key of AWS KMS is"):
        wrap(service, SECRET, "analyzer", "0" * 16)
    assert not fake.asked


@pytest.mark.parametrize(
    "url",
    ["http://kms.example", "ftp://127.0.0.1", "kms.example", "https://me:hidden@kms.example", "https://[", "https://"],
)
def test_secrets_go_over_https_or_stay_on_this_machine(
    fake: FakeServices, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    for variable, service in (("CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS", GCP), ("AWS_ENDPOINT_URL_KMS", AWS)):
        monkeypatch.setenv(variable, url)
        with pytest.raises(UsageError, match=f"{variable} is .*must be https") as caught:
            wrap(service, SECRET, "analyzer", "0" * 16)
        assert "hidden" not in str(caught.value)


def test_a_service_that_is_not_there_is_one_sentence(fake: FakeServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", "http://127.0.0.1:9")
    with pytest.raises(HushcountError, match=r"AWS KMS at 127\.0\.0\.1:9 does not answer: Connection refused"):
        wrap(AWS, SECRET, "analyzer", "0" * 16)


def test_requests_are_signed_as_amazon_documents() -> None:
    """The case post-vanilla of Amazon's test suite of Signature Version 4."""
    signed = sign_request(
        Credentials("AKIDEXAMPLE", SECRET_KEY),
        urlsplit("https://example.amazonaws.com"),
        "/",
        "us-east-1",
        "service",
        {},
        b"",
        datetime(2015, 8, 30, 12, 36, tzinfo=timezone.utc),
    )
    assert signed["Authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        "SignedHeaders=host;x-amz-date, "
        "Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
    )
    assert SECRET_KEY not in repr(Credentials("AKIDEXAMPLE", SECRET_KEY, "token")) + str(signed)
    assert "token" not in repr(Credentials("AKIDEXAMPLE", SECRET_KEY, "token"))


def test_a_reference_to_a_wrapped_key_holds_neither_secret_nor_credentials(fake: FakeServices, tmp_path: Path) -> None:
    public = store.create(tmp_path, days=1, wrap=GCP)
    reference = campaign_key(tmp_path, "analyzer", public.analyzer)
    assert reference == KeyReference(str(tmp_path), "analyzer", public.analyzer[0].id)
