"""Compare this machine's clock with the logs, manifests, the ledger, and the store's own clock."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product

from hushcount.clock import Clock
from hushcount.errors import HushcountError
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.hops import CHAIN, input_of
from pipelines.handover.statements import keys_of, others, read
from pipelines.ledger import own_time
from pipelines.ledger.clock import Reading, Witness, shown, usual_bound
from pipelines.ledger.file import opened, read_newest
from pipelines.log.entries import Confirmed
from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from pipelines.windows.closing import Listed
from pipelines.windows.rules import calendar_of

CONFIRM = "set the clock; if it is right and nothing came in that time, confirm it once: hushcount run --clock-is-right"


@dataclass(frozen=True)
class Told:
    """The time by this machine's clock, and by all other witnesses of the time.

    Attributes:
        present: the moment to work by.
        problems: a sentence for each witness that could not be read.
    """

    clock: Reading
    present: datetime
    problems: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        """A sentence on a clock that is far ahead: by how much, which actions were not taken, and the cure."""
        return (
            f"{self.clock.says()}: nothing was deleted, given up or published by this clock, and all was done as at "
            f"{shown(self.present)}; {CONFIRM}"
        )

    @property
    def reached(self) -> datetime:
        """The latest moment that has certainly passed, or `present` if that is later."""
        return self.present if self.clock.reach is None else max(self.present, self.clock.reach)

    @property
    def is_quiet(self) -> bool:
        """Whether the clock is right, but is so far ahead of the newest entry that it would soon look wrong."""
        clock = self.clock
        return clock.store is None and clock.trusted is not None and clock.bound / 2 < clock.ahead <= clock.bound


def told_time(deployment: Deployment, folds: Sequence[Fold], listed: Sequence[Listed], now: datetime) -> Told:
    """Compare this machine's clock with everything else that tells the time.

    Args:
        folds: of all campaigns. The entries in `folds` tell the time, because an entry is put at a trusted moment only.
        listed: the manifests that no closed window has taken. What counts is when a manifest was written, not its
            window, because a collector whose clock jumped writes the manifests of forty windows in a minute.
        now: the time by the clock.
    """
    windows, problems = deployment.windows, list[str]()
    # The bound is from the settings in force, not from the deployment file, because a typo there must not allow a clock
    # that is years ahead.
    times = [calendar_of(deployment, fold).at(fold.latest or now) for fold in folds]
    clock = Reading(
        now,
        usual_bound(
            max((one.tiling.longest for one in times), default=windows.tiling.longest),
            max((one.grace for one in times), default=windows.grace),
            windows.patience,
        ),
        max((fold.latest for fold in folds if fold.latest is not None), default=None),
        (Witness("the newest manifest", tuple(one.written for one in listed)),),
    )
    with _asked("ledger", problems):
        if deployment.ledger is not None and deployment.ledger.exists():
            with opened(deployment.ledger) as connection:
                newest = read_newest(connection)
            ledger = Witness("the ledger", () if newest is None else (newest,))
            clock = replace(clock, witnesses=(*clock.witnesses, ledger))
    with _asked("store", problems):
        clock = replace(clock, store=storage.store_time(deployment.folder("log")))
    if clock.is_far and clock.store is None:
        # For a party that reads outputs of others and was down for long, only the statements of others tell the time.
        with _asked("statements", problems):
            stated = Witness("the newest statement of another party", tuple(_stated(deployment, folds)))
            clock = replace(clock, witnesses=(*clock.witnesses, stated))
    return Told(clock, clock.present, tuple(problems))


def _stated(deployment: Deployment, folds: Sequence[Fold]) -> Iterator[datetime]:
    """Yield the times of statements on outputs that a hop here must still read; only these times may move a clock."""
    here = [hop for hop in CHAIN if CHAIN[hop].party in deployment.file.parties]
    inputs = {input_of(hop, noise) for hop in here for noise in (False, True)}
    for fold, party in product(folds, others(deployment)):

        def unread(batch: str, hop: str, done: Container[str] = fold.done) -> bool:
            return hop in inputs and batch not in done

        said, _ = read(deployment, "statement", party, fold.campaign, keys_of(deployment, party), unread)
        yield from (one.at for one in said.values())


def settled(
    deployment: Deployment, logs: Logs, folds: Sequence[Fold], time: Told, clock: Clock, *, confirmed: bool
) -> Told:
    """Return the time that a run works by, and put a log entry by which a later run may trust the clock.

    The entry is put if the operator confirms the clock. The entry is also put if the clock is right and no entry was
    put for half the bound, because otherwise a month without reports would look like a jump of the clock.

    Raises:
        HushcountError, OSError: a log or the ledger cannot be written to.
    """
    now, trusted = time.clock.now, time.clock.trusted
    if confirmed:
        # A clock that is behind can be confirmed too; then all time stamps after its time came from a wrong clock.
        if time.clock.is_far or (trusted is not None and now < trusted):
            _confirm(deployment, logs, folds, now, clock)
        return replace(time, clock=replace(time.clock, trusted=now, witnesses=(), store=None), present=now)
    if time.is_quiet:
        campaign = next(fold.campaign for fold in folds if fold.latest is not None)
        least = time.present - time.clock.bound / 2
        logs.shared(campaign).decide(
            lambda fold: Confirmed() if fold.latest is None or fold.latest < least else None, time.present
        )
    return time


def _confirm(deployment: Deployment, logs: Logs, folds: Sequence[Fold], now: datetime, clock: Clock) -> None:
    """Record that the clock is right: in the ledger, and in every log with entries or else in the first log."""
    parties = [logs.of(party, fold.campaign) for fold in folds for party in deployment.file.parties]
    for log in [log for log in parties if log.head.number] or parties[:1]:
        log.decide(lambda _: Confirmed(), now)
    if deployment.ledger is not None and deployment.ledger.exists():
        own_time.believe(deployment.ledger, clock=clock)


@contextmanager
def _asked(name: str, problems: list[str]) -> Iterator[None]:
    """Turn the error on reading something that tells the time into a problem of the run."""
    try:
        yield
    except (HushcountError, OSError) as error:
        problems.append(f"{name}: {told(error)}")
