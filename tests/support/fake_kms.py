"""A FAKE of four services on this machine: Google Cloud KMS, Secret Manager and metadata server, and AWS KMS.

It answers the documented requests (projects.locations.keyRings.cryptoKeys.encrypt and decrypt; TrentService.Encrypt
and Decrypt; projects.secrets.versions.access), checks who asks as they do, and wraps with a key of its own. It shows
that our requests are of the documented form; that the real services take them is not tested here.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from nacl.exceptions import CryptoError
from nacl.secret import SecretBox
from nacl.utils import random

GCP = "gcp-kms://projects/p-1/locations/europe-west4/keyRings/ring/cryptoKeys/hush"
AWS = "aws-kms://arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
TOKEN = "ya29.fake-token"  # noqa: S105  # known to the fake alone
ACCESS_KEY = "AKIDEXAMPLE"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # noqa: S105  # of Amazon's documentation


@dataclass
class FakeServices:
    """What was asked, and what to answer.

    Attributes:
        url: where they listen.
        asked: path or target of every request, in order.
        bodies: of every request.
        statuses: what to answer the next requests with in the place of an answer.
        answers: what to answer the next requests with, status 200.
        garbage: what to unwrap to in the place of what was wrapped.
        secrets: what the secret manager holds, by projects/P/secrets/S/versions/V.
    """

    url: str
    asked: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    answers: list[Any] = field(default_factory=list)
    garbage: bytes | None = None
    secrets: dict[str, bytes] = field(default_factory=dict)
    box: SecretBox = field(default_factory=lambda: SecretBox(random(32)))

    def wrap(self, key: str, plain: bytes, context: Any) -> bytes:
        return bytes(self.box.encrypt(json.dumps([key, context, plain.hex()]).encode()))

    def unwrap(self, key: str, wrapped: bytes, context: Any) -> bytes | None:
        try:
            held = json.loads(self.box.decrypt(wrapped))
        except CryptoError:
            return None
        if self.garbage is not None:
            return self.garbage
        return bytes.fromhex(held[2]) if held[:2] == [key, context] else None


@contextmanager
def fake_services() -> Iterator[FakeServices]:
    """Run the fake on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            fake.asked.append(self.headers.get("X-Amz-Target") or self.path)
            fake.bodies.append(body)
            status, answer = _reply(fake, self.command, self.path, dict(self.headers.items()), body)
            raw = json.dumps(answer).encode()
            self.send_response(status)
            if status in (301, 307):
                self.send_header("Location", fake.url + "/elsewhere")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake = FakeServices(f"http://127.0.0.1:{server.server_port}")
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _reply(fake: FakeServices, verb: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
    if fake.statuses:
        status = fake.statuses.pop(0)
        return status, {"error": {"code": status, "status": "PERMISSION_DENIED", "message": body.decode()}}
    if fake.answers:
        return 200, fake.answers.pop(0)
    if verb == "GET" and path.endswith(":access"):
        return _secret(fake, path, headers)
    if verb == "GET":
        good = path.endswith("/service-accounts/default/token") and headers.get("Metadata-Flavor") == "Google"
        return (200, {"access_token": TOKEN, "expires_in": 3599, "token_type": "Bearer"}) if good else (403, {})
    if "X-Amz-Target" in headers:
        return _aws(fake, headers, body)
    return _gcp(fake, path, headers, json.loads(body))


def _gcp(fake: FakeServices, path: str, headers: dict[str, str], body: dict[str, str]) -> tuple[int, Any]:
    if headers.get("Authorization") != f"Bearer {TOKEN}":
        return 401, {"error": {"status": "UNAUTHENTICATED"}}
    match = re.fullmatch(
        r"/v1/(projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/:]+):(encrypt|decrypt)", path
    )
    if match is None:
        return 404, {"error": {"status": "NOT_FOUND"}}
    context = base64.b64decode(body["additionalAuthenticatedData"]).decode()
    if match[2] == "encrypt":
        wrapped = fake.wrap(match[1], base64.b64decode(body["plaintext"]), context)
        return 200, {"name": f"{match[1]}/cryptoKeyVersions/1", "ciphertext": base64.b64encode(wrapped).decode()}
    plain = fake.unwrap(match[1], base64.b64decode(body["ciphertext"]), context)
    if plain is None:
        return 400, {"error": {"status": "INVALID_ARGUMENT"}}
    return 200, {"plaintext": base64.b64encode(plain).decode()}


def _secret(fake: FakeServices, path: str, headers: dict[str, str]) -> tuple[int, Any]:
    if headers.get("Authorization") != f"Bearer {TOKEN}":
        return 401, {"error": {"status": "UNAUTHENTICATED"}}
    name = path.removeprefix("/v1/").removesuffix(":access")
    if name not in fake.secrets:
        return 404, {"error": {"status": "NOT_FOUND"}}
    return 200, {"name": name, "payload": {"data": base64.b64encode(fake.secrets[name]).decode()}}


def _aws(fake: FakeServices, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
    if not _signed(headers, body):
        return 400, {"__type": "com.amazon.coral.service#IncompleteSignatureException"}
    asked = json.loads(body)
    if headers["X-Amz-Target"] == "TrentService.Encrypt":
        wrapped = fake.wrap(asked["KeyId"], base64.b64decode(asked["Plaintext"]), asked["EncryptionContext"])
        return 200, {"KeyId": asked["KeyId"], "CiphertextBlob": base64.b64encode(wrapped).decode()}
    plain = fake.unwrap(asked["KeyId"], base64.b64decode(asked["CiphertextBlob"]), asked["EncryptionContext"])
    if plain is None:
        return 400, {"__type": "InvalidCiphertextException"}
    return 200, {"KeyId": asked["KeyId"], "Plaintext": base64.b64encode(plain).decode()}


def _signed(headers: dict[str, str], body: bytes) -> bool:
    """Check a Signature Version 4 as its documentation describes, from the headers as they came."""
    match = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([\w-]+)/kms/aws4_request, "
        r"SignedHeaders=([\w;-]+), Signature=([0-9a-f]{64})",
        headers.get("Authorization", ""),
    )
    if match is None or match[1] != ACCESS_KEY:
        return False
    lowered = {name.lower(): value for name, value in headers.items()}
    names = match[4].split(";")
    if not {"host", "x-amz-date", "x-amz-target", "content-type"} <= set(names):
        return False
    lines = "".join(f"{name}:{lowered[name]}\n" for name in names)
    canonical = "\n".join(["POST", "/", "", lines, match[4], hashlib.sha256(body).hexdigest()])
    scope = f"{match[2]}/{match[3]}/kms/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", lowered["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + SECRET_KEY).encode()
    for part in (match[2], match[3], "kms", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest() == match[5]
