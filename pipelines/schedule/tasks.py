"""The hops of one batch, in their order: which hop is next, the keys that it needs, and its job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.clock import Clock
from hushcount.collection.windows import Window, window_start
from hushcount.errors import RetiredKey
from pipelines.deployment.settings import Deployment
from pipelines.engine.runner import Engine
from pipelines.files import storage
from pipelines.handover.hops import CHAIN, HANDED_ON, HopName, hop_names, input_of, output_of
from pipelines.handover.parties import signer_of
from pipelines.handover.paths import Batch
from pipelines.handover.retired import RetiredBatch
from pipelines.handover.statements import keys_of
from pipelines.handover.upstream import read_upstream
from pipelines.jobs.together import BatchJob
from pipelines.ledger.own_time import LedgerClock
from pipelines.log.fold import Fold
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import Output
from pipelines.schedule.handed import Stated, is_there
from pipelines.schedule.inputs import batch_file


@dataclass(frozen=True)
class Task:
    """A batch with hops left to run, and everything that these hops need.

    Attributes:
        path, campaign: the campaign file of the batch, as a path and as read.
        fold: the fold of the campaign's log.
        clock: this machine's.
        stated: the statements of parties elsewhere on the campaign's batches.
    """

    deployment: Deployment
    campaign: Campaign
    path: Path
    batch: Batch
    fold: Fold
    engine: Engine
    console: Console | None
    clock: Clock
    stated: Stated = field(default_factory=dict)

    def output(self, hop: HopName) -> str:
        """Return the folder of a hop's output."""
        return output_of(self.deployment, hop, self.batch)

    @property
    def hops(self) -> list[HopName]:
        """The hops that run here, in their order."""
        return hop_names(self.campaign, self.deployment.file.parties)

    @property
    def known(self) -> datetime:
        """A moment that has certainly passed, whatever the clock says, because batches are made after their windows."""
        made = self.fold.batches.get(self.batch.name)
        # A party that reads no manifests knows when the window began, but not the window's length.
        return window_start(self.batch.window) if made is None else made.window.end

    @property
    def window(self) -> Window:
        """The batch's window; if no manifest states the window's length, the current length is assumed."""
        known = self.fold.known_windows.get(self.batch.window)
        return known or self.deployment.windows.tiling.window_at(window_start(self.batch.window))


@dataclass(frozen=True)
class Step:
    """The next hop of a batch; `passes`: it has nothing to do, because the batch lacks the stream that it reads."""

    hop: HopName
    passes: bool


def next_step(task: Task) -> Step | None:
    """Return the next hop of a batch here; None if all hops are done, or if the next hop has no input yet.

    Raises:
        UsageError, SignatureError: an output from elsewhere cannot be read, or is not the output that the statement
            names.
    """
    done = task.fold.hops_of(task.batch.name)
    for hop in (hop for hop in task.hops if hop not in done):
        if hop == "shuffle":
            return Step(hop, False)
        streams = _streams(task)
        if streams is None:
            return None
        source = input_of(hop, task.campaign.noise is not None)
        if CHAIN[hop].stream not in streams or (source == "mix" and _is_unmixed(task)):
            return Step(hop, True)
        # The hop analyze also reads the discovered values, so it waits for the hop discover.
        found: HopName | None = "discover" if hop == "analyze" and "discovery" in streams else None
        before = [one for one in (source, found) if one is not None]
        if not all(is_there(task.deployment, task.stated, one, task.batch) for one in before):
            return None
        return Step(hop, False)
    return None


def _shuffle(task: Task, to: Output, _: RetiredKey | None) -> BatchJob:
    from pipelines.jobs.shuffle import plan_shuffle

    source = batch_file(task.deployment, task.fold, task.campaign, task.fold.batches[task.batch.name])
    return plan_shuffle(task.path, source, to.out, signer=to.signer, writer=to.writer)


def _release(task: Task, to: Output, retired: RetiredKey | None) -> BatchJob | RetiredBatch:
    if retired is not None:
        # Because the analyzer could not open a release, nothing is released and nothing is charged.
        signed_by = keys_of(task.deployment, "shuffler")
        return RetiredBatch(retired, task.campaign, "release", task.output("shuffle"), to, signed_by)
    return _discovery(task, to, "aux-server", "shuffle", signer=to.signer)


def _discover(task: Task, to: Output, _: RetiredKey | None) -> BatchJob | RetiredBatch:
    from pipelines.handover.evaluator_address import evaluator_here

    return _discovery(task, to, "analyzer", "release", evaluator=evaluator_here(task.deployment))


def _discovery(
    task: Task, to: Output, party: Literal["aux-server", "analyzer"], source: HopName, **more: Any
) -> BatchJob | RetiredBatch:
    from pipelines.jobs.discover import plan_discover

    return plan_discover(
        task.path, task.output(source), task.deployment.keys, to.out, party=party, writer=to.writer,
        uncapped=task.deployment.file.uncapped_discovery, signed_by=keys_of(task.deployment, CHAIN[source].party),
        ledger=task.deployment.ledger, clock=LedgerClock(task.clock, task.known), **more,
    )  # fmt: skip


def _mix(task: Task, to: Output, retired: RetiredKey | None) -> BatchJob | RetiredBatch:
    from pipelines.jobs.mix import plan_mix

    source, signed_by = task.output("shuffle"), keys_of(task.deployment, "shuffler")
    if retired is not None:
        # Because the analyzer could not open the boxes, nothing is mixed and nothing is charged.
        return RetiredBatch(retired, task.campaign, "mix", source, to, signed_by)
    return plan_mix(
        task.path, source, task.deployment.keys, to, window=task.batch.window, signed_by=signed_by,
        ledger=task.deployment.ledger, clock=LedgerClock(task.clock, task.known),
    )  # fmt: skip


def _analyze(task: Task, to: Output, _: RetiredKey | None) -> BatchJob | RetiredBatch:
    from pipelines.jobs.analyze import plan_analyze
    from pipelines.jobs.found import FOUND
    from pipelines.jobs.results import grouped_items

    deployment, found = task.deployment, folder_of(task.output("discover"))
    source: HopName = "shuffle" if task.campaign.noise is None else "mix"
    # A discovery from too few reports has a summary, but no values.
    values = task.output("discover") if storage.exists(storage.join(found, FOUND)) else None
    return plan_analyze(
        task.path, task.output(source), deployment.keys, to.out, found=values,
        nothing_found=task.campaign.discovery is not None and values is None,
        grouped=grouped_items(deployment, task.campaign),
        signed_by=keys_of(deployment, CHAIN[source].party), ledger=deployment.ledger,
        clock=LedgerClock(task.clock, task.known), window=task.window,
        writer=to.writer,
    )  # fmt: skip


PLANS: dict[HopName, Callable[[Task, Output, RetiredKey | None], BatchJob | RetiredBatch]] = {
    "shuffle": _shuffle,
    "release": _release,
    "discover": _discover,
    "mix": _mix,
    "analyze": _analyze,
}


def left(task: Task, hop: HopName) -> Iterator[HopName]:
    """Yield this hop and the later hops that will run here."""
    done, streams = task.fold.hops_of(task.batch.name), _streams(task)
    wanted: Collection[str] = task.fold.batches[task.batch.name].segments if streams is None else streams
    for one in task.hops[task.hops.index(hop) :]:
        if one == hop or (one not in done and CHAIN[one].stream in wanted):
            yield one


def require_keys(task: Task, hops: Iterator[HopName]) -> RetiredKey | None:
    """Read every key that the hops need, before the first of them runs.

    Return the error, instead of raising it, if the analyzer's key was retired. Return the error also if the evaluator,
    which must verify values, has destroyed its key. If the key of the analyzer or the evaluator is destroyed, no hop
    may release anything, because a hop would spend budget on a result that a later hop cannot use. Keys of parties
    elsewhere cannot be read, so they are not checked. A retired key of the auxiliary server is reported by its own hop,
    because no later hop needs this key.

    Raises:
        UsageError: a key is missing or damaged, or cannot be used.
        Unanswered: the evaluator of an oblivious campaign does not answer.
    """
    deployment, campaign, wanted = task.deployment, task.campaign, set(hops)
    for hop in HANDED_ON.values():
        signer = signer_of(deployment.sign_with, hop.signer) if hop.name in wanted and hop.signer else None
        if signer is not None:
            signer.read_signing()
    if wanted <= {"shuffle"}:
        return None
    # The import is here, because the shuffler is installed without the package `keys`.
    from keys.directories import campaign_key

    namer = None
    if "discover" in wanted:
        from pipelines.handover import evaluator_address

        namer = evaluator_address.namer(campaign, evaluator_address.evaluator_here(deployment))
    if {"release", "mix"} & wanted:
        with suppress(RetiredKey):
            campaign_key(deployment.keys, "aux_server", campaign.keys.aux_server)
    if {"discover", "analyze"} & wanted:
        try:
            campaign_key(deployment.keys, "analyzer", campaign.keys.analyzer)
            # If the shuffle is still to run, the evaluator need not answer yet, because shuffled reports can wait for
            # it; a release cannot be taken back.
            if namer is not None and "shuffle" not in wanted:
                namer.require(campaign)
        except RetiredKey as retired:
            return retired
    return None


def _is_unmixed(task: Task) -> bool:
    """Return whether the auxiliary server could not mix a batch's reports, because its key was destroyed."""
    done = task.fold.hops_of(task.batch.name).get("mix")
    if done is not None:
        return done.counts.dummies is None
    if not is_there(task.deployment, task.stated, "mix", task.batch):
        return False
    signed_by = keys_of(task.deployment, "aux-server")
    return read_upstream(task.output("mix"), "mix", task.campaign, signed_by).dummies is None


def _streams(task: Task) -> Collection[Stream] | None:
    """Return the streams of a batch that the shuffler handed on; None if it has not handed on the batch yet."""
    shuffled = task.fold.hops_of(task.batch.name).get("shuffle")
    if shuffled is not None:
        # The shuffle ran here, and its output may be deleted by now, so the log is asked.
        return shuffled.counts.streams
    if task.campaign.noise is not None and not {"shuffle", "mix"} & {*task.hops}:
        # Nothing of the shuffle is for the analyzer but the shuffler's statement.
        said = task.stated.get((task.batch.name, "shuffle"))
        return None if said is None or said.summary is None else said.streams
    out = task.output("shuffle")
    if "shuffle" in task.hops or not is_there(task.deployment, task.stated, "shuffle", task.batch):
        return None
    return read_upstream(out, "shuffle", task.campaign, keys_of(task.deployment, "shuffler")).streams
