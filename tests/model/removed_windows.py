"""What takes the mends of windows, clocks and hand-overs out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pipelines.audit import parties
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.ledger.clock import Reading
from pipelines.log import entries
from pipelines.log.entries import whole_second
from pipelines.log.fold import Fold
from pipelines.schedule import looking, retention, run
from pipelines.schedule.clock_check import Told
from pipelines.windows import intake, rules
from pipelines.windows.calendar import Calendar
from pipelines.windows.closing import Closing, Listed, closing_of
from pipelines.windows.stored import StoredFile

Patch = pytest.MonkeyPatch


def a_run_works_by_its_clock(patch: Patch) -> None:
    real = run.told_time

    def told_time(deployment: Deployment, folds: Sequence[Fold], listed: Sequence[Listed], now: datetime) -> Told:
        told = real(deployment, folds, listed, now)
        return replace(told, clock=replace(told.clock, bound=timedelta(days=9999), store=None), present=now)

    patch.setattr(run, "told_time", told_time)


def any_stamp_is_believed(patch: Patch) -> None:
    def reach(self: Reading) -> datetime | None:
        stamps = [stamp for witness in self.witnesses for stamp in witness.stamps]
        return self.store or max([*stamps, *([] if self.trusted is None else [self.trusted])], default=None)

    patch.setattr(Reading, "reach", property(reach))


def a_store_is_believed(patch: Patch) -> None:
    patch.setattr(Reading, "present", property(lambda self: self.store or self.now))


def a_stamp_to_come_is_late(patch: Patch) -> None:
    def late(*args: Any) -> Closing:
        *before, _, restored = args
        return closing_of(*before, datetime.max.replace(tzinfo=timezone.utc), restored)

    patch.setattr(intake, "closing_of", late)


def a_change_begins_at_once(patch: Patch) -> None:
    def begun(deployment: Deployment, fold: Fold, now: datetime) -> entries.Settings | None:
        entry = rules.changed(deployment, fold, now)
        return entry and entry.model_copy(update={"begins": entry.begins and whole_second(now)})

    patch.setattr(run, "changed", begun)


def the_newest_grace_holds(patch: Patch) -> None:
    patch.setattr(Calendar, "of", lambda self, _: self.times[-1])


def a_window_of_another_length_is_refused(patch: Patch) -> None:
    real = intake.intake_of

    def intake_of(deployment: Deployment, fold: Fold, files: Sequence[StoredFile]) -> intake.Intake:
        found, times = real(deployment, fold, files), rules.calendar_of(deployment, fold)
        known = [one for one in found.listed if one.window == times.window_at(one.window.end - timedelta(seconds=1))]
        return replace(found, listed=tuple(known))

    patch.setattr(looking, "intake_of", intake_of)


def what_at_most_deletes_is_silent(patch: Patch) -> None:
    patch.setattr(parties, "_unreceived", lambda _: iter(()))


def at_most_counts_from_the_window(patch: Patch) -> None:
    real = retention._old

    def old(
        deployment: Deployment, epochs: Epochs, fold: Fold, listed: datetime | None, now: datetime
    ) -> Iterator[retention._Old]:
        done = {}
        for name, hops in fold.done.items():
            end = retention._end(deployment, fold, fold.named(name))
            done[name] = {hop: replace(one, at=end) for hop, one in hops.items()}
        return real(deployment, epochs, replace(fold, done=done), listed, now)

    patch.setattr(retention, "_old", old)


def retention_waits_for_nobody(patch: Patch) -> None:
    patch.setattr(retention, "handed_on", lambda *_: [])
