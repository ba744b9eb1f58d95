"""The input of a run's decisions: the logs, the stored segments, and the files that prove that entries were lost.

With hushcount run --log-was-restored, a run begins a new log that states what the old log lacks. The new log adopts,
from its summary, every output that others may have read, so that this output is not made again. The new log gives up,
by name, every segment that the lost entries may have decided on, because nobody can know whether that segment was
counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from hushcount.errors import HushcountError
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment, Party
from pipelines.files import storage
from pipelines.files.storage_errors import told
from pipelines.handover.hops import HopName, output_of
from pipelines.ledger.stated_charges import noted
from pipelines.log.entries import Adopted, Held, Opened, Restored, whole_second
from pipelines.log.fold import Fold
from pipelines.log.log import Log, Logs
from pipelines.log.witnesses import Beside, Missing, beside_logs, missing_of
from pipelines.outputs.received_summary import COUNTED, read_summary
from pipelines.outputs.staging import SUMMARY
from pipelines.schedule.done import Done
from pipelines.schedule.work import Vouched
from pipelines.windows.closing import Listed
from pipelines.windows.intake import intake_of, taken_in
from pipelines.windows.rules import calendar_of
from pipelines.windows.stored import Stored, stored_files


def looked(
    deployment: Deployment, logs: Logs, campaigns: Sequence[Epochs], done: Done
) -> tuple[list[Epochs], dict[str, tuple[Listed, ...]], Stored]:
    """Read the logs and list the segments.

    Return the campaigns that could be read without an error, their new manifests, and all files.
    """
    folds: dict[str, Fold] = {}
    listed: dict[str, tuple[Listed, ...]] = {}
    for campaign in (epochs.campaign for epochs in campaigns):
        try:
            folds[campaign] = logs.read(campaign)
        except Exception as error:
            done.problems.append(f"{campaign}: {told(error)}")
    if "shuffler" not in deployment.file.parties:
        return [epochs for epochs in campaigns if epochs.campaign in folds], {}, {}
    stored = stored_files(deployment)
    for campaign, fold in folds.items():
        try:
            intake = intake_of(deployment, fold, stored.get(campaign, ()))
            done.problems += intake.problems
            listed[campaign] = intake.listed
        except Exception as error:
            done.problems.append(f"{campaign}: {told(error)}")
    return [epochs for epochs in campaigns if epochs.campaign in listed], listed, stored


def whole(
    deployment: Deployment,
    logs: Logs,
    vouched: Vouched,
    campaigns: Sequence[Epochs],
    listed: dict[str, tuple[Listed, ...]],
    present: datetime,
    done: Done,
) -> dict[str, dict[Party, Beside]]:
    """Return the files beside the logs, by campaign and party, if no log lacks an entry that these files name.

    Logs that lack such entries are replaced if the operator says that the entries are lost; otherwise the campaign is
    left out.
    """
    names, found = [epochs.campaign for epochs in campaigns], dict[str, dict[Party, Beside]]()
    there = {party: beside_logs(deployment, party, names) for party in deployment.file.parties}
    for campaign in names:
        try:
            for log in [logs.of(party, campaign) for party in deployment.file.parties]:
                while missing := missing_of(deployment, log, there[log.party][campaign]):
                    if not vouched.log_was_restored:
                        raise HushcountError(missing.says(log))
                    manifests = listed.get(campaign, ()) if log.party == "shuffler" else ()
                    if (said := replace_log(deployment, log, missing, manifests, present)) is not None:
                        done.dropped.append(said)
            found[campaign] = {party: beside[campaign] for party, beside in there.items()}
        except Exception as error:
            done.stopped.append(campaign)
            done.problems.append(f"{campaign}: {told(error)}")
    return found


def replace_log(
    deployment: Deployment, log: Log, missing: Missing, listed: Sequence[Listed], now: datetime
) -> str | None:
    """Replace a log that lacks entries with a new log.

    Return a sentence on the new log, or None if another run made it. No other run may be at work meanwhile, because
    that run would continue with the old log.

    Args:
        listed: the manifests that no closed window has taken, if the party reads any.

    Raises:
        HushcountError, OSError: the summary of an output cannot be read.
    """
    head = log.head
    lost = max([head.number, *(entry.number for _, entry in missing.entries if entry.generation == head.generation)])
    before, files = set(log.fold.dropped), log.fold.files
    restored = Restored(
        generation=head.generation,
        number=head.number,
        entry=head.digest,
        lost=lost,
        through=whole_second(now),
        manifests=tuple(taken_in(one) for one in listed if one.path not in files),
        adopted=tuple(_adopted(deployment, log, hop, name) for hop, name in missing.outputs),
        held=tuple(
            Held(batch=name, hop=hop, seconds=_seconds(deployment, log, name), summary=digest)
            for (hop, name), digest in sorted(missing.held.items())
        ),
    )
    if log.replace(Opened(party=log.party, campaign=log.campaign, restored=restored), now) is None:
        return None
    given_up = [one for path, one in log.fold.dropped.items() if path not in before]
    return (
        f"{log.campaign}: a new log of {log.party} begins after entry {head.number}, and lacks later entries up to "
        f"{lost}; {sum(one.reports for one in given_up):,} reports of {len(given_up):,} segments are given up, and "
        f"{len(missing.outputs) + len(missing.held):,} outputs are adopted, because others may have read them"
    )


def _adopted(deployment: Deployment, log: Log, hop: HopName, name: str) -> Adopted:
    path = storage.join(output_of(deployment, hop, log.fold.named(name)), SUMMARY)
    summary, data = read_summary(path), storage.read_json(path)
    # A log of years adopts thousands of summaries, so the entry keeps only those fields that are used.
    kept = {field: data[field] for field in COUNTED if field in data} | {"made_from": summary.made_from}
    return Adopted(
        batch=name,
        hop=hop,
        seconds=_seconds(deployment, log, name),
        folder=summary.folder or "",
        digest=summary.digest(),
        summary=kept | (noted(data) or {}),
    )


def _seconds(deployment: Deployment, log: Log, name: str) -> int:
    """Return the length, in seconds, of the window of a lost entry's batch, by the calendar of the remaining log."""
    window = calendar_of(deployment, log.fold).named(log.fold.named(name).window)
    return int(window.length.total_seconds())
