"""The jobs of one batch, in their order, and the file that says which segments it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from sqlalchemy import Engine as Database

from hushcount.campaign import Campaign
from hushcount.public_keys import VerifyKeyPart
from hushcount.windows import named_window
from pipelines import batches, storage
from pipelines.batch_file import SUFFIX, BatchFile, BatchSegment, fault_of
from pipelines.batches import Batch
from pipelines.deployment import Deployment
from pipelines.runner import Engine
from pipelines.staging import SUMMARY
from pipelines.summary import Summary

Job = Callable[[], Summary | None]


def hops_of(
    state: Database, deployment: Deployment, campaign: Campaign, path: Path, batch: Batch, console: Console | None
) -> Iterator[tuple[str, Callable[[], Summary | None]]]:
    """Yield the hops that run here in their order, each with its job; None from a job: its input is not there yet."""
    where = {
        name: deployment.folder(name, batch.campaign, batch.name)
        for name in ("shuffled", "released", "found", "results")
    }
    engine = Engine(deployment.file.engine.runner, tuple(deployment.file.engine.options))
    keys, ledger, parties = deployment.keys, deployment.ledger, deployment.file.parties
    signer = None
    if "shuffler" in parties and deployment.sign_with is not None:
        from keys.store import active_key

        signer = active_key(deployment.sign_with, "shuffler")
    trusted = deployment.shuffler_keys
    signed_by: tuple[VerifyKeyPart, ...] = ()
    if trusted is not None:
        from keys.store import verify_keys

        signed_by = verify_keys(trusted, "shuffler")

    # A party's image holds its own packages only: what another party's job needs is imported when that job runs.

    def shuffled() -> Summary:
        from pipelines.shuffle import shuffle

        source = _write_batch(state, deployment, campaign, batch)
        return shuffle(path, source, where["shuffled"], signer=signer, engine=engine, console=console)

    def released() -> Summary:
        from pipelines.discover import discover

        return discover(
            path,
            where["shuffled"],
            keys,
            where["released"],
            party="aux-server",
            signed_by=signed_by,
            ledger=ledger,
            engine=engine,
            console=console,
        )

    def found() -> Summary:
        from pipelines.discover import discover

        return discover(path, where["released"], keys, where["found"], party="analyzer", ledger=ledger, engine=engine)

    def analyzed() -> Summary:
        from pipelines.analyze import analyze

        with_found = where["found"] if campaign.discovery is not None else None
        return analyze(
            path,
            where["shuffled"],
            keys,
            where["results"],
            found=with_found,
            signed_by=signed_by,
            ledger=ledger,
            engine=engine,
            console=console,
        )

    chain = [("shuffler", "shuffle", batch_path(deployment, batch), "shuffled", shuffled)]
    if campaign.discovery is not None:
        chain.append(("aux-server", "release", storage.join(where["shuffled"], SUMMARY), "released", released))
        chain.append(("analyzer", "discover", storage.join(where["released"], SUMMARY), "found", found))
    if campaign.mechanism is not None:
        needs = where["found"] if campaign.discovery is not None else where["shuffled"]
        chain.append(("analyzer", "analyze", storage.join(needs, SUMMARY), "results", analyzed))
    for party, hop, needed, output, job in chain:
        if party in parties:
            yield hop, _unless_done(where[output], None if hop == "shuffle" else needed, job)


def _unless_done(out: str, needed: str | None, job: Callable[[], Summary]) -> Callable[[], Summary | None]:
    def step() -> Summary | None:
        mark = storage.join(out, SUMMARY)
        if storage.exists(mark):
            # It was finished, and the run killed before it could say so.
            return storage.read_json(mark)
        return job() if needed is None or storage.exists(needed) else None

    return step


def batch_path(deployment: Deployment, batch: Batch) -> str:
    """Return where the file of a batch lies."""
    return deployment.folder("batches", batch.campaign, f"{batch.name}{SUFFIX}")


def _write_batch(state: Database, deployment: Deployment, campaign: Campaign, batch: Batch) -> str:
    """Check every segment against its manifest, put those aside that fail, and write the file of the batch."""
    root = deployment.folder("segments")
    with state.begin() as connection:
        segments = batches.segments_of(connection, batch)
    for segment in segments:
        fault = fault_of(storage.join(root, *segment.path.split("/")), segment.bytes, segment.digest)
        if fault is not None:
            with state.begin() as connection:
                batches.quarantine(connection, segment.path, fault)
    with state.begin() as connection:
        segments = batches.segments_of(connection, batch)
    file = BatchFile(
        campaign=batch.campaign,
        epoch=batch.epoch,
        fingerprint=campaign.fingerprint.hex(),
        window=batch.window,
        segments_folder=root,
        shuffled_folder=deployment.folder("shuffled", batch.campaign),
        earlier=_earlier(state, deployment, batch),
        segments={
            stream: tuple(
                BatchSegment(
                    path=segment.path,
                    window=segment.window,
                    records=segment.records,
                    bytes=segment.bytes,
                    digest=segment.digest,
                )
                for segment in segments
                if segment.stream == stream
            )
            for stream in campaign.streams
        },
    )
    path = batch_path(deployment, batch)
    storage.write_json(path, file.model_dump(mode="json"))
    return path


def _earlier(state: Database, deployment: Deployment, batch: Batch) -> tuple[str, ...]:
    """Return the batches of the same campaign file whose reports may come a second time: those within the grace period.

    A client that has no answer sends its report again, and the window may have ended in between.
    """
    windows = deployment.windows
    start = named_window(batch.window, windows.length).start
    with state.begin() as connection:
        made = batches.made_batches(connection, batch.campaign)
    return tuple(
        other.name
        for other in made
        if (other.epoch, other.fingerprint) == (batch.epoch, batch.fingerprint)
        and other.window < batch.window
        and named_window(other.window, windows.length).end + windows.grace >= start
        and storage.exists(deployment.folder("shuffled", batch.campaign, other.name, SUMMARY))
    )
