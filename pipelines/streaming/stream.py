"""The streaming job: a source of orders for each party here, and the steps of each hop of each campaign file.

The steps of a streaming job are fixed before any batch exists.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeAlias

import apache_beam as beam

from hushcount.campaigns.campaign import Campaign
from hushcount.errors import UsageError
from hushcount.senders import Senders
from pipelines.deployment.campaigns import read_epochs
from pipelines.deployment.settings import Deployment, Party
from pipelines.engine.runner import Engine
from pipelines.files.leases import MOST_KINDS, Patience, held
from pipelines.files.storage_errors import told
from pipelines.handover.hops import CHAIN, hop_names
from pipelines.jobs.together import Steps
from pipelines.streaming.carrying import CarryOut
from pipelines.streaming.order_book import OrderBook
from pipelines.streaming.watch import WatchOrders


def _shuffle(_: Deployment, campaign: Campaign) -> Iterator[Steps]:
    from pipelines.jobs.shuffle import ShuffleSteps

    if campaign.noise is not None:
        raise UsageError("a batch with noise has a graph of its own, which hushcount run makes")
    yield ShuffleSteps(campaign=campaign)


def _release(deployment: Deployment, campaign: Campaign) -> Iterator[Steps]:
    # The import is here, because the shuffler is installed without the package `keys`.
    from keys.directories import campaign_key
    from pipelines.jobs.discover import release_steps

    key = campaign_key(deployment.keys, "aux_server", campaign.keys.aux_server)
    for senders in _senders(deployment):
        yield release_steps(campaign, key, senders)


def _discover(deployment: Deployment, campaign: Campaign) -> Iterator[Steps]:
    from keys.directories import campaign_key
    from pipelines.jobs.reveal import reveal_steps

    key = campaign_key(deployment.keys, "analyzer", campaign.keys.analyzer)
    for senders in _senders(deployment):
        yield reveal_steps(campaign, key, senders)


def _analyze(deployment: Deployment, campaign: Campaign) -> Iterator[Steps]:
    from keys.directories import campaign_key
    from pipelines.jobs.analyze import analyze_steps
    from pipelines.jobs.results import grouped_items

    key = campaign_key(deployment.keys, "analyzer", campaign.keys.analyzer)
    yield analyze_steps(campaign, key, grouped=grouped_items(deployment, campaign))


def _senders(deployment: Deployment) -> Iterator[Senders]:
    """Yield the senders of batches without late segments; with late segments, rules and noise may be different."""
    for allotments in sorted({1, len(deployment.file.collectors) or 1}):
        yield Senders("client-token", allotments, allotments)


KNOWN_STEPS: Mapping[str, Callable[[Deployment, Campaign], Iterator[Steps]]] = {
    "shuffle": _shuffle,
    "release": _release,
    "discover": _discover,
    "mix": _shuffle,
    "analyze": _analyze,
}
"""Steps by hop.

A function in this table raises HushcountError if a key is missing, or if the steps depend on a batch's content.
"""


Carried: TypeAlias = Mapping[Party, Mapping[str, Steps]]
"""The steps that a streaming job carries out for each party, by the steps' name in the graph."""


def carried_by(deployment: Deployment) -> tuple[Carried, list[str]]:
    """Return the steps that a streaming job carries out, which are all hops here, of all present campaign files.

    Return also a sentence for each hop that the streaming job leaves to the run.
    """
    campaigns, faults = read_epochs(deployment.campaigns)
    left = [f"{campaign}: {fault}" for campaign, fault in faults.items()]
    steps: dict[Party, dict[str, Steps]] = {party: {} for party in deployment.file.parties}
    for campaign in (one for epochs in campaigns for one in epochs.campaigns.values()):
        for hop in hop_names(campaign, deployment.file.parties):
            name = f"{campaign.id}/{campaign.epoch}-{campaign.fingerprint.hex()[:16]} {hop}"
            try:
                known = {f"{name} {one.digest[:16]}": one for one in KNOWN_STEPS[hop](deployment, campaign)}
                steps[CHAIN[hop].party].update(known)
            except Exception as error:
                left.append(f"{name}: {told(error)}")
    return steps, left


def stream(
    deployment: Deployment, carried: Carried, *, every: float = 2.0, places: int = 16, patience: Patience | None = None
) -> None:
    """Carry out the orders of a deployment's runs, until the process is stopped.

    Args:
        every: number of seconds between two checks for a new order.
        places: number of places over which the records of a batch are spread.

    Raises:
        UsageError: the engine gives no result before its input ends, another streaming job is at work for a party here,
            or there are too many kinds of jobs.
        StorageError: the job failed.
    """
    engine = Engine(deployment.file.engine.runner, deployment.file.engine.options)
    if engine.embedded:
        raise UsageError(
            f"engine.runner is {engine.runner}, which gives no result before its input ends: set FlinkRunner, "
            "PortableRunner, PrismRunner or DataflowRunner"
        )
    id, books = secrets.token_hex(8), {party: OrderBook.of(deployment, party) for party in carried}
    with ExitStack() as leases:
        for party, steps in carried.items():
            digests = sorted(one.digest for one in steps.values())
            if len(digests) > MOST_KINDS:
                raise UsageError(f"{party} has {len(digests):,} kinds of jobs, must be at most {MOST_KINDS:,}")
            leases.enter_context(held(books[party].lease, _busy, owner=id, carries=digests, patience=patience))
            books[party].clear()
        # The option --streaming is set here, because without it Flink treats the source as one that ends.
        with replace(engine, options=(*engine.options, "--streaming")).pipeline("stream") as pipeline:
            for party, steps in carried.items():
                begun = pipeline | f"begin {party}" >> beam.Create([books[party]], reshuffle=False)
                batches = begun | f"orders of {party}" >> beam.ParDo(WatchOrders(id, every))
                for name, one in steps.items():
                    _ = batches | name >> CarryOut(one, books[party], places)


def _busy(path: str) -> UsageError:
    return UsageError(
        f"another stream is at work, by its lease {path}: stop it first, or delete the file if you know that none is"
    )
