"""Shared state of the steps of a run: the deployment, its logs, the moment to work by, and the run's report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console

from hushcount.clock import Clock
from pipelines.deployment.settings import Deployment
from pipelines.engine.runner import Engine
from pipelines.files.storage_errors import told
from pipelines.handover.hops import CHAIN, HopName
from pipelines.log.log import Log, Logs
from pipelines.schedule.done import Done
from pipelines.windows.closing import Listed

Say = Callable[[str], None]


@dataclass(frozen=True)
class Vouched:
    """Facts that the operator vouches for, because no program can know them.

    Attributes:
        clock_is_right: the clock is right, although it is far ahead of everything else.
        log_was_restored: a log that lacks entries is lost, and a new log must begin.
        ledger_was_lost: the ledger that a log names is lost, and the deployment's present ledger replaces it.
    """

    clock_is_right: bool = False
    log_was_restored: bool = False
    ledger_was_lost: bool = False


NOTHING = Vouched()


@dataclass(frozen=True)
class Work:
    """The shared state of the steps of a run.

    Attributes:
        clock: this machine's.
        now: the moment to work by, which is the clock's time unless the clock is far ahead.
        reached: the latest moment that has certainly passed; later than `now` if the clock is behind.
        ahead: a sentence on the clock if it is far ahead; else empty.
        listed: by campaign, the manifests that no closed window has taken.
    """

    deployment: Deployment
    logs: Logs
    vouched: Vouched
    clock: Clock
    now: datetime
    reached: datetime
    ahead: str
    listed: dict[str, tuple[Listed, ...]]
    done: Done
    engine: Engine
    console: Console | None
    say: Say

    def of(self, hop: HopName, campaign: str) -> Log:
        """Return the log of the party that runs a hop."""
        return self.logs.of(CHAIN[hop].party, campaign)

    @contextmanager
    def contained(self, where: str) -> Iterator[None]:
        """Turn any exception in a block into a problem of the run."""
        try:
            yield
        except Exception as error:
            self.done.problems.append(f"{where}: {told(error)}")
