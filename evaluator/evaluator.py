"""The whole evaluator: campaigns, keys, counts and answers, with housekeeping twice a second."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from evaluator.campaigns import AskedEpoch, Campaigns, asked_epochs, read_campaigns, served_by
from evaluator.counting import Counting
from evaluator.keys_here import KeysHere
from evaluator.manifests import Asker
from evaluator.metrics import Metrics
from evaluator.refusals import BAD_ELEMENT, KEY_DESTROYED, KEY_UNREADABLE
from evaluator.settings import EvaluatorPart
from evaluator.uploads import ManifestStore
from hushcount.clock import MACHINE, Clock
from hushcount.collection.tilings import Tiling
from hushcount.discovery.oblivious import ELEMENT_BYTES
from hushcount.errors import HushcountError
from keys.evaluating import EvaluatorKey
from service import window_notes
from service.authentication import Authenticator, BearerToken
from service.exchange import IncomingBytes
from service.logs import error_name, log_paths
from service.passes import PassTaker
from service.refusals import QUEUE_FULL, STOPPING, STORAGE_FAILING, Refused, try_again
from service.store import WriteWhole
from service.threads import to_its_end

_LOG = logging.getLogger("hushcount.evaluator")
_TICK_SECONDS = 0.5
"""A key answers for at most one second after it was destroyed."""
_STORE_SECONDS = 5.0
_READING = ("keys", "campaigns")
"""These steps write nothing, so their errors are not counted as failed writes."""
_AT_ONCE = 20
"""Requests with at most this number of evaluations are answered within the event loop, in 2 ms. Handing a request to
the thread would cost as much time as one evaluation."""


@dataclass(frozen=True)
class EvaluatorSetup:
    """Settings, directories and services that an evaluator needs."""

    settings: EvaluatorPart
    counts: Path  # directory of counts, on a local disk
    campaigns: Path  # directory of campaigns, one folder each
    keys: Path  # key directory
    evaluations: str  # folder of manifests in the store
    tiling: Tiling  # of windows
    authenticator: Authenticator
    verifier: BearerToken | None
    write_whole: WriteWhole
    probe: Callable[[], None]  # raises if the store cannot be reached
    metrics_reader: BearerToken | None = None  # who may read the metrics
    clock: Clock = MACHINE


class Evaluator:
    """An evaluator in one event loop, between `start` and `stop`."""

    def __init__(self, setup: EvaluatorSetup, pool: Executor | None = None) -> None:
        """Prepare an evaluator; `pool` makes the evaluations of longer requests, by default in one thread."""
        self.setup = setup
        self.metrics = Metrics()
        self.incoming = IncomingBytes(setup.settings.most_incoming_bytes)
        self.campaigns: Campaigns = {}
        self._read_campaigns()
        self.keys = KeysHere(setup.keys)
        self.refusals: Counter[tuple[AskedEpoch, Asker, str]] = Counter()
        """Refusals that are not written to a file yet."""
        self.metrics.incoming.set_function(lambda: self.incoming.present)
        self.metrics.ready.set_function(lambda: 0 if self.faults() else 1)
        self.metrics.keys.set_function(lambda: len(self.keys))
        self.metrics.waiting.set_function(lambda: self._waiting)
        self._waiting, self._stopping = 0, False
        # One thread: the library holds Python's lock while it works, so two threads would only take turns.
        self._pool = pool or ThreadPoolExecutor(1, "evaluate")
        self._ended: list[Counting] = []
        """Counts of windows that ended, until their files are closed."""
        self._faults: dict[str, str] = {}
        """By name of a step, why the step failed at its last try."""
        self._told = frozenset[str]()
        """The faults that were there at the last look."""
        self._tasks: list[asyncio.Task[None]] = []
        self._store = ManifestStore(
            setup.counts,
            setup.evaluations.rstrip("/"),
            setup.settings.name,
            setup.tiling,
            setup.write_whole,
            setup.probe,
            self.metrics,
            setup.clock,
        )

    async def start(self) -> None:
        """Read the counts of an earlier process, and begin to answer. OSError: the counts cannot be written."""
        self._look_at_keys()
        self.counting = self._open()
        self._tasks = [asyncio.create_task(part()) for part in (self._watch_keys, self._keep_house, self._carry)]
        for fault in self.faults():
            _LOG.error("not ready", extra={"fault": fault})
        self._told = frozenset(self.faults())

    async def stop(self) -> None:
        """Write all counts to the disk; counts of windows that ended go to the store at the next start."""
        self._stopping = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._pool.shutdown()
        # If a step fails, the other steps must still run.
        for step in (self._count_refusals, self._flush, self.counting.close):
            try:
                step()
            except Exception:
                _LOG.exception("stopping failed", extra={"step": step.__qualname__})

    def is_verifier(self, authorization: bytes | None) -> bool:
        """Return whether a request has the token of the verifier: the analyzer, which verifies discovered values."""
        return self.setup.verifier is not None and self.setup.verifier.is_shown(authorization)

    async def answer(self, epoch: AskedEpoch, key: str, asker: Asker, client: bytes | None, blinded: bytes) -> bytes:
        """Make and count the evaluations of one request, and return the answer; or raise Refused.

        Args:
            key: id of the epoch's key.
            client: bytes that tell the asker apart, or None.
            blinded: whole elements, no more than one request may hold.
        """
        evaluations = len(blinded) // ELEMENT_BYTES
        if self._stopping:
            raise try_again(STOPPING)
        if self._waiting + evaluations > self.setup.settings.queue_evaluations:
            raise try_again(QUEUE_FULL)
        self._require_key(key)
        if self._served.get(key, epoch).fingerprint != epoch.fingerprint:
            raise try_again(KEY_UNREADABLE)
        counting = self.counting
        counting.reserve(epoch, asker, client, evaluations)
        self._waiting += evaluations
        try:
            if evaluations <= _AT_ONCE:
                answer = self._evaluate(key, blinded)
            else:
                answer = await asyncio.get_running_loop().run_in_executor(self._pool, self._evaluate, key, blinded)
            if counting is not self.counting:
                # The window ended during the evaluation, so the answer counts in the next window. If the next window
                # refuses, nothing was reserved in it, and only the reservation in the old window is taken back.
                later = self.counting
                later.reserve(epoch, asker, client, evaluations)
                counting = later
            counting.answered(epoch, asker, client, evaluations)
        except OSError:
            counting.give_back(epoch, asker, client, evaluations)
            self.metrics.failed_writes.inc()
            raise try_again(STORAGE_FAILING) from None
        except BaseException:
            counting.give_back(epoch, asker, client, evaluations)
            raise
        finally:
            self._waiting -= evaluations
        self.metrics.evaluations.labels(epoch.campaign, epoch.epoch, asker).inc(evaluations)
        return answer

    def _evaluate(self, id: str, blinded: bytes) -> bytes:
        # The key is looked up again, because it may have been destroyed while the request waited.
        key = self._require_key(id)
        with self.metrics.seconds.time():
            try:
                return key.evaluate(blinded)
            except ValueError:
                raise Refused(
                    BAD_ELEMENT, "Send elements of ristretto255 as RFC 9497 serialises them, and not the identity."
                ) from None

    def _require_key(self, id: str) -> EvaluatorKey:
        key = self.keys.find(id)
        if key is not None:
            return key
        if id in self.keys.retired:
            raise Refused(KEY_DESTROYED, "Nobody evaluates for this campaign file any more: use the next one.")
        # The file of a key that is not listed as destroyed may be restored. If the answer said "destroyed", an analyzer
        # would give up released values.
        raise try_again(KEY_UNREADABLE)

    def faults(self) -> list[str]:
        """Return why the evaluator is not ready, in sentences."""
        return list(self._each_fault())

    def _each_fault(self) -> Iterator[str]:
        for campaign in self.campaigns.values():
            if campaign.fault is not None:
                yield f"campaign {campaign.id}: {campaign.fault}"
        yield from self._faults.values()
        yield from self.keys.faults.values()
        now = self.setup.clock.seconds()
        asked = [epoch for epoch in asked_epochs(self.campaigns) if epoch.key is not None and epoch.grace_ends > now]
        if not asked:
            yield f"no campaign asks an evaluator: no campaign in {self.setup.campaigns} has discovery.hash oblivious"
        served = self._served
        for epoch in asked:
            # An epoch's key may be destroyed between the epoch's end and the end of its grace, so only epochs that are
            # not over need it.
            if epoch.ends > now and epoch.key is not None and self.keys.find(epoch.key.id) is None:
                yield f"{self.setup.keys} holds no key {epoch.key.id}, of campaign {epoch.campaign} epoch {epoch.epoch}"
            if epoch.key is not None and (first := served.get(epoch.key.id, epoch)).fingerprint != epoch.fingerprint:
                yield (
                    f"campaign {epoch.campaign} epoch {epoch.epoch} names key {epoch.key.id}, which serves campaign "
                    f"{first.campaign} epoch {first.epoch} alone: publish an epoch with a fresh key"
                )
        if self._store.failure is not None:
            yield f"the store cannot be written: {self._store.failure}"
        for window, failure in list(self._store.unread.items()):
            yield f"window {window} cannot be stored: {failure}; look at its folder in {self.setup.counts}"
        if self.counting.window.start.timestamp() > now:
            yield f"the clock went back: evaluations are counted in window {self.counting.window.name}, still to begin"
        if any(not task.cancelled() and task.done() for task in self._tasks):
            yield "a part of the evaluator has failed: restart the evaluator"

    async def _watch_keys(self) -> None:
        """Twice a second, look which keys exist, even if other steps fail or take long."""
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            with self._noting("keys"):
                await asyncio.get_running_loop().run_in_executor(None, self._look_at_keys)

    async def _keep_house(self) -> None:
        """Twice a second: read changed campaigns, end a window that is over, write counts."""
        loop = asyncio.get_running_loop()
        steps = {"campaigns": self._read_campaigns, "counts": self._flush}
        while True:
            await asyncio.sleep(_TICK_SECONDS)
            with self._noting("refusals"):
                self._count_refusals()
            with self._noting("window"):
                self._turn()
            for name, step in steps.items():
                with self._noting(name):
                    await to_its_end(loop.run_in_executor(None, step))
            self._told = log_paths(_LOG, self.faults(), self._told)

    async def _carry(self) -> None:
        """Carry the counts of windows that ended to the store, and repeat this until the store accepts the counts."""
        loop = asyncio.get_running_loop()
        while True:
            if not self._ended:
                await loop.run_in_executor(None, self._store.carry, self.counting.window.name)
            await asyncio.sleep(_STORE_SECONDS)

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        """Note an error of a step as a fault until the step works again; other steps continue."""
        try:
            yield
        except Exception as error:
            said = str(error) if isinstance(error, HushcountError) else f"{name} failed: {error_name(error)}"
            if isinstance(error, OSError) and name not in _READING:
                self.metrics.failed_writes.inc()
            if self._faults.get(name) != said:
                _LOG.error("a step failed", extra={"step": name, "error": error_name(error)})
            self._faults[name] = said
        else:
            self._faults.pop(name, None)

    def _look_at_keys(self) -> None:
        self.keys.look({epoch.key.id for epoch in asked_epochs(self.campaigns) if epoch.key is not None})

    def _read_campaigns(self) -> None:
        setup = self.setup
        taker = PassTaker(setup.authenticator.way, "evaluator", setup.settings.name, setup.tiling)
        self.campaigns = read_campaigns(setup.campaigns, taker, self.campaigns)
        self._served = served_by(self.campaigns)

    def _count_refusals(self) -> None:
        for place, number in list(self.refusals.items()):
            self.counting.refused(*place, number)
            del self.refusals[place]

    def _turn(self) -> None:
        """Begin the next window if the present window is over."""
        if self.setup.clock.now() >= self.counting.window.end:
            window_notes.note_over(self.setup.counts, self.counting.window.end)
            begun = self._open()
            self._ended.append(self.counting)
            self.counting = begun

    def _open(self) -> Counting:
        root, settings = self.setup.counts, self.setup.settings
        window = window_notes.open_window(root, self.setup.clock.now(), self.setup.tiling)
        way = self.setup.authenticator.way
        return Counting(
            root, window, way, settings.evaluations_a_client, settings.most_evaluations_verifier, self.setup.clock
        )

    def _flush(self) -> None:
        self.counting.flush()
        while self._ended:
            self._ended[0].close()
            self._ended.pop(0)
