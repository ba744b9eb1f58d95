"""Key services that are busy, broken, hostile or not there: a local FAKE of Google's, and moto's AWS KMS."""

from __future__ import annotations

import base64
import logging
import socket
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from hushcount.errors import HushcountError, UsageError
from keys import cloud
from keys.records import unwrap, wrap
from tests.support.fake_kms import (
    ACCESS_KEY,
    AWS,
    CLOUDKMS,
    GCP,
    REFRESH_TOKEN,
    SECRET_KEY,
    TOKEN,
    FakeServices,
)

SECRET = bytes(range(100, 132))
ID = "0123456789abcdef"
VARIABLES = {GCP: CLOUDKMS, AWS: "AWS_ENDPOINT_URL_KMS"}
HIDDEN = (base64.b64encode(SECRET).decode(), SECRET.hex(), TOKEN, REFRESH_TOKEN, SECRET_KEY, ACCESS_KEY)
services = pytest.mark.parametrize("service", [GCP, AWS], ids=["gcp", "aws"])


@services
@pytest.mark.long(but=("gcp",))
def test_a_busy_service_is_asked_again_and_a_refusal_is_not(fake: FakeServices, service: str) -> None:
    wrapped = wrap(service, SECRET, "analyzer", ID)
    fake.asked.clear()
    fake.statuses = [503, 500]
    assert unwrap(service, wrapped, "analyzer", ID) == SECRET
    assert len(fake.asked) == 3
    for statuses, asked in (([503, 503, 503], 3), ([403], 1), ([404], 1)):
        fake.asked.clear()
        fake.statuses = list(statuses)
        with pytest.raises(HushcountError, match=f"answered {statuses[-1]}"):
            unwrap(service, wrapped, "analyzer", ID)
        assert len(fake.asked) == asked


def test_no_redirect_is_followed(subtests: pytest.Subtests, fake: FakeServices) -> None:
    for service in (GCP, AWS):
        with subtests.test(service=service):
            fake.asked.clear()
            fake.statuses = [307]
            with pytest.raises(HushcountError, match=r"307|TooManyRedirects"):
                wrap(service, SECRET, "analyzer", ID)
            assert len(fake.asked) == 1


def test_an_answer_that_is_none_is_one_sentence(subtests: pytest.Subtests, fake: FakeServices) -> None:
    for service, answer in product(
        (GCP, AWS), ([], "x", None, {}, {"plaintext": 5, "Plaintext": 5}, {"plaintext": "é", "Plaintext": "*"})
    ):
        with subtests.test(service=service, answer=answer):
            fake.answers = [answer]
            with pytest.raises(HushcountError, match=r"no valid answer|[pP]laintext"):
                unwrap(service, b"wrapped", "analyzer", ID)


def test_what_was_damaged_or_encrypted_by_another_key_is_refused(subtests: pytest.Subtests, fake: FakeServices) -> None:
    for change, says in (
        ({"ciphertextCrc32c": "5"}, "ciphertext .*CRC32C"),
        ({"ciphertextCrc32c": None}, "ciphertext .*CRC32C"),
        ({"ciphertext": ""}, "without ciphertext"),
        ({"verifiedPlaintextCrc32c": False}, "confirm the CRC32C"),
        ({"verifiedAdditionalAuthenticatedDataCrc32c": False}, "confirm the CRC32C"),
        ({"name": f"{GCP[10:]}2/cryptoKeyVersions/1"}, "another key than projects/p-1/"),
    ):
        with subtests.test(change=change):
            fake.changes = change
            with pytest.raises(HushcountError, match=says):
                wrap(GCP, SECRET, "analyzer", ID)


def test_a_secret_that_was_damaged_on_the_way_back_is_refused(fake: FakeServices) -> None:
    wrapped = wrap(GCP, SECRET, "analyzer", ID)
    fake.changes = {"plaintext": base64.b64encode(bytes([SECRET[0] ^ 1]) + SECRET[1:]).decode()}
    with pytest.raises(HushcountError, match=r"plaintext .*CRC32C"):
        unwrap(GCP, wrapped, "analyzer", ID)


def test_no_message_repeats_what_was_asked_or_who_asked(subtests: pytest.Subtests, fake: FakeServices) -> None:
    """The fake puts the request into its error, as a service may."""
    for service in (GCP, AWS):
        with subtests.test(service=service):
            fake.statuses = [403]
            with pytest.raises(HushcountError) as caught:
                wrap(service, SECRET, "analyzer", ID)
            assert base64.b64encode(SECRET) in fake.bodies[-1]
            said = str(caught.value) + repr(caught.value.__dict__)
            assert "PERMISSION_DENIED" in said
            for hidden in HIDDEN:
                assert hidden not in said
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None, "the library's error, with request and answer"


@services
def test_libraries_log_no_secret_at_any_level(
    fake: FakeServices, service: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Both libraries log requests and answers at DEBUG."""
    wrap(service, SECRET, "analyzer", ID)
    loggers = [logging.getLogger(name) for name in ("google", "google.auth", "google.cloud.kms_v1", "botocore")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.addHandler(caplog.handler)
            logger.setLevel(logging.DEBUG)
        with caplog.at_level(logging.DEBUG):
            unwrap(service, wrap(service, SECRET, "analyzer", ID), "analyzer", ID)
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(caplog.handler)
            logger.setLevel(level)
    logged = " ".join(str(vars(record)) for record in caplog.records)
    for hidden in (*HIDDEN, repr(SECRET)):
        assert hidden not in logged


def test_wrong_credentials_are_refused_by_the_service(fake: FakeServices, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the fake's taking the right ones says something."""
    monkeypatch.setattr("tests.support.fake_kms.TOKEN", "another")
    wrap(GCP, SECRET, "analyzer", ID)
    monkeypatch.setattr("tests.support.fake_kms.REFRESH_TOKEN", "another")
    with pytest.raises(HushcountError, match=r"Google Cloud KMS: .*gcloud auth") as caught:
        wrap(GCP, SECRET, "analyzer", ID)
    assert REFRESH_TOKEN not in str(caught.value)


def test_credentials_that_are_missing_or_none_are_named_and_not_repeated(
    fake: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "hidden\r\nX-Evil: 1")
    with pytest.raises(HushcountError, match="no valid answer") as caught:
        wrap(AWS, SECRET, "analyzer", ID)
    assert "hidden" not in str(caught.value)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(UsageError, match=r"AWS KMS.*AWS_SECRET_ACCESS_KEY"):
        wrap(AWS, SECRET, "analyzer", ID)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(UsageError, match="credentials for AWS KMS"):
        wrap(AWS, SECRET, "analyzer", ID)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/none/hidden.json")
    with pytest.raises(HushcountError, match="credentials for Google Cloud KMS") as caught:
        wrap(GCP, SECRET, "analyzer", ID)
    assert "hidden" not in str(caught.value)
    assert not fake.asked


def test_a_service_that_is_none_is_refused_before_anything_is_asked(
    subtests: pytest.Subtests, fake: FakeServices
) -> None:
    for service in (
        "vault://x",
        "gcp-kms://",
        "gcp-kms://projects/p/locations/l/keyRings/r",
        "aws-kms://",
        "env:X",
        "",
        "gcp-kms://projects/p/locations/l/keyRings/r/cryptoKeys/k/../../x",
        "gcp-kms://projects/a b/locations/l/keyRings/r/cryptoKeys/k",
        "aws-kms://arn:aws:kms:eu@evil.example:123456789012:key/1",
        "aws-kms://arn:aws:s3:eu-1:123456789012:key/1",
    ):
        with subtests.test(service=service):
            with pytest.raises(UsageError, match=r"key service is|key of Google Cloud KMS is|key of AWS KMS is"):
                wrap(service, SECRET, "analyzer", ID)
            assert not fake.asked


def test_secrets_go_over_https_or_stay_on_this_machine(
    subtests: pytest.Subtests, fake: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    for url in (
        "http://kms.example",
        "ftp://127.0.0.1",
        "kms.example",
        "https://me:hidden@kms.example",
        "https://[",
        "https://",
    ):
        with subtests.test(url=url):
            for service, variable in VARIABLES.items():
                monkeypatch.setenv(variable, url)
                with pytest.raises(UsageError, match=f"{variable} is .*https") as caught:
                    wrap(service, SECRET, "analyzer", ID)
                assert "hidden" not in str(caught.value)


def test_an_unsafe_address_in_the_aws_configuration_is_refused_too(
    fake: FakeServices, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_KMS")
    (tmp_path / "config").write_text("[default]\nendpoint_url = http://kms.example\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with pytest.raises(UsageError, match=r"AWS KMS is 'http://kms\.example'.*https"):
        wrap(AWS, SECRET, "analyzer", ID)


def test_a_service_that_is_not_there_is_one_sentence(
    subtests: pytest.Subtests, fake: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    for service in (GCP, AWS):
        # A port that is held, and at which nobody listens.
        with subtests.test(service=service), socket.socket() as held:
            held.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{held.getsockname()[1]}"
            monkeypatch.setenv(VARIABLES[service], f"http://{address}")
            with pytest.raises(HushcountError, match=rf"KMS at {address} .*Connection refused"):
                wrap(service, SECRET, "analyzer", ID)


def test_a_service_that_never_answers_is_given_up(
    subtests: pytest.Subtests, fake: FakeServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    for service in (GCP, AWS):
        with subtests.test(service=service):
            monkeypatch.setattr(cloud, "SECONDS", 0.05)
            with socket.create_server(("127.0.0.1", 0)) as silent:
                monkeypatch.setenv(VARIABLES[service], f"http://127.0.0.1:{silent.getsockname()[1]}")
                with pytest.raises(HushcountError, match=r"Read ?[tT]imeout"):
                    wrap(service, SECRET, "analyzer", ID)
                silent.settimeout(0)
                for _ in range(cloud.ATTEMPTS):
                    silent.accept()[0].close()
                with pytest.raises(BlockingIOError):
                    silent.accept()


def test_a_library_that_is_missing_is_one_sentence(subtests: pytest.Subtests) -> None:
    for service, module, extra in (
        (GCP, "google.cloud.kms_v1", "gcp"),
        (AWS, "boto3", "aws"),
        (AWS, "botocore.config", "aws"),
    ):
        with subtests.test(module=module), pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(UsageError, match=rf"pip install 'hushcount-server\[{extra}\]'"):
                wrap(service, SECRET, "analyzer", ID)


def test_no_library_of_a_service_is_imported_before_it_is_asked(tmp_path: Path) -> None:
    code = """
import sys
from pipelines.cli import app
from keys import directories
directories.create(__import__("pathlib").Path(sys.argv[1]), days=1)
services = {"boto3", "botocore", "google_crc32c", "google.cloud.kms_v1", "google.cloud.secretmanager_v1", "requests"}
assert not services & set(sys.modules), services & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "keys")], check=True)  # noqa: S603  # our own code
