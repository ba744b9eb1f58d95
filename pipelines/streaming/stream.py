"""The job of a stream: for each party here a source of orders, and the steps of each hop of each campaign file."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeAlias

import apache_beam as beam

from hushcount.errors import UsageError
from pipelines.deployment.campaigns import read_epochs
from pipelines.deployment.settings import Deployment, Party
from pipelines.engine.runner import Engine
from pipelines.files.leases import MOST_KINDS, Patience, held
from pipelines.files.storage_errors import told
from pipelines.handover.hops import CHAIN, hop_names
from pipelines.jobs.known_steps import KNOWN_STEPS
from pipelines.jobs.together import Steps
from pipelines.streaming.carrying import CarryOut
from pipelines.streaming.order_book import OrderBook
from pipelines.streaming.watch import WatchOrders

Carried: TypeAlias = Mapping[Party, Mapping[str, Steps]]
"""What a stream carries out for each party; each has a name, of its part of the graph."""


def carried_by(deployment: Deployment) -> tuple[Carried, list[str]]:
    """Return what a stream carries out: all hops here, of all campaign files that are there now.

    The second is a sentence for each that is left to the run.
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
    """Carry out what the runs of a deployment order, until it is stopped.

    Args:
        every: seconds between two looks for an order.
        places: over how many places the records of a batch are spread.

    Raises:
        UsageError: the engine gives no result before its input ends, another stream is at work for a party here, or
            there are too many kinds of jobs.
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
        # Set here, because without it Flink takes the source for one that ends.
        with replace(engine, options=(*engine.options, "--streaming")).pipeline("stream") as pipeline:
            for party, steps in carried.items():
                begun = pipeline | f"begin {party}" >> beam.Create([books[party]], reshuffle=False)
                batches = begun | f"orders of {party}" >> beam.ParDo(WatchOrders(id, every))
                for name, one in steps.items():
                    _ = batches | name >> CarryOut(one, books[party], places)


def _busy(path: str) -> UsageError:
    return UsageError(
        f"another stream is at work, by its lease {path}: stop it first; whoever knows that none is may delete the file"
    )
