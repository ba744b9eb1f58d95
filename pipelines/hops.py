"""The jobs of one batch, in their order, and the file that says which segments it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from sqlalchemy import Engine as Database

from hushcount.campaign import Campaign, Stream
from hushcount.public_keys import VerifyKeyPart
from pipelines import batches, storage
from pipelines.batch_file import SUFFIX, BatchFile, BatchSegment, fault_of
from pipelines.batches import Batch
from pipelines.deployment import Deployment, Party
from pipelines.runner import Engine
from pipelines.staging import SUMMARY, sweep
from pipelines.summary import Summary

if TYPE_CHECKING:
    from keys.store import KeyReference

Job = Callable[[], Summary | None]
"""Runs a hop, or takes up what it left when it was complete; None: its input is not there yet."""


def hops_of(
    state: Database, deployment: Deployment, campaign: Campaign, path: Path, batch: Batch, console: Console | None
) -> Iterator[tuple[str, Job]]:
    """Yield the hops that run here in their order, each with its job.

    A party's image holds its own packages only, so that what a job needs of others' is imported when that job runs.
    """
    where = {
        name: deployment.folder(name, batch.campaign, batch.name)
        for name in ("shuffled", "released", "found", "results")
    }
    engine = Engine(deployment.file.engine.runner, deployment.file.engine.options)
    keys, ledger = deployment.keys, deployment.ledger

    def shuffled() -> Summary:
        from pipelines.shuffle import shuffle

        source = _write_batch(state, deployment, campaign, batch)
        return shuffle(path, source, where["shuffled"], signer=_signer(deployment), engine=engine, console=console)

    def released() -> Summary:
        from pipelines.discover import discover

        return discover(
            path,
            where["shuffled"],
            keys,
            where["released"],
            party="aux-server",
            signed_by=_trusted(deployment),
            ledger=ledger,
            engine=engine,
            console=console,
        )

    def found() -> Summary:
        from pipelines.discover import discover

        return discover(path, where["released"], keys, where["found"], party="analyzer", ledger=ledger, engine=engine)

    def analyzed() -> Summary:
        from pipelines.analyze import analyze

        return analyze(
            path,
            where["shuffled"],
            keys,
            where["results"],
            found=where["found"] if campaign.discovery is not None else None,
            signed_by=_trusted(deployment),
            ledger=ledger,
            engine=engine,
            console=console,
        )

    chain: list[tuple[Party, str, str | None, str, Callable[[], Summary]]] = [
        ("shuffler", "shuffle", None, "shuffled", shuffled)
    ]
    if campaign.discovery is not None:
        chain.append(("aux-server", "release", "shuffled", "released", released))
        chain.append(("analyzer", "discover", "released", "found", found))
    if campaign.mechanism is not None:
        needed = "found" if campaign.discovery is not None else "shuffled"
        chain.append(("analyzer", "analyze", needed, "results", analyzed))
    for party, hop, before, output, job in chain:
        if party in deployment.file.parties:
            yield hop, _unless_done(where[output], None if before is None else where[before], job, engine)


def _unless_done(out: str, before: str | None, job: Callable[[], Summary], engine: Engine) -> Job:
    def step() -> Summary | None:
        mark = storage.join(out, SUMMARY)
        if storage.exists(mark):
            # It was finished, and the run killed before it could say so.
            return storage.read_json(mark)
        if before is not None and not storage.exists(storage.join(before, SUMMARY)):
            return None
        # One run works on a state at a time, and the embedded engine ends with its process. Another engine may go on
        # with a job whose run was killed: what it writes to a store is not cleared away under it.
        if engine.embedded or not storage.is_remote(out):
            sweep(out)
        return job()

    return step


def _signer(deployment: Deployment) -> KeyReference | None:
    """Return the key that the shuffler signs with, if it is to sign."""
    if deployment.sign_with is None:
        return None
    from keys.store import active_key

    return active_key(deployment.sign_with, "shuffler")


def _trusted(deployment: Deployment) -> tuple[VerifyKeyPart, ...]:
    """Return the shuffler's public keys, by one of which its output must be signed; none: it is not looked at."""
    if deployment.shuffler_keys is None:
        return ()
    from keys.store import verify_keys

    return verify_keys(deployment.shuffler_keys, "shuffler")


def batch_path(deployment: Deployment, batch: Batch) -> str:
    """Return where the file of a batch lies."""
    return deployment.folder("batches", batch.campaign, f"{batch.name}{SUFFIX}")


def _write_batch(state: Database, deployment: Deployment, campaign: Campaign, batch: Batch) -> str:
    """Check every segment against its manifest, put those aside that fail, and write the file of the batch."""
    root = deployment.folder("segments")
    with state.begin() as connection:
        found = batches.segments_of(connection, batch)
    good: dict[Stream, tuple[BatchSegment, ...]] = {}
    for stream in campaign.streams:
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
    storage.write_json(path, file.model_dump(mode="json"))
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
    mine = windows[batch.window]
    return tuple(
        other.name
        for other in made
        if (other.epoch, other.fingerprint) == (batch.epoch, batch.fingerprint)
        and other.window != batch.window
        and windows[other.window].end + grace >= mine.start
        and mine.end + grace >= windows[other.window].start
        and storage.exists(deployment.folder("shuffled", batch.campaign, other.name, SUMMARY))
    )
