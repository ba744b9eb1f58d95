"""Mends, each with what takes it out: a function of the code is replaced by what was there before, or by nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from pipelines import ledger, ledger_clock, ledger_draws, ledger_file, lock, run
from pipelines.ledger_records import Limit
from pipelines.staging import Writer

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mend:
    """A proof of docs/adr/0024-under-fire.md.

    Attributes:
        name: of what it proves.
        fault: kind of what makes that false.
        take_out: replaces it.
    """

    name: str
    fault: str
    take_out: Callable[[Patch], None]

    @contextmanager
    def removed(self) -> Iterator[None]:
        """Let a block run without it."""
        with Patch.context() as patch:
            self.take_out(patch)
            yield


def _a_future_period_begins_when_it_was_set(patch: Patch) -> None:
    def period(limit: Limit, now: datetime) -> tuple[datetime, datetime | None]:
        begin = datetime.fromisoformat(limit.since)
        if limit.renew_days is None:
            return begin, None
        length = timedelta(days=limit.renew_days)
        current = begin + max(0, (now - begin) // length) * length
        return current, current + length

    patch.setattr(Limit, "period", period)
    patch.setattr(ledger_clock, "believed", lambda clock, newest, known=None: clock)


def _a_ledger_has_the_name_that_is_given(patch: Patch) -> None:
    for module in (ledger_file, ledger_draws):
        patch.setattr(module, "resolved", lambda path: path)
    patch.setattr(ledger, "require_same_draw", lambda path, charge, draw: None)


def _a_run_works_by_its_clock(patch: Patch) -> None:
    patch.setattr(run, "_timed", lambda work, confirmed: work)


def _runs_write_in_one_folder_and_believe_their_lock(patch: Patch) -> None:
    patch.setattr(lock, "require_last", lambda connection, run, address: None)
    patch.setattr(Writer, "new_folder", lambda self: "0000000000-0000000000000000")


MENDS: tuple[Mend, ...] = (
    Mend("1: a token, and a folder for each run", "take over", _runs_write_in_one_folder_and_believe_their_lock),
    Mend("2: the ledger has a time of its own", "limit", _a_future_period_begins_when_it_was_set),
    Mend("6: one ledger has one name, and a charge one draw", "other name", _a_ledger_has_the_name_that_is_given),
    Mend("8: nothing final is done by a clock far ahead", "clock", _a_run_works_by_its_clock),
)
