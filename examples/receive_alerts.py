"""A receiver of Hushcount's alerts: it checks each signature and prints each alert once. Standard library only.

    export WEBHOOK_SECRET="whsec_$(openssl rand -base64 32)"
    python examples/receive_alerts.py --port 8090 --seen seen.txt

Hushcount signs by the Standard Webhooks specification, so that the specification's libraries in other languages can
check signatures too. A real receiver runs behind a proxy with TLS, and does more than print. This example prints JSON
in ASCII, because strangers choose the items, and JSON in ASCII has no control character that a terminal would obey.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import json
import os
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

MOST_BYTES = 1 << 20
TOLERANCE = 300
"""Seconds by which the sender's and the receiver's clocks may differ. An older message is refused, because somebody may
have recorded it and sent it again."""


def is_genuine(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Return whether a holder of the secret signed the message in the last TOLERANCE seconds."""
    id, seconds = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (seconds.isascii() and seconds.isdigit()) or abs(now - int(seconds[:12])) > TOLERANCE:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    proof = hmac.digest(key, b".".join((id.encode(), seconds.encode(), body)), hashlib.sha256)
    expected = b"v1," + base64.b64encode(proof)
    # While a secret is being replaced, the header has several signatures.
    given = headers.get("webhook-signature", "").encode().split(b" ")
    return any(hmac.compare_digest(one, expected) for one in given)


class Receiver(BaseHTTPRequestHandler):
    """Answers 204 when an alert is printed and remembered; after any other answer Hushcount tries again later."""

    secret = ""
    seen = Path()
    timeout = 10

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not (length.isascii() and length.isdigit()) or int(length[:12]) > MOST_BYTES:
            self.answer(413)
            return
        body = self.rfile.read(int(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if not is_genuine(self.secret, headers, body, time.time()):
            self.answer(401)
            return
        id = self.headers["webhook-id"]
        known = self.seen.read_text().splitlines() if self.seen.exists() else []
        if id not in known:
            print(json.dumps(json.loads(body)["data"]), flush=True)
            with self.seen.open("a") as file:
                file.write(f"{id}\n")
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log no requests."""


def main() -> None:
    """Serve until it is stopped."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--seen", type=Path, default=Path("seen.txt"), help="ids of alerts that were printed")
    asked = parser.parse_args()
    Receiver.secret, Receiver.seen = os.environ["WEBHOOK_SECRET"], asked.seen
    server = HTTPServer(("127.0.0.1", asked.port), Receiver)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
