"""The jobs of one batch, in their order, and the file that says which segments it has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from sqlalchemy import Engine as Database
from sqlalchemy import select

from hushcount.campaign import Campaign, Stream
from hushcount.errors import TooFewOpened
from hushcount.public_keys import VerifyKeyPart
from hushcount.reading import LISTING_BYTES
from pipelines import batches, storage
from pipelines.batch_file import SUFFIX, BatchFile, BatchSegment, fault_of
from pipelines.batches import Batch
from pipelines.deployment import Deployment, Party
from pipelines.handover import hand_on
from pipelines.lock import writer_of
from pipelines.outputs import folder_of
from pipelines.runner import Engine
from pipelines.signing_keys import signer_of, verified_by
from pipelines.staging import SUMMARY, Writer, staged, sweep
from pipelines.state import DELETED
from pipelines.summary import Summary
from pipelines.summary_file import read_summary
from pipelines.upstream import read_upstream

if TYPE_CHECKING:
    from keys.roles import SigningRole

Job = Callable[[], Summary | None]
"""Runs a hop, or takes up what it left when it was complete; None: its input is not there yet."""


OUTPUTS: Mapping[str, tuple[Party, str]] = {
    "shuffle": ("shuffler", "shuffled"),
    "release": ("aux-server", "released"),
    "discover": ("analyzer", "found"),
    "analyze": ("analyzer", "results"),
}
"""The hops in their order: whose job each is, and the folder that it writes."""
READERS: Mapping[Stream, str] = {"discovery": "release", "reports": "analyze"}
"""Which hop reads what the shuffler handed on of a stream."""
_STREAM_OF: Mapping[str, Stream] = {"release": "discovery", "discover": "discovery", "analyze": "reports"}
"""Of which stream a batch must be for a hop to have anything to do."""


def hop_names(campaign: Campaign, parties: Container[Party]) -> list[str]:
    """Return the hops of a campaign's batches that these parties run, in their order."""
    wanted = {"shuffle"}
    if campaign.discovery is not None:
        wanted |= {"release", "discover"}
    if campaign.mechanism is not None:
        wanted.add("analyze")
    return [hop for hop, (party, _) in OUTPUTS.items() if hop in wanted and party in parties]


def hops_of(
    state: Database,
    deployment: Deployment,
    campaign: Campaign,
    path: Path,
    batch: Batch,
    engine: Engine,
    console: Console | None,
    *,
    finished: Container[str] = (),
) -> Iterator[tuple[str, Job | None]]:
    """Yield the hops that run here and are not finished in their order, each with its job.

    A hop whose stream the batch does not have has no job: it is passed over. So each is yielded when the one before has
    run, because what the shuffler handed on says which streams there are.

    A party's image holds its own packages only, so that what a job needs of others' is imported when that job runs.
    """
    where = {name: deployment.folder(name, batch.campaign, batch.name) for _, name in OUTPUTS.values()}
    writer = writer_of(state)
    keys, ledger, uncapped = deployment.keys, deployment.ledger, deployment.file.uncapped_discovery
    # Collectors wrote its manifests: whatever the clock here says, its window has come.
    with state.begin() as connection:
        window = batches.known_windows(connection, batch.campaign).get(batch.window)
    known = None if window is None else window.start

    def shuffled() -> Summary:
        from pipelines.shuffle import shuffle

        source = _write_batch(state, deployment, campaign, batch)
        signer = signer_of(deployment.sign_with, "shuffler")
        return shuffle(path, source, where["shuffled"], signer=signer, writer=writer, engine=engine, console=console)

    def released() -> Summary:
        from pipelines.discover import discover

        return discover(
            path,
            where["shuffled"],
            keys,
            where["released"],
            party="aux-server",
            uncapped=uncapped,
            signed_by=trusted(deployment, "shuffler"),
            signer=signer_of(deployment.sign_with, "aux_signer"),
            ledger=ledger,
            known=known,
            writer=writer,
            engine=engine,
            console=console,
        )

    def found() -> Summary:
        from pipelines.discover import discover

        return discover(
            path,
            where["released"],
            keys,
            where["found"],
            party="analyzer",
            uncapped=uncapped,
            signed_by=trusted(deployment, "aux_signer"),
            ledger=ledger,
            known=known,
            writer=writer,
            engine=engine,
        )

    def analyzed() -> Summary:
        from pipelines.analyze import analyze
        from pipelines.results import FOUND

        return analyze(
            path,
            where["shuffled"],
            keys,
            where["results"],
            # A discovery of too few reports has a summary and no values.
            found=where["found"] if storage.exists(storage.join(folder_of(where["found"]), FOUND)) else None,
            signed_by=trusted(deployment, "shuffler"),
            ledger=ledger,
            known=known,
            writer=writer,
            engine=engine,
            console=console,
        )

    jobs = {"shuffle": shuffled, "release": released, "discover": found, "analyze": analyzed}
    for hop in hop_names(campaign, deployment.file.parties):
        if hop in finished:
            continue
        # None: the shuffler has not handed on anything yet.
        streams = None if hop == "shuffle" else streams_in(deployment, campaign, where["shuffled"])
        if streams is not None and _STREAM_OF[hop] not in streams:
            yield hop, None
            continue
        before = {"shuffle": None, "discover": where["released"]}.get(hop, where["shuffled"])
        if hop == "analyze" and "discovery" in (streams or ()):
            before = where["found"]
        yield hop, _unless_done(deployment, hop, where[OUTPUTS[hop][1]], before, jobs[hop], writer)


def streams_in(deployment: Deployment, campaign: Campaign, shuffled: str) -> Collection[str] | None:
    """Return the streams that the shuffler handed on of a batch; None: it is not there yet.

    Raises:
        UsageError: its summary is of something else.
        SignatureError: the shuffler did not sign it, though its keys are known.
    """
    if not storage.exists(storage.join(shuffled, SUMMARY)):
        return None
    summary = read_upstream(shuffled, "shuffle", campaign, trusted(deployment, "shuffler"))
    streams: dict[str, object] = summary["streams"]
    return streams


def _unless_done(
    deployment: Deployment, hop: str, out: str, before: str | None, job: Callable[[], Summary], writer: Writer
) -> Job:
    def step() -> Summary | None:
        mark = storage.join(out, SUMMARY)
        if storage.exists(mark):
            # It was finished, and the run killed before it could say so.
            return read_summary(mark)
        if before is not None and not storage.exists(storage.join(before, SUMMARY)):
            return None
        sweep(out, writer)
        try:
            return job()
        except TooFewOpened as few:
            with staged(out, False, writer) as directory:
                signer = signer_of(deployment.sign_with, "aux_signer") if hop == "release" else None
                hand_on(directory, out, ("bins",), few.summary, signer)
            return few.summary

    return step


def trusted(deployment: Deployment, role: SigningRole) -> tuple[VerifyKeyPart, ...]:
    """Return a party's public keys, one of which must have signed what it handed on; empty: this is not checked."""
    source = deployment.shuffler_keys if role == "shuffler" else deployment.aux_server_keys
    return verified_by(source, role)


def batch_path(deployment: Deployment, batch: Batch) -> str:
    """Return where the file of a batch lies."""
    return deployment.folder("batches", batch.campaign, f"{batch.name}{SUFFIX}")


def _write_batch(state: Database, deployment: Deployment, campaign: Campaign, batch: Batch) -> str:
    """Check every segment against its manifest, put those aside that fail, and write the file of the batch."""
    root = deployment.folder("segments")
    with state.begin() as connection:
        found = batches.segments_of(connection, batch)
    good: dict[Stream, tuple[BatchSegment, ...]] = {}
    for stream in (stream for stream in campaign.streams if stream in found):
        kept = []
        for segment in found[stream]:
            fault = fault_of(storage.join(root, *segment.path.split("/")), segment.bytes, segment.digest)
            if fault is None:
                kept.append(segment)
                continue
            with state.begin() as connection:
                batches.quarantine(connection, segment.path, fault)
        good[stream] = tuple(kept)
    file = BatchFile(
        campaign=batch.campaign,
        epoch=batch.epoch,
        fingerprint=campaign.fingerprint.hex(),
        window=batch.window,
        segments_folder=root,
        shuffled_folder=deployment.folder("shuffled", batch.campaign),
        earlier=_earlier(state, deployment, batch),
        segments=good,
    )
    path = batch_path(deployment, batch)
    storage.write_json(path, file.model_dump(mode="json"), LISTING_BYTES)
    return path


def _earlier(state: Database, deployment: Deployment, batch: Batch) -> tuple[str, ...]:
    """Return the batches of the same campaign file that were shuffled before, and of which this one may hold copies.

    A client that has no answer sends its report again, and the window may have ended in between. So it may be in a
    batch within the grace period: before this one or, if this one had to wait for something, after it.
    """
    grace = deployment.windows.grace
    with state.begin() as connection:
        made = batches.made_batches(connection, batch.campaign)
        windows = batches.known_windows(connection, batch.campaign)
        waited = [windows[part.window] for parts in batches.segments_of(connection, batch).values() for part in parts]
        gone = select(DELETED.c.batch).where(DELETED.c.campaign == batch.campaign, DELETED.c.folder == "shuffled")
        # One that is lost is named too: what cannot be compared must not be forwarded.
        there = batches.shuffled_batches(connection, batch.campaign) - set(connection.execute(gone).scalars())
    # What came late is compared as if it had come in time.
    start = min([window.start for window in waited], default=windows[batch.window].start)
    return tuple(
        other.name
        for other in made
        if (other.epoch, other.fingerprint) == (batch.epoch, batch.fingerprint)
        and other.window != batch.window
        and windows[other.window].end + grace >= start
        and windows[batch.window].end + grace >= windows[other.window].start
        and (other.name in there or storage.exists(deployment.folder("shuffled", batch.campaign, other.name, SUMMARY)))
    )
