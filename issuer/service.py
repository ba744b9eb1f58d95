"""The whole issuer: keys, rule, counts and signatures."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from pathlib import Path

from hushcount.clock import MACHINE, Clock
from hushcount.passes.slots import day_of
from issuer.issued import Issued
from issuer.keys_here import KeysHere
from issuer.refusals import ALREADY_ISSUED, NOT_ENTITLED, RULE_FAILING
from issuer.rules import Rule, RuleFailing
from issuer.settings import IssuerPart
from keys.issuing import IssuingKey
from service.authentication import BearerToken
from service.exchange import IncomingBytes
from service.metrics import ServiceMetrics
from service.refusals import QUEUE_FULL, STORAGE_FAILING, Refused, try_again

_LOG = logging.getLogger("hushcount.issuer")
_LOOK_SECONDS = 1.0
_THREADS, _MOST_WAITING = 32, 256
_AHEAD, _BEHIND = timedelta(days=2), timedelta(days=1)
"""Days that are issued: a client asks for today's or tomorrow's by the collector's clock, or by its own."""


@dataclass(frozen=True)
class IssuerSetup:
    """Settings, directories and the rule of an issuer."""

    settings: IssuerPart
    keys: Path
    issued: Path
    rule: Rule
    metrics_reader: BearerToken | None = None
    clock: Clock = MACHINE


class Issuer:
    """An issuer in one event loop, between `start` and `stop`; rule, counts and signatures run in threads."""

    def __init__(self, setup: IssuerSetup) -> None:
        self.setup = setup
        self.metrics = ServiceMetrics("hushcount_issuer_")
        self.issued_passes = self.metrics.counter("passes", "Passes signed.", "campaign")
        self.incoming = IncomingBytes(setup.settings.most_incoming_bytes)
        self.metrics.incoming.set_function(lambda: self.incoming.present)
        self.metrics.ready.set_function(lambda: 0 if self.faults() else 1)
        self.campaigns = KeysHere(setup.keys)
        self._issued: Issued | None = None
        self._looking: asyncio.Task[None] | None = None
        # More than cores, because a slow rule holds its thread, and others shall be answered meanwhile.
        self._threads = ThreadPoolExecutor(_THREADS, "issue")
        self._waiting = 0

    async def start(self) -> None:
        """Open the counts. OSError: they cannot be read or written."""
        try:
            self._issued = Issued(self.setup.issued)
        except sqlite3.Error as error:
            raise OSError(0, str(error)) from None
        self._looking = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """End; every count is on the disk before its answer leaves."""
        if self._looking is not None:
            self._looking.cancel()
            with suppress(asyncio.CancelledError):
                await self._looking
        self._threads.shutdown()

    def faults(self) -> list[str]:
        """Return why the issuer is not ready, in sentences."""
        return list(self._faults())

    def _faults(self) -> Iterator[str]:
        yield from self.campaigns.faults.values()
        if not len(self.campaigns):
            yield f"{self.setup.keys} holds no keys: make some with hushcount keys passes"

    def issues(self, day: date) -> bool:
        """Return whether passes of a day are given now."""
        today = day_of(self.setup.clock.seconds())
        return today - _BEHIND <= day <= today + _AHEAD

    async def answer(self, campaign: str, day: date, keys: list[IssuingKey], blinded: list[bytes], shown: str) -> bytes:
        """Return what `signed` does, which runs in a thread; raise Refused if too many requests wait for one."""
        if self._waiting >= _MOST_WAITING:
            raise try_again(QUEUE_FULL)
        self._waiting += 1
        try:
            work = partial(self.signed, campaign, day, keys, blinded, shown)
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._waiting -= 1

    def signed(self, campaign: str, day: date, keys: list[IssuingKey], blinded: list[bytes], shown: str) -> bytes:
        """Return the blind signatures, one after another, or raise Refused; may block.

        Args:
            keys: of the client's slots.
            blinded: a message for each key.
            shown: the header Authorization.
        """
        try:
            account = self.setup.rule(shown)
        except RuleFailing as failure:
            _LOG.warning("the rule fails", extra={"failure": str(failure)})
            raise try_again(RULE_FAILING) from None
        if account is None:
            raise Refused(NOT_ENTITLED, "Ask with the authorization that the issuer's operator demands.")
        over = day_of(self.setup.clock.seconds()) - _BEHIND
        assert self._issued is not None  # noqa: S101  # it is started
        try:
            may = self._issued.may_have(account, campaign, day, b"".join(blinded), self.setup.settings.most_a_day, over)
        except (OSError, sqlite3.Error):
            raise try_again(STORAGE_FAILING) from None
        if not may:
            raise Refused(ALREADY_ISSUED, "Ask for the passes of another day: only an equal request is answered again.")
        signatures = b"".join(key.sign(message) for key, message in zip(keys, blinded, strict=True))
        self.issued_passes.labels(campaign).inc(len(keys))
        return signatures

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            await asyncio.get_running_loop().run_in_executor(None, self.campaigns.look)
