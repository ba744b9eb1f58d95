"""Key services on this machine: FAKES of Google's Cloud KMS, Secret Manager and token service, and moto's AWS KMS.

Google's are answered here as their REST reference documents them, CRC32C included. AWS requests are relayed to a moto
server. Both ways can be told to fail. That the real services take our requests is not tested here.
"""

from __future__ import annotations

import base64
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import repeat
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import boto3
import google_crc32c
import pytest
from moto.server import ThreadedMotoServer
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from nacl.utils import random

GCP = "gcp-kms://projects/p-1/locations/europe-west4/keyRings/ring/cryptoKeys/hush"
AWS = "aws-kms://arn:aws:kms:eu-central-1:123456789012:alias/hush"
OTHER = "x"
"""Ends the names of another key of each service in the place of the last letter."""
TOKEN = "ya29.fake-token"  # noqa: S105  # known to the fake alone
REFRESH_TOKEN = "1//fake-refresh-token"  # noqa: S105
ACCESS_KEY = "AKIDEXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # noqa: S105  # of Amazon's documentation
CLOUDKMS = "CLOUDSDK_API_ENDPOINT_OVERRIDES_CLOUDKMS"
SECRETMANAGER = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"


@dataclass
class FakeServices:
    """What was asked, and what to answer; tokens are neither.

    Attributes:
        url: where they listen.
        asked: path or target of every request, in order.
        bodies: of every request.
        statuses: what to answer the next requests with in the place of an answer.
        answers: what to answer the next requests with, status 200.
        changes: fields to replace in every answer of status 200.
        garbage: what to unwrap to in the place of what was wrapped.
        secrets: what the secret manager holds, by projects/P/secrets/S/versions/V.
    """

    url: str
    aws: str
    asked: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    changes: dict[str, Any] = field(default_factory=dict)
    garbage: bytes | None = None
    secrets: dict[str, bytes] = field(default_factory=dict)
    box: SecretBox = field(default_factory=lambda: SecretBox(random(32)))

    def wrap(self, key: str, plain: bytes, context: str) -> bytes:
        return bytes(self.box.encrypt(json.dumps([key, context, plain.hex()]).encode()))

    def unwrap(self, key: str, wrapped: bytes, context: str) -> bytes | None:
        try:
            held = json.loads(self.box.decrypt(wrapped))
        except CryptoError:
            return None
        return bytes.fromhex(held[2]) if held[:2] == [key, context] else None


@contextmanager
def moto_kms() -> Iterator[str]:
    """Run moto with two keys, that of `AWS` and another, and yield its address."""
    server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    try:
        own = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY, "region_name": "eu-central-1"}
        client = boto3.session.Session(**own).client("kms", endpoint_url=url)
        for alias in ("alias/hush", f"alias/hus{OTHER}"):
            client.create_alias(AliasName=alias, TargetKeyId=client.create_key()["KeyMetadata"]["KeyId"])
        yield url
    finally:
        server.stop()


@contextmanager
def fake_services(scratch: Path, aws: str = "") -> Iterator[FakeServices]:
    """Run the fakes on a free port, AWS relayed to moto, with addresses and credentials in the environment."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            status, answer = _reply(fake, urlsplit(self.path).path, self.headers, body)
            if status == 200 and isinstance(answer, dict):
                answer |= {name: value for name, value in fake.changes.items() if name in answer}
            raw = json.dumps(answer).encode()
            self.send_response(status)
            if status in (301, 307):
                self.send_header("Location", fake.url + "/elsewhere")
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    class Server(ThreadingHTTPServer):
        def handle_error(self, *arguments: object) -> None:
            # Who hangs up before the answer is a command of this process, whose output a test reads.
            if not isinstance(sys.exc_info()[1], ConnectionError):
                super().handle_error(*arguments)  # type: ignore[arg-type]

    server = Server(("127.0.0.1", 0), Handler)
    fake = FakeServices(f"http://127.0.0.1:{server.server_port}", aws)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with pytest.MonkeyPatch.context() as patch:
            _configure(patch, fake.url, scratch)
            yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _configure(patch: pytest.MonkeyPatch, url: str, scratch: Path) -> None:
    """Set addresses, credentials as the vendors' tools keep them, and no pauses between attempts."""
    account = {
        "type": "authorized_user",
        "client_id": "client",
        "client_secret": "of the client",
        "refresh_token": REFRESH_TOKEN,
        "quota_project_id": "p-1",
    }
    (scratch / "google.json").write_text(json.dumps(account))
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_ENDPOINT_URL", "GOOGLE_CLOUD_PROJECT"):
        patch.delenv(name, raising=False)
    for name, value in {
        CLOUDKMS: url,
        SECRETMANAGER: url,
        "AWS_ENDPOINT_URL_KMS": url,
        "GOOGLE_APPLICATION_CREDENTIALS": str(scratch / "google.json"),
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_CONFIG_FILE": str(scratch / "none"),
        "AWS_SHARED_CREDENTIALS_FILE": str(scratch / "none"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1",
    }.items():
        patch.setenv(name, value)
    patch.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{url}/token")
    patch.setattr("google.api_core.retry.retry_unary.exponential_sleep_generator", lambda *limits, **more: repeat(0.0))
    patch.setattr("botocore.retries.standard.ExponentialBackoff.delay_amount", lambda self, context: 0)


def _reply(fake: FakeServices, path: str, headers: Message, body: bytes) -> tuple[int, Any]:
    target = headers.get("X-Amz-Target")
    if path == "/token":
        good = REFRESH_TOKEN.encode() in body.replace(b"%2F", b"/")
        return (200, {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"}) if good else (400, {})
    fake.asked.append(target or path)
    fake.bodies.append(body)
    if fake.statuses:
        status = fake.statuses.pop(0)
        # As a service may, it repeats what it was asked.
        error = {"code": status, "status": "PERMISSION_DENIED", "message": body.decode()}
        return status, {"__type": "PERMISSION_DENIED", "message": body.decode()} if target else {"error": error}
    if fake.answers:
        return 200, fake.answers.pop(0)
    if target:
        return _aws(fake, headers, body)
    if headers.get("Authorization") != f"Bearer {TOKEN}":
        return 401, {"error": {"status": "UNAUTHENTICATED"}}
    return _secret(fake, path) if path.endswith(":access") else _gcp(fake, path, json.loads(body))


def _gcp(fake: FakeServices, path: str, body: dict[str, str]) -> tuple[int, Any]:
    match = re.fullmatch(
        r"/v1/(projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/:]+):(encrypt|decrypt)", path
    )
    if match is None:
        return 404, {"error": {"status": "NOT_FOUND"}}
    context = _checked(body, "additionalAuthenticatedData").decode()
    if match[2] == "encrypt":
        wrapped = fake.wrap(match[1], _checked(body, "plaintext"), context)
        verified = {"verifiedPlaintextCrc32c": True, "verifiedAdditionalAuthenticatedDataCrc32c": True}
        return 200, {"name": f"{match[1]}/cryptoKeyVersions/1", **_with_crc("ciphertext", wrapped), **verified}
    plain = fake.unwrap(match[1], _checked(body, "ciphertext"), context)
    if plain is None:
        return 400, {"error": {"status": "INVALID_ARGUMENT"}}
    return 200, _with_crc("plaintext", plain if fake.garbage is None else fake.garbage)


def _secret(fake: FakeServices, path: str) -> tuple[int, Any]:
    name = path.removeprefix("/v1/").removesuffix(":access")
    if name not in fake.secrets:
        return 404, {"error": {"status": "NOT_FOUND"}}
    return 200, {"name": name, "payload": _with_crc("data", fake.secrets[name]) | fake.changes}


def _checked(body: dict[str, str], name: str) -> bytes:
    value = base64.b64decode(body[name], validate=True)
    assert body[f"{name}Crc32c"] == str(google_crc32c.value(value))
    return value


def _with_crc(name: str, value: bytes) -> dict[str, str]:
    return {name: base64.b64encode(value).decode(), f"{name}Crc32c": str(google_crc32c.value(value))}


def _aws(fake: FakeServices, headers: Message, body: bytes) -> tuple[int, Any]:
    moto = HTTPConnection(urlsplit(fake.aws).netloc, timeout=60)
    try:
        moto.request("POST", "/", body, dict(headers.items()))
        answer = moto.getresponse()
        data = json.loads(answer.read())
    finally:
        moto.close()
    if fake.garbage is not None and "Plaintext" in data:
        data["Plaintext"] = base64.b64encode(fake.garbage).decode()
    return answer.status, data
