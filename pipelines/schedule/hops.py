"""The jobs of one batch, in their order: each runs where its output is not there yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from sqlalchemy import Engine as Database

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.collection.windows import window_start
from hushcount.errors import RetiredKey
from pipelines.batches import rows
from pipelines.batches.hops import CHAIN, HANDED_ON, hop_names, output_of
from pipelines.batches.lock import writer_of
from pipelines.batches.rebuild import taken_up
from pipelines.batches.writing import write_batch
from pipelines.deployment.settings import Deployment, Party
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

if TYPE_CHECKING:
    from keys.roles import SigningRole

Job = Callable[[], HopCounts | None]
"""Runs a hop, or takes up its complete output; None: its input is not there yet."""


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

    A hop has no job if the batch lacks its stream: it is passed over. Each is yielded after the one before has run,
    because the shuffler's output says which streams there are.

    A party's image holds its own packages only: a job imports what it needs of others' when it runs.
    """
    where = {hop.folder: output_of(deployment, hop.name, batch) for hop in CHAIN.values()}
    writer = writer_of(state)
    with state.begin() as connection:
        window = rows.known_windows(connection, batch.campaign).get(batch.window)
    # A collector writes a manifest when its window has ended: that moment has come, whatever the clock here says.
    # A party that reads no manifests knows the window from the name of the batch.
    known = window_start(batch.window) + deployment.windows.length if window is None else window.end
    shared: dict[str, Any] = {"ledger": deployment.ledger, "known": known, "writer": writer}

    def shuffled(_: RetiredKey | None) -> HopSummary:
        from pipelines.jobs.shuffle import plan_shuffle

        source = write_batch(state, deployment, campaign, batch)
        signer = signer_of(deployment.sign_with, "shuffler")
        return run_job(plan_shuffle(path, source, where["shuffled"], signer=signer, writer=writer), engine, console)

    def discovered(
        party: Party, source: str, role: SigningRole, out: str, console: Console | None = None, **more: Any
    ) -> HopSummary:
        from pipelines.jobs.discover import plan_discover

        more |= {"party": party, "uncapped": deployment.file.uncapped_discovery, "signed_by": trusted(deployment, role)}
        return run_job(
            plan_discover(path, where[source], deployment.keys, where[out], **more, **shared), engine, console
        )

    def released(retired: RetiredKey | None) -> HopSummary:
        from pipelines.handover.retired import RetiredBatch, account_retired

        signer = signer_of(deployment.sign_with, "aux_signer")
        if retired is not None:
            # The analyzer could not open a release: nothing is released, and nothing charged.
            to, signed_by = Output(where["released"], writer=writer, signer=signer), trusted(deployment, "shuffler")
            account_retired(RetiredBatch(retired, campaign, "release", where["shuffled"], to, signed_by))
        return discovered("aux-server", "shuffled", "shuffler", "released", console, signer=signer)

    def found(_: RetiredKey | None) -> HopSummary:
        from pipelines.handover.evaluator import evaluator_here

        return discovered("analyzer", "released", "aux_signer", "found", evaluator=evaluator_here(deployment))

    def analyzed(_: RetiredKey | None) -> HopSummary:
        from pipelines.jobs.analyze import plan_analyze
        from pipelines.jobs.found import FOUND
        from pipelines.jobs.groups import NamedGroups

        # A discovery of too few reports has a summary and no values.
        values = where["found"] if storage.exists(storage.join(folder_of(where["found"]), FOUND)) else None
        groups = NamedGroups(deployment.file.analyzer.groups, deployment.base, shared=True)
        nothing_found = campaign.discovery is not None and values is None
        job = plan_analyze(
            path, where["shuffled"], deployment.keys, where["results"], found=values, nothing_found=nothing_found,
            groups=groups, signed_by=trusted(deployment, "shuffler"), **shared,
        )  # fmt: skip
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


def require_keys(deployment: Deployment, campaign: Campaign, hops: Collection[str]) -> RetiredKey | None:
    """Read every key that the hops need before the first of them runs, and return that the analyzer's was retired.

    Then nothing is to be released, as if the evaluator that must verify it has destroyed its key. Without this check a
    hop would spend what a later one cannot use. Keys of parties elsewhere cannot be read. The auxiliary server's own
    hop reports its retired key: no later hop needs that.

    Raises:
        UsageError: one is missing or damaged, or cannot be used.
        Unanswered: the evaluator of an oblivious campaign does not answer.
    """
    for hop in HANDED_ON.values():
        signer = signer_of(deployment.sign_with, hop.signer) if hop.name in hops and hop.signer else None
        if signer is not None:
            signer.read_signing()
    if not {"release", "discover", "analyze"} & set(hops):
        return None
    # The shuffler has no package of keys.
    from keys.store import campaign_key

    namer = None
    if "discover" in hops:
        from pipelines.handover import evaluator

        namer = evaluator.namer(campaign, evaluator.evaluator_here(deployment))
    if "release" in hops:
        with suppress(RetiredKey):
            campaign_key(deployment.keys, "aux_server", campaign.keys.aux_server)
    if {"discover", "analyze"} & set(hops):
        try:
            campaign_key(deployment.keys, "analyzer", campaign.keys.analyzer)
            # What is shuffled can wait for the evaluator; what is released cannot be taken back.
            if namer is not None and "shuffle" not in hops:
                namer.require(campaign)
        except RetiredKey as retired:
            return retired
    return None


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
    """Take up a hop's output, or run it if its input is there, and all keys that it and the later hops need here."""
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
    """Return the streams that the shuffler handed on of a batch; None: it has not handed it on yet."""
    if "shuffle" in known:
        # It ran here, and its output may be deleted by now.
        return known["shuffle"].streams
    if not storage.exists(storage.join(shuffled, SUMMARY)):
        return None
    return read_upstream(shuffled, "shuffle", campaign, trusted(deployment, "shuffler")).streams


def trusted(deployment: Deployment, role: SigningRole) -> tuple[VerifyKeyPart, ...]:
    """Return a party's public keys, one of which must have signed what it handed on; empty: signatures are ignored."""
    return verified_by(deployment.shuffler_keys if role == "shuffler" else deployment.aux_server_keys, role)
