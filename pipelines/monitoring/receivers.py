"""Receivers of alerts: a webhook or a program.

One attempt to send an alert ends within ten seconds, whatever the receiver does. Only looking up the receiver's host
name may take longer than ten seconds. Requests to a webhook are signed as in Standard Webhooks 1.0, symmetric (v1:
HMAC-SHA256).

Reference: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from hushcount.clock import MACHINE
from hushcount.delivery.exchange import NoAnswer, Request, exchange
from hushcount.delivery.site import Site
from hushcount.errors import HushcountError, UsageError
from pipelines.deployment.parts import SECONDS, AlertsPart, site_of
from pipelines.deployment.settings import Deployment
from pipelines.handover.evaluator_address import read_secret_text

PREFIX = "whsec_"
_LEAST_BYTES, _MOST_BYTES = 24, 64


@dataclass(frozen=True)
class Secret:
    """A key that sender and receiver share; it is never printed."""

    key: bytes = field(repr=False)

    def __reduce__(self) -> tuple[type, ...]:
        raise TypeError("the secret of a webhook cannot be pickled or copied")

    def headers(self, id: str, seconds: int, body: bytes) -> dict[str, str]:
        """Return the headers with the message's id, the time of sending, and the signature.

        Args:
            id: the id of the message, the same at every attempt.
            seconds: the time of the attempt, in whole seconds since 1970.
        """
        signed = b".".join((id.encode(), str(seconds).encode(), body))
        proof = base64.b64encode(hmac.digest(self.key, signed, hashlib.sha256)).decode()
        return {"webhook-id": id, "webhook-timestamp": str(seconds), "webhook-signature": f"v1,{proof}"}


def read_secret(reference: str) -> Secret:
    """Return the secret in a private file, env:NAME or gcp-secret://NAME; a UsageError does not show the secret."""
    text = read_secret_text(reference, "webhook secret")
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(PREFIX) or not _LEAST_BYTES <= len(key) <= _MOST_BYTES:
        raise UsageError(
            f"secret {reference} holds no webhook secret: it must be {PREFIX} and {_LEAST_BYTES} to {_MOST_BYTES} "
            "random bytes in base64"
        )
    return Secret(key)


_MOST_ANSWER_BYTES = 1 << 14


@dataclass(frozen=True)
class Message:
    """The message that is sent.

    Attributes:
        id: an id that is the same at every attempt, so that a receiver can drop a repeated message.
        says: the message as a sentence.
        data: the message in a form for programs.
    """

    id: str
    says: str
    data: Mapping[str, Any]

    @property
    def text(self) -> bytes:
        """The message for a program: the sentence, and then the id on its own line."""
        return f"{self.says}\n{self.id}\n".encode()

    @property
    def json(self) -> bytes:
        """The message for a webhook, in ASCII."""
        data = {"id": self.id, "says": self.says, **self.data}
        return json.dumps({"type": "hushcount.alert", "data": data}, allow_nan=False).encode()


class Undelivered(HushcountError):
    """An attempt to send a message failed, so the message may or may not have arrived.

    `down`: the receiver did not answer at all, so sending further messages would fail as well.
    """

    def __init__(self, message: str, *, down: bool) -> None:
        super().__init__(message)
        self.down = down


@dataclass(frozen=True)
class Webhook:
    """A web address that receives signed POST requests.

    The path of the address may be a secret, and is never shown.
    """

    site: Site
    path: str = field(repr=False)
    secret: Secret

    @property
    def name(self) -> str:
        return f"the webhook at {self.site.host}"

    def send(self, message: Message) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "hushcount"}
        headers |= self.secret.headers(message.id, int(MACHINE.seconds()), message.json)
        try:
            reply = exchange(self.site, Request("POST", self.path, headers, message.json), _MOST_ANSWER_BYTES)
        except NoAnswer as error:
            raise Undelivered(str(error), down=True) from None
        if reply.status // 100 != 2:
            why = ": redirects are not followed" if reply.status // 100 == 3 else ""
            # A refusal may concern only this message; a status of a busy or broken receiver concerns all messages.
            down = reply.status // 100 == 5 or reply.status in (408, 429)
            raise Undelivered(f"{self.name} answered with status {reply.status}{why}", down=down)


@dataclass(frozen=True)
class Program:
    """The operator's program, which reads a message from standard input, and ends with status 0 if it accepts it."""

    command: tuple[str, ...]
    directory: Path
    seconds: float = SECONDS

    @property
    def name(self) -> str:
        return f"the program {self.command[0]}"

    def send(self, message: Message) -> None:
        try:
            child = subprocess.Popen(  # noqa: S603  # the operator's own words; no text of an alert is among them
                self.command, cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Undelivered(f"{self.name} cannot be started: {error.strerror}", down=True) from None
        try:
            child.communicate(message.text, self.seconds)
        except subprocess.TimeoutExpired:
            raise Undelivered(f"{self.name} did not end in {self.seconds:g} s", down=True) from None
        finally:
            if child.poll() is None:
                _end(child)
        if child.returncode:
            raise Undelivered(f"{self.name} ended with status {child.returncode}", down=False)


Receiver: TypeAlias = Webhook | Program
"""A receiver of alerts, under a name that holds no secret."""


def receiver_of(deployment: Deployment, part: AlertsPart) -> Receiver:
    """Return the receiver of a deployment's alerts; raises UsageError if the secret or the program is missing."""
    if part.webhook is not None and part.secret is not None:
        return Webhook(*site_of(part.webhook), read_secret(str(deployment.key_source(part.secret))))
    name = part.command[0]
    if shutil.which(str(deployment.base / name) if "/" in name else name) is None:
        raise UsageError(f"alerts.command begins with {name!r}, must be a program that this user may run: correct it")
    return Program(part.command, deployment.base)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a program and all programs that it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
