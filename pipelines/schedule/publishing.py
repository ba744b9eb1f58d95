"""Move an attempt to its output after its `done` entry is in the log; any run can continue what another run began.

The files of an attempt are in `attempts/PARTY/CAMPAIGN/BATCH.HOP/FOLDER`. After the `done` entry, the attempt's table
of estimates moves to the data set (docs/adr/0047), and its other files move to `OUTPUT/FOLDER`, the summary last. Then
the output's summary.json is written, which names the log entry, and shows readers that the output is complete.
"""

from __future__ import annotations

import errno
from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime

from hushcount.errors import HushcountError
from hushcount.results import TABLE
from pipelines.deployment.settings import Deployment, Party
from pipelines.files import storage
from pipelines.files.moving import move_directory, move_file
from pipelines.handover.hops import CHAIN, HopName, output_of, table_of
from pipelines.handover.parties import signer_of
from pipelines.handover.paths import Batch
from pipelines.log.entries import Finished, Gone
from pipelines.log.fold import Fold
from pipelines.log.folding import published
from pipelines.log.log import Log
from pipelines.outputs.staging import SUMMARY, new_folder


def new_attempt(deployment: Deployment, party: Party, batch: Batch, hop: HopName) -> str:
    """Return the path of a new attempt's directory, without making it."""
    return storage.join(_attempts(deployment, party, batch, hop), new_folder())


def _attempts(deployment: Deployment, party: Party, batch: Batch, hop: HopName) -> str:
    return deployment.folder("attempts", party, batch.campaign, f"{batch.name}.{hop}")


def publish(deployment: Deployment, log: Log, batch: Batch, hop: HopName, at: datetime) -> bool:
    """Move the output of a done hop to the folder where its readers look; return whether the output's files are there.

    Any number of runs may call this function at any time, because all of them move and write the same files.
    """
    done = log.read().hops_of(batch.name).get(hop)
    if done is None:
        raise HushcountError(f"the log of {log.party} was restored while {hop} ran: run again")
    if done.folder is None or done.gone or log.fold.is_deleting(CHAIN[hop].folder, batch.name):
        return True
    out = output_of(deployment, hop, batch)
    target = storage.join(out, done.folder)
    attempts = _attempts(deployment, log.party, batch, hop)
    attempt = storage.join(attempts, done.folder)
    if hop == "analyze":
        move_file(storage.join(attempt, TABLE), table_of(deployment, batch))
    move_directory(attempt, target, SUMMARY)
    if not storage.exists(storage.join(target, SUMMARY)):
        log.decide(lambda fold: _gone(fold, batch, hop), at)
        return False
    decision = log.entry(done.entry).decision
    if isinstance(decision, Finished) and decision.summary is not None:
        summary = storage.json_bytes(published(decision.summary, done.entry))
        role = CHAIN[hop].signer
        signer = None if role is None or "files" not in decision.summary else signer_of(deployment.sign_with, role)
        if signer is not None:
            # The import is here, because a shuffler that does not sign runs without the package `keys`.
            from pipelines.handover.signed import sign

            sign(target, summary, signer)
        storage.write_whole(storage.join(out, SUMMARY), [summary])
        if log.read().is_deleting(CHAIN[hop].folder, batch.name):
            # Another run deleted the output while this run was suspended, so the files just written are deleted too.
            withdraw(out)
    # No other attempt can become the output any more, so all attempts are removed.
    _remove(attempts)
    return True


def _remove(attempts: str) -> None:
    try:
        storage.remove_directory(attempts)
    except OSError as error:
        # Another run still writes its own attempt and removes it later, or an abandoned streaming job still writes.
        if error.errno != errno.ENOTEMPTY:
            raise


def withdraw(out: str) -> None:
    """Delete an output, its summary first, so that a party that looks for batches never finds a half-deleted output."""
    if storage.exists(mark := storage.join(out, SUMMARY)):
        storage.remove(mark)
    storage.remove_directory(out)


def withdraw_deleted(deployment: Deployment, log: Log, there: Mapping[HopName, Collection[str]]) -> None:
    """Delete outputs that a suspended run wrote again after retention had deleted them.

    Args:
        there: the names of batches with an output in the store, by hop.
    """
    for hop, names in there.items():
        for name in names:
            if log.fold.deleted.get(f"{CHAIN[hop].folder} {name}"):
                withdraw(output_of(deployment, hop, log.fold.named(name)))


def attempts_of(deployment: Deployment, party: Party) -> dict[str, set[str]]:
    """Return the names of the folders of a party's attempts, BATCH.HOP, by campaign."""
    root, found = deployment.folder("attempts", party), defaultdict[str, set[str]](set)
    for path in storage.list_objects(root):
        campaign, folder, *_ = f"{storage.relative(path, root)}/".split("/")
        found[campaign].add(folder)
    return found


def sweep(deployment: Deployment, log: Log, fold: Fold, folders: Collection[str]) -> None:
    """Remove attempts that cannot become outputs, because their hop is published, or their batch was given back.

    Args:
        fold: the fold of the log when `publish_missing` began. Hops that were done later are left out, because another
            run may still publish them.
        folders: the folders of the party's attempts in the campaign.
    """
    root = deployment.folder("attempts", log.party, log.campaign)
    for folder in sorted(folders):
        name, _, hop = folder.rpartition(".")
        made = fold.batches.get(name)
        if hop in fold.hops_of(name) or (made is not None and made.given_back):
            _remove(storage.join(root, folder))


def publish_missing(deployment: Deployment, log: Log, batches: set[str], at: datetime) -> list[str]:
    """Publish outputs of done hops that lack their summary; return a sentence for each output with missing files.

    Args:
        batches: names of the batches with outputs that may lack their summary.
    """
    problems = []
    for name in sorted(batches):
        batch = log.fold.named(name)
        for hop, done in log.fold.hops_of(name).items():
            mark = storage.join(output_of(deployment, hop, batch), SUMMARY)
            if done.folder is not None and not storage.exists(mark) and not publish(deployment, log, batch, hop, at):
                problems.append(
                    f"{log.campaign}/{name}: what {hop} wrote is gone, and nobody here deleted it: restore "
                    f"{output_of(deployment, hop, batch)}"
                )
    return problems


def _gone(fold: Fold, batch: Batch, hop: HopName) -> Gone | None:
    done = fold.hops_of(batch.name)[hop]
    return None if done.gone or fold.is_deleting(CHAIN[hop].folder, batch.name) else Gone(batch=batch.name, hop=hop)
