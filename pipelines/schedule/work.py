"""What the steps of a run share: the deployment, its logs, the moment, and the report."""

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
    """What the operator vouches for, because no program can know it.

    Attributes:
        clock_is_right: that a clock that is far ahead of everything else is right.
        log_was_restored: that a log which lacks entries is lost, and a new one is to begin.
        ledger_was_lost: that the ledger which a log names is lost, and the one that is named now is in its place.
    """

    clock_is_right: bool = False
    log_was_restored: bool = False
    ledger_was_lost: bool = False


NOTHING = Vouched()


@dataclass(frozen=True)
class Work:
    """What the steps of a run share.

    Attributes:
        clock: this machine's.
        now: the moment to work by: the clock's, unless that is far ahead.
        reached: the latest moment that is known to have come: it is later than `now` if the clock is behind.
        ahead: a sentence on a clock that is far ahead; empty: it is not.
        listed: the manifests of a campaign that no closed window has taken in, by its id.
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

    @property
    def shuffles(self) -> bool:
        """Whether the shuffler runs here."""
        return "shuffler" in self.deployment.file.parties

    def of(self, hop: HopName, campaign: str) -> Log:
        """Return the log of the party that runs a hop."""
        return self.logs.of(CHAIN[hop].party, campaign)

    @contextmanager
    def contained(self, where: str) -> Iterator[None]:
        """Make a problem of whatever a block raises."""
        try:
            yield
        except Exception as error:
            self.done.problems.append(f"{where}: {told(error)}")
