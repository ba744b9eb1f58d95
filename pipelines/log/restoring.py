"""hushcount run --log-was-restored: begin a new log that says what the old one lacks, and gives up what is not known.

What others may have read is taken up from its summary, and nothing of it is made anew. Every segment whose fate the
lost entries may have decided is given up by name: nobody can know whether it was counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from hushcount.collection.windows import Window
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.handover.hops import HopName, output_of
from pipelines.ledger.stated_charges import noted
from pipelines.log.entries import Adopted, Held, Opened, Restored, TakenManifest, whole_second
from pipelines.log.log import Log
from pipelines.log.witnesses import Missing
from pipelines.outputs.received_summary import COUNTED, read_summary
from pipelines.outputs.staging import SUMMARY


def replace_log(
    deployment: Deployment,
    log: Log,
    missing: Missing,
    manifests: Iterable[TakenManifest],
    named: Callable[[str], Window],
    now: datetime,
) -> str | None:
    """Begin a new log in place of one that lacks entries; return a sentence on what it gives up, or None: another did.

    No run may be at work: one of before would go on with the old log.

    Args:
        manifests: that no closed window has taken in, if the party reads any.
        named: returns the window of a name.

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
        manifests=tuple(one for one in manifests if one.path not in files),
        adopted=tuple(_adopted(deployment, log, hop, name, named) for hop, name in missing.outputs),
        held=tuple(
            Held(batch=name, hop=hop, seconds=_seconds(log, name, named), summary=digest)
            for (hop, name), digest in sorted(missing.held.items())
        ),
    )
    if log.replace(Opened(party=log.party, campaign=log.campaign, restored=restored), now) is None:
        return None
    given_up = [one for path, one in log.fold.dropped.items() if path not in before]
    return (
        f"{log.campaign}: a new log of {log.party} begins after entry {head.number}, and lacks what came until entry "
        f"{lost}; {sum(one.reports for one in given_up):,} reports of {len(given_up):,} segments are given up, and "
        f"{len(missing.outputs) + len(missing.held):,} outputs taken up as others may have read them"
    )


def _adopted(deployment: Deployment, log: Log, hop: HopName, name: str, named: Callable[[str], Window]) -> Adopted:
    path = storage.join(output_of(deployment, hop, log.fold.named(name)), SUMMARY)
    summary, data = read_summary(path), storage.read_json(path)
    # A log of years adopts thousands: no more of them than is kept.
    kept = {field: data[field] for field in COUNTED if field in data} | {"made_from": summary.made_from}
    return Adopted(
        batch=name,
        hop=hop,
        seconds=_seconds(log, name, named),
        folder=summary.folder or "",
        digest=summary.digest(),
        summary=kept | (noted(data) or {}),
    )


def _seconds(log: Log, name: str, named: Callable[[str], Window]) -> int:
    """Return how long the window of a batch of the lost entries is taken to be: as what is left of the log says."""
    window = named(log.fold.named(name).window)
    return int(window.length.total_seconds())
