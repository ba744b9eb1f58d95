"""One attempt to hand an alert over: to a webhook, or to a program. Both end within the time that is set."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hushcount.delivery.exchange import NoAnswer, Reply, Request, exchange
from hushcount.delivery.site import Site
from hushcount.errors import HushcountError, UsageError
from pipelines.alerts.signing import Secret, read_secret
from pipelines.deployment.alerting import AlertsPart, site_of
from pipelines.deployment.settings import Deployment

_MOST_ANSWER_BYTES = 1 << 14
_TURN = 0.5
"""Seconds beyond its own limit that an exchange is waited for: the name of a host may take long to resolve."""


class Undelivered(HushcountError):
    """An attempt failed. `down`: the place did not answer at all, and further alerts would fail as well."""

    def __init__(self, message: str, *, down: bool) -> None:
        super().__init__(message)
        self.down = down


class Place(Protocol):
    """Where alerts go."""

    @property
    def name(self) -> str:
        """It in words, without a secret."""

    def send(self, id: str, body: bytes) -> None:
        """Hand one alert over; Undelivered: it may or may not have arrived."""


@dataclass(frozen=True)
class Webhook:
    """An address that takes signed posts. Its path may be a secret and is shown nowhere."""

    site: Site
    path: str = field(repr=False)
    secret: Secret

    @property
    def name(self) -> str:
        return f"the webhook at {self.site.host}"

    def send(self, id: str, body: bytes) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "hushcount"}
        headers |= self.secret.headers(id, int(time.time()), body)
        reply = _exchanged(self.site, Request("POST", self.path, headers, body))
        if reply.status // 100 != 2:
            why = ": it sends us elsewhere, which is not followed" if reply.status // 100 == 3 else ""
            # What is wrong with one alert may not be wrong with the next; a busy or broken place is.
            down = reply.status // 100 == 5 or reply.status in (408, 429)
            raise Undelivered(f"{self.name} answered with status {reply.status}{why}", down=down)


@dataclass(frozen=True)
class Program:
    """A program of the operator's that reads one alert from its input, and ends with status 0 if it took it."""

    command: tuple[str, ...]
    directory: Path
    seconds: float

    @property
    def name(self) -> str:
        return f"the program {self.command[0]}"

    def require(self) -> None:
        """Check that it is there and may be run; UsageError if not."""
        name = self.command[0]
        if shutil.which(str(self.directory / name) if "/" in name else name) is None:
            raise UsageError(f"command begins with {name!r}, must be a program that this user may run: correct it")

    def send(self, id: str, body: bytes) -> None:
        try:
            child = subprocess.Popen(  # noqa: S603  # the operator's own words; no text of an alert is among them
                self.command, cwd=self.directory, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise Undelivered(f"{self.name} cannot be started: {error.strerror}", down=True) from None
        try:
            child.communicate(body, self.seconds)
        except subprocess.TimeoutExpired:
            raise Undelivered(f"{self.name} did not end in {self.seconds:g} s", down=True) from None
        finally:
            if child.poll() is None:
                _end(child)
        if child.returncode:
            raise Undelivered(f"{self.name} ended with status {child.returncode}", down=False)


def place_of(deployment: Deployment, part: AlertsPart) -> Place:
    """Return where the alerts of a deployment go; UsageError: the secret cannot be read."""
    if part.webhook is None:
        return Program(part.command, deployment.base, part.timeout.total_seconds())
    if part.secret is None:
        raise UsageError("webhook has no secret: set secret under [alerts]")
    site, path = site_of(part.webhook, part.plain_http, part.timeout)
    return Webhook(site, path, read_secret(str(deployment.key_source(part.secret))))


def _exchanged(site: Site, request: Request) -> Reply:
    """Exchange on a thread of its own, so that nothing, not even the resolver, takes longer than is allowed."""
    replies: list[Reply] = []
    failures: list[str] = []

    def work() -> None:
        try:
            replies.append(exchange(site, request, _MOST_ANSWER_BYTES))
        except NoAnswer as error:
            failures.append(str(error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(site.seconds + _TURN)
    if replies:
        return replies[0]
    late = f"no answer of {site.host} port {site.port}: it did not answer in time"
    raise Undelivered(failures[0] if failures else late, down=True)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
