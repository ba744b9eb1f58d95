"""Rules: who may ask for passes, and as which account. A rule reads the header Authorization of a request."""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE

from hushcount.delivery.exchange import NoAnswer, Request, exchange
from hushcount.delivery.site import Site
from hushcount.errors import FormatError, HushcountError, UsageError
from hushcount.formats.client_files import read_private
from hushcount.formats.reading import parse_object
from issuer.settings import IssuerPart

Rule = Callable[[str], str | None]
"""Returns the account's name, or None: it may not ask. It may block for `rule_seconds`, and raises RuleFailing."""
_ACCOUNT = re.compile(r"[\x21-\x7e]{1,256}")
_SIGNED = re.compile(r"Bearer ([\x21-\x7e]{1,256})\.([0-9a-f]{64})", re.IGNORECASE)
_MOST_ANSWER_BYTES = 1 << 14
_SECRET_BYTES = range(16, 1025)


class RuleFailing(HushcountError):
    """The rule said neither yes nor no."""


def rule_of(settings: IssuerPart, directory: Path) -> Rule:
    """Return the rule of the settings; paths are relative to the directory.

    Raises:
        UsageError: the address, the file of the secret or the program cannot be used.
    """
    if settings.secret is not None:
        path = directory / settings.secret
        secret = (read_private(path, "secret", _SECRET_BYTES[-1]) or b"").strip()
        if len(secret) not in _SECRET_BYTES:
            raise UsageError(f"secret file {path} holds {len(secret)} bytes, must hold 16 to 1024")
        return partial(_by_secret, secret)
    if settings.hook is not None:
        return partial(_by_hook, Site(settings.hook, seconds=settings.rule_seconds))
    program = settings.command[0]
    if shutil.which(directory / program if os.sep in program else program) is None:
        raise UsageError(f"command {program} cannot be run from {directory}: correct the path, or chmod u+x it")
    return partial(_by_command, settings.command, directory, settings.rule_seconds)


def _by_command(command: tuple[str, ...], directory: Path, seconds: float, shown: str) -> str | None:
    try:
        process = subprocess.Popen(  # noqa: S603  # the operator's own program; the header is not in its arguments
            command, cwd=directory, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True
        )
    except OSError as error:
        raise RuleFailing(f"the command {command[0]} did not run in {directory}: {error.strerror}") from None
    with process:
        assert process.stdin is not None  # noqa: S101  # both are pipes
        assert process.stdout is not None  # noqa: S101
        # All that the program started is killed too: it would hold the output open.
        timer = threading.Timer(seconds, _kill, (process.pid,))
        timer.start()
        try:
            with suppress(BrokenPipeError), process.stdin:
                process.stdin.write(shown.encode())
            output = process.stdout.read(_MOST_ANSWER_BYTES)
            if len(output) == _MOST_ANSWER_BYTES:
                _kill(process.pid)
            status = process.wait()
        finally:
            timer.cancel()
    if status not in (0, 1):
        raise RuleFailing(f"the command ended with status {status}, must be 0 or 1, in time and without much output")
    return None if status else _account(output.decode(errors="replace").partition("\n")[0])


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _by_hook(site: Site, shown: str) -> str | None:
    try:
        reply = exchange(site, Request("POST", "", {"Authorization": shown}, b""), _MOST_ANSWER_BYTES)
        if reply.status in (401, 403):
            return None
        said = parse_object(reply.body, "the hook's answer").get("account") if reply.status == 200 else None
    except (NoAnswer, FormatError):
        raise RuleFailing("the hook gave no valid answer") from None
    return _account(said)


def _by_secret(secret: bytes, shown: str) -> str | None:
    match = _SIGNED.fullmatch(shown)
    account = "" if match is None else match[1]
    wanted = hmac.new(secret, account.encode(), hashlib.sha256).hexdigest()
    return account if match is not None and hmac.compare_digest(match[2], wanted) else None


def _account(said: object) -> str:
    if not isinstance(said, str) or not _ACCOUNT.fullmatch(said):
        raise RuleFailing("the rule named no account: it must be 1 to 256 visible ASCII characters")
    return said
