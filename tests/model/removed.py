"""Mends, each with what takes it out: a function of the code is replaced by what was there before, or by nothing."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from os import urandom

import pytest

from aux_server import keep
from hushcount.campaigns.campaign import Stream
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.files.storage_errors import StorageError
from pipelines.jobs.together import Outcome
from pipelines.ledger import charging, draws, file, own_time
from pipelines.ledger.charges import Limit
from pipelines.log import entries, folding, ledger_check
from pipelines.log.entries import Decision, Finished, Restored, whole_second
from pipelines.log.entry_files import Entry, write_entry
from pipelines.log.facts import Head
from pipelines.log.fold import Fold
from pipelines.log.log import Log, Logs
from pipelines.log.segments import segments_of
from pipelines.log.witnesses import Missing
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import HopSummary
from pipelines.schedule import advancing, attempts, looking, publishing, retention, run
from tests.model import removed_windows as windows

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mend:
    """A rule of docs/adr/0043, or a proof of docs/adr/0024-under-fire.md.

    Attributes:
        name: what holds with it.
        faults: kinds of what makes it needed.
        take_out: replaces it.
    """

    name: str
    faults: tuple[str, ...]
    take_out: Callable[[Patch], None]

    @contextmanager
    def removed(self) -> Iterator[None]:
        """Let a block run without it."""
        with Patch.context() as patch:
            self.take_out(patch)
            yield


def _unchecked(self: Log, decision: Decision, at: datetime) -> Entry | None:
    """Put an entry as `Log._put` does, whether or not the log allows it."""
    head = self.head
    written = write_entry(head.number + 1, head.digest, whole_second(at), decision)
    with suppress(StorageError):
        storage.put_absent(self._path(head.number + 1, head.generation), written.data)
    entry = self._next()
    if entry is None:
        raise StorageError("it is not there")
    self._folding.add(entry)
    return entry if entry.id == written.id else None


def _a_decision_is_kept(patch: Patch) -> None:
    def decide(self: Log, decision: Callable[[Fold], Decision | None], at: datetime) -> Entry | None:
        self.read()
        if self.head.number == 0:
            self._put(entries.Opened(party=self.party, campaign=self.campaign), at)
        wanted = decision(self.fold)
        while wanted is not None:
            if (entry := self._put(wanted, at)) is not None:
                return entry
            self.read()
        return None

    patch.setattr(Log, "decide", decide)
    patch.setattr(Log, "_put", _unchecked)


def _an_answer_is_believed(patch: Patch) -> None:
    def put(self: Log, decision: Decision, at: datetime) -> Entry | None:
        answers = []
        put_absent = storage.put_absent

        def answered(path: str, data: bytes) -> bool:
            try:
                answers.append(put_absent(path, data))
            except StorageError:
                answers.append(False)
            return answers[-1]

        with Patch.context() as inner:
            inner.setattr(storage, "put_absent", answered)
            entry = _unchecked(self, decision, at)
        return entry if answers[-1] else None

    patch.setattr(Log, "_put", put)


def _an_attempt_is_an_output_before_done(patch: Patch) -> None:
    real = advancing.carry_out

    def carry_out(tried: Sequence[attempts.Attempt]) -> Generator[Outcome, None, None]:
        with closing(real(tried)) as carried:
            for one, made in zip(tried, carried, strict=True):
                out, attempt = one.task.output(one.hop), one.directory
                for path in storage.list_objects(attempt):
                    folder = storage.join(out, attempt.rpartition("/")[2])
                    storage.copy(path, storage.join(folder, storage.relative(path, attempt)))
                if isinstance(made.summary, HopSummary):
                    storage.write_json(storage.join(out, SUMMARY), made.summary.data())
                yield made

    patch.setattr(advancing, "carry_out", carry_out)
    # Nor is it strange that an output has no entry.
    patch.setattr(looking, "missing_of", lambda *_: Missing())
    patch.setattr(run, "publish_missing", lambda *_: [])


def _a_summary_is_written_once(patch: Patch) -> None:
    patch.setattr(run, "publish_missing", lambda *_: [])


def _a_hop_may_be_done_twice(patch: Patch) -> None:
    real = folding.Effects._finish

    def finish(self: folding.Effects, finished: Finished, at: datetime, here: Head) -> None:
        self._done.get(finished.batch, {}).pop(finished.hop, None)
        real(self, finished, at, here)

    patch.setattr(folding.Effects, "_finish", finish)
    patch.setattr(advancing, "_finished", lambda finished, fold: finished)


def _all_attempts_have_one_folder(patch: Patch) -> None:
    patch.setattr(publishing, "new_folder", lambda: "0123456789abcdef")


def _what_is_given_back_is_nowhere(patch: Patch) -> None:
    real = folding.Effects._give_back

    def give_back(self: folding.Effects, name: str, streams: Iterable[Stream]) -> None:
        waiting = dict(self._waiting)
        real(self, name, streams)
        self._waiting = waiting

    patch.setattr(folding.Effects, "_give_back", give_back)


def _a_ledger_is_believed(patch: Patch) -> None:
    for module in (run, advancing):
        patch.setattr(module, "charge_lacking", lambda *_: [])


def _a_log_is_believed(patch: Patch) -> None:
    patch.setattr(looking, "missing_of", lambda *_: Missing())


def _a_new_log_takes_in_what_the_lost_one_may_have_counted(patch: Patch) -> None:
    real = folding.Effects._restore

    def restore(self: folding.Effects, restored: Restored, at: datetime, here: Head) -> None:
        before = dict(self._dropped)
        real(self, restored, at, here)
        for manifest in restored.manifests:
            self._waiting |= {one.path: one for one in segments_of(manifest.path, manifest)}
        self._dropped = before

    patch.setattr(folding.Effects, "_restore", restore)


def _any_ledger_is_charged_in(patch: Patch) -> None:
    for module in (ledger_check, run):
        patch.setattr(module, "require_named", lambda *_: None)


def _a_deletion_is_not_announced(patch: Patch) -> None:
    def delete_old(
        logs: Logs, deployment: Deployment, epochs: Epochs, listed: datetime | None, now: datetime
    ) -> Iterator[str]:
        campaign = epochs.campaign
        for old in retention._old(deployment, epochs, logs.read(campaign), listed, now):
            for name in old.batches if old.what == old.hop.folder else ():
                publishing.withdraw(deployment.folder(old.hop.folder, campaign, name))
                yield f"{campaign}/{name} {old.what}"
            for step in (retention._deleting, retention._deleted):
                logs.of(old.hop.party, campaign).decide(partial(step, old), now)

    patch.setattr(run, "delete_old", delete_old)


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


def _a_release_is_drawn_anew(patch: Patch) -> None:
    patch.setattr(keep._Drawing, "_key", lambda *_: urandom(32))
    # Nor is a draw found again that was kept under another name of the ledger.
    for module in (file, draws):
        patch.setattr(module, "resolved", lambda path: path)
    patch.setattr(charging, "require_same_draw", lambda path, charge, draw: None)


def _keys_are_read_by_the_hop_that_needs_them(patch: Patch) -> None:
    patch.setattr(attempts, "require_keys", lambda *_: None)


MENDS: tuple[Mend, ...] = (
    Mend("who finds another's entry decides anew", ("two runs",), _a_decision_is_kept),
    Mend("an entry is known by its id, not by an answer", ("no answer",), _an_answer_is_believed),
    Mend("an attempt is no output before its entry", ("kill",), _an_attempt_is_an_output_before_done),
    Mend("a summary that is missing is written again", ("delete", "kill"), _a_summary_is_written_once),
    Mend("a hop is done once", ("two runs",), _a_hop_may_be_done_twice),
    Mend("each attempt has a folder of its own", ("two runs",), _all_attempts_have_one_folder),
    Mend("what is given back waits again", ("harm in a run",), _what_is_given_back_is_nowhere),
    Mend("a ledger takes in what the log says was charged", ("ledger",), _a_ledger_is_believed),
    Mend("a ledger is the one that the log names", ("ledger",), _any_ledger_is_charged_in),
    Mend("a log that lacks entries stops its campaign", ("logs",), _a_log_is_believed),
    Mend(
        "a new log gives up what the lost one may have counted",
        ("logs",),
        _a_new_log_takes_in_what_the_lost_one_may_have_counted,
    ),
    Mend("retention waits for receipts", ("receipt late",), windows.retention_waits_for_nobody),
    Mend("a deletion is announced", ("killed deletion",), _a_deletion_is_not_announced),
    Mend("the ledger has a time of its own", ("limit",), _a_future_period_begins_when_it_was_set),
    Mend("keys are read before the first hop", ("key",), _keys_are_read_by_the_hop_that_needs_them),
    Mend("the draw of a release follows from its input", ("other name",), _a_release_is_drawn_anew),
    Mend("nothing final is done by a clock far ahead", ("clock",), windows.a_run_works_by_its_clock),
    Mend("a collector's own stamp is no witness", ("collector's clock",), windows.any_stamp_is_believed),
    Mend("a store's clock decides nothing alone", ("store's clock",), windows.a_store_is_believed),
    Mend(
        "a stamp that is to come is not late", ("store's clock", "collector's clock"), windows.a_stamp_to_come_is_late
    ),
    Mend("a changed length begins where the running window ends", ("length",), windows.a_change_begins_at_once),
    Mend("a lowered grace holds for later windows only", ("grace",), windows.the_newest_grace_holds),
    Mend("a window of another length is taken in", ("length",), windows.a_window_of_another_length_is_refused),
    Mend("what at_most deletes is shown", ("receipt never",), windows.what_at_most_deletes_is_silent),
    Mend("what is handed on waits for at_most", ("receipt never",), windows.at_most_counts_from_the_window),
)
