"""The jobs of one batch, in their order: each is run where its output is not there yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from sqlalchemy import Engine as Database

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.collection.windows import window_start
from hushcount.errors import RetiredKey
from pipelines.batches import rows
from pipelines.batches.hops import CHAIN, hop_names, output_of
from pipelines.batches.lock import writer_of
from pipelines.batches.take_up import taken_up
from pipelines.batches.writing import write_batch
from pipelines.deployment.settings import Deployment
from pipelines.engine.runner import Engine
from pipelines.files import storage
from pipelines.handover.names import Batch
from pipelines.handover.parties import hand_on, signer_of, verified_by
from pipelines.handover.upstream import read_upstream
from pipelines.jobs.job import run as run_job
from pipelines.outputs.counts import HopCounts
from pipelines.outputs.minimum_batch import Withheld
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import SUMMARY, Output, Writer, staged, sweep
from pipelines.outputs.summary import HopSummary
from pipelines.schedule.hop_keys import require_keys

if TYPE_CHECKING:
    from keys.roles import SigningRole

Job = Callable[[], HopCounts | None]
"""Runs a hop, or takes up what it left when it was complete; None: its input is not there yet."""


def hops_of(
    state: Database,
    deployment: Deployment,
    campaign: Campaign,
    path: Path,
    batch: Batch,
    engine: Engine,
    console: Console | None,
) -> Iterator[tuple[str, Job | None]]:
    """Yield the hops that run here and are not finished in their order, each with its job.

    A hop whose stream the batch does not have has no job: it is passed over. So each is yielded when the one before has
    run, because what the shuffler handed on says which streams there are.

    A party's image holds its own packages only, so that what a job needs of others' is imported when that job runs.
    """
    where = {hop.folder: output_of(deployment, hop.name, batch) for hop in CHAIN.values()}
    writer = writer_of(state)
    keys, ledger, uncapped = deployment.keys, deployment.ledger, deployment.file.uncapped_discovery
    # A collector writes a manifest when its window has ended: whatever the clock here says, that has come.
    with state.begin() as connection:
        window = rows.known_windows(connection, batch.campaign).get(batch.window)
    # Who reads no manifests has it from the name of what was handed on.
    known = window_start(batch.window) + deployment.windows.length if window is None else window.end

    def shuffled(_: RetiredKey | None) -> HopSummary:
        from pipelines.jobs.shuffle import plan_shuffle

        source = write_batch(state, deployment, campaign, batch)
        signer = signer_of(deployment.sign_with, "shuffler")
        job = plan_shuffle(path, source, where["shuffled"], signer=signer, writer=writer)
        return run_job(job, engine, console)

    def released(retired: RetiredKey | None) -> HopSummary:
        from pipelines.handover.retired import RetiredBatch, account_retired
        from pipelines.jobs.discover import plan_discover

        signed_by, signer = trusted(deployment, "shuffler"), signer_of(deployment.sign_with, "aux_signer")
        if retired is not None:
            # The analyzer could not open what is released: nothing is, and nothing charged.
            source, out = where["shuffled"], where["released"]
            to = Output(out, writer=writer, signer=signer)
            account_retired(RetiredBatch(retired, campaign, "release", source, to, signed_by))
        job = plan_discover(
            path,
            where["shuffled"],
            keys,
            where["released"],
            party="aux-server",
            uncapped=uncapped,
            signed_by=signed_by,
            signer=signer,
            ledger=ledger,
            known=known,
            writer=writer,
        )
        return run_job(job, engine, console)

    def found(_: RetiredKey | None) -> HopSummary:
        from pipelines.jobs.discover import plan_discover

        job = plan_discover(
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
        )
        return run_job(job, engine)

    def analyzed(_: RetiredKey | None) -> HopSummary:
        from pipelines.jobs.analyze import plan_analyze
        from pipelines.jobs.results import FOUND

        job = plan_analyze(
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
        )
        return run_job(job, engine, console)

    jobs = {"shuffle": shuffled, "release": released, "discover": found, "analyze": analyzed}
    here = hop_names(campaign, deployment.file.parties)
    for hop in here:
        with state.begin() as connection:
            counted, held = rows.counts_of(connection, batch), rows.segments_of(connection, batch).keys()
        if hop in counted:
            continue
        # None: the shuffler has not handed on anything yet.
        streams = None if hop == "shuffle" else _streams_of(deployment, campaign, where["shuffled"], counted)
        if streams is not None and CHAIN[hop].stream not in streams:
            yield hop, None
            continue
        source = CHAIN[hop].input
        before = None if source is None else where[CHAIN[source].folder]
        if hop == "analyze" and "discovery" in (streams or ()):
            before = where["found"]
        wanted = held if streams is None else streams
        left = [
            one for one in here[here.index(hop) :] if one == hop or (one not in counted and CHAIN[one].stream in wanted)
        ]
        done = partial(taken_up, deployment, campaign, batch, hop, here, counted)
        needs = partial(require_keys, deployment, campaign, left)
        yield hop, partial(_step, deployment, hop, where[CHAIN[hop].folder], before, done, needs, jobs[hop], writer)


def _step(
    deployment: Deployment,
    hop: str,
    out: str,
    before: str | None,
    done: Job,
    needs: Callable[[], RetiredKey | None],
    job: Callable[[RetiredKey | None], HopSummary],
    writer: Writer,
) -> HopCounts | None:
    """Take up what a hop left, or run it if its input and all keys are there that it and the later hops need here."""
    counted = done()
    if counted is not None or (before is not None and not storage.exists(storage.join(before, SUMMARY))):
        return counted
    retired = needs()
    sweep(out, writer)
    try:
        return job(retired)
    except Withheld as few:
        with staged(out, False, writer) as directory:
            signer = signer_of(deployment.sign_with, "aux_signer") if hop == "release" else None
            return hand_on(directory, out, ("bins",), few.summary, signer)


def _streams_of(
    deployment: Deployment, campaign: Campaign, shuffled: str, known: Mapping[str, HopCounts]
) -> Collection[str] | None:
    """Return the streams that the shuffler handed on of a batch; None: it is not there yet.

    Raises:
        UsageError: its summary is of something else.
        SignatureError: the shuffler did not sign it, though its keys are known.
    """
    if "shuffle" in known:
        # It ran here, and its output may be deleted by now.
        return known["shuffle"].streams
    if not storage.exists(storage.join(shuffled, SUMMARY)):
        return None
    return read_upstream(shuffled, "shuffle", campaign, trusted(deployment, "shuffler")).streams


def trusted(deployment: Deployment, role: SigningRole) -> tuple[VerifyKeyPart, ...]:
    """Return a party's public keys, one of which must have signed what it handed on; empty: this is not checked."""
    source = deployment.shuffler_keys if role == "shuffler" else deployment.aux_server_keys
    return verified_by(source, role)
