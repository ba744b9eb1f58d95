"""Mends, each with what takes it out: a function of the code is replaced by what was there before, or by nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from hushcount.campaigns.campaign import Campaign
from pipelines.batches import lock, rebuild
from pipelines.batches.hops import output_of
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.handover.names import Batch
from pipelines.ledger import charging, draws, file, own_time
from pipelines.ledger.records import Limit
from pipelines.outputs.received_summary import read_summary
from pipelines.outputs.staging import SUMMARY, Writer
from pipelines.outputs.summary import HopSummary
from pipelines.schedule import hops, run

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
    patch.setattr(own_time, "believed", lambda clock, newest, known=None: clock)


def _a_ledger_has_the_name_that_is_given(patch: Patch) -> None:
    for module in (file, draws):
        patch.setattr(module, "resolved", lambda path: path)
    patch.setattr(charging, "require_same_draw", lambda path, charge, draw: None)


def _a_state_is_believed(patch: Patch) -> None:
    patch.setattr(run, "take_up_batches", lambda *_: {})
    patch.setattr(rebuild, "_of_this_batch", _what_is_there)


def _what_is_there(deployment: Deployment, campaign: Campaign, batch: Batch, hop: str, known: object) -> HopSummary:
    return read_summary(storage.join(output_of(deployment, hop, batch), SUMMARY))


def _a_hop_ran_if_its_output_is_there(patch: Patch) -> None:
    def taken_up(deployment: Deployment, campaign: Campaign, batch: Batch, hop: str, *_: object) -> HopSummary | None:
        there = storage.exists(storage.join(output_of(deployment, hop, batch), SUMMARY))
        return _what_is_there(deployment, campaign, batch, hop, None) if there else None

    patch.setattr(hops, "taken_up", taken_up)
    patch.setattr(run, "enter_deleted", lambda *_: {})


def _keys_are_read_by_the_hop_that_needs_them(patch: Patch) -> None:
    patch.setattr(hops, "require_keys", lambda *_: None)


def _a_run_works_by_its_clock(patch: Patch) -> None:
    patch.setattr(run, "_timed", lambda work, confirmed: work)


def _runs_write_in_one_folder_and_believe_their_lock(patch: Patch) -> None:
    patch.setattr(lock, "require_last", lambda connection, run, address: None)
    patch.setattr(Writer, "new_folder", lambda self: "0000000000-0000000000000000")


MENDS: tuple[Mend, ...] = (
    Mend("1: a token, and a folder for each run", "take over", _runs_write_in_one_folder_and_believe_their_lock),
    Mend("2: the ledger has a time of its own", "limit", _a_future_period_begins_when_it_was_set),
    Mend("3: the file of a batch is believed, not the state", "restore", _a_state_is_believed),
    Mend("4: a hop has run if anything says so", "restore", _a_hop_ran_if_its_output_is_there),
    Mend("5: keys are read before the first hop", "key", _keys_are_read_by_the_hop_that_needs_them),
    Mend("6: one ledger has one name, and a charge one draw", "other name", _a_ledger_has_the_name_that_is_given),
    Mend("8: nothing final is done by a clock far ahead", "clock", _a_run_works_by_its_clock),
)
