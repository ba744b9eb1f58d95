"""hushcount job discover: the auxiliary server releases bins, then the analyzer opens the released records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

import apache_beam as beam
from apache_beam.pvalue import PCollection

from aux_server.count_bins import CountBins
from aux_server.drawing import draw_context
from aux_server.keep import Release
from aux_server.open_pairs import OpenPairs
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.discovery.keep_rules import KeepRule
from hushcount.errors import RetiredKey, UsageError
from hushcount.privacy.unit import rule_of
from hushcount.randomness import SystemWords
from hushcount.senders import Senders, require_told_apart
from hushcount.wire.blocks import Kind
from hushcount.wire.tags import tag_keys
from keys.directories import KeyReference, campaign_key
from keys.opening_engines import require_opening_engine
from keys.roles import OpeningRole
from pipelines.engine.group_through_files import GroupThroughFiles
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX, find_files, total_records
from pipelines.files.blocks import WriteShards
from pipelines.files.orders import OneFolder, Order, ShardOfOrder
from pipelines.handover.evaluator_address import Evaluator, namer
from pipelines.handover.retired import RetiredBatch
from pipelines.handover.upstream import check_complete, read_upstream
from pipelines.jobs.dead_letters import kept_of
from pipelines.jobs.drawing import DrawOf
from pipelines.jobs.job import Finished, Place
from pipelines.jobs.opening import OpeningJob, OpeningSteps
from pipelines.jobs.reveal import BINS, RevealJob, reveal_steps
from pipelines.jobs.together import BatchJob, Where
from pipelines.ledger.charging import Charging
from pipelines.ledger.draws import manifest_in
from pipelines.ledger.own_time import ALONE, LedgerClock
from pipelines.outputs.account import Hop
from pipelines.outputs.counts import SEALED
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import BY_HAND, Output, Writer, require_free
from pipelines.outputs.summary import make_summary
from pipelines.outputs.withheld import pass_on_withheld

Party = Literal["both", "aux-server", "analyzer"]
_ROLES: Mapping[Party, tuple[OpeningRole, ...]] = {
    "both": ("aux_server", "analyzer"),
    "aux-server": ("aux_server",),
    "analyzer": ("analyzer",),
}
_PLACE_RECORDS = 1 << 17
_DRAWN = ".drawn"
"""The folder for the drawn bins, until the ledger has kept a draw for this release."""


def plan_discover(  # noqa: PLR0913  # each is an option of `discover`
    campaign_path: Path,
    input_directory: str,
    keys: Path | str,
    out: str,
    *,
    party: Party = "both",
    uncapped: bool = False,
    evaluator: Evaluator | None = None,
    ledger: Path | None = None,
    clock: LedgerClock = ALONE,
    signed_by: Sequence[VerifyKeyPart] = (),
    signer: KeyReference | None = None,
    overwrite: bool = False,
    writer: Writer = BY_HAND,
) -> BatchJob | RetiredBatch:
    """Plan to release unknown values (`bins/`), to reveal released values (found.csv), or both.

    Args:
        input_directory: the output of hushcount job shuffle; for the analyzer alone, the auxiliary server's output.
        keys: directory with the private keys of the parties that run here, or env:NAME, an environment variable of
            every worker.
        party: "aux-server" writes `bins/` for the analyzer, and "analyzer" reads `bins/`. "both" does the work of both
            parties, on a machine that has both keys, and removes `bins/`.
        uncapped: whether to accept reports whose clients were not told apart. If such reports are accepted, a single
            client can reveal a value.
        evaluator: the evaluator of an oblivious campaign. With the evaluator's answers the analyzer verifies released
            values. Before the draw, one test request makes sure that the evaluator answers.
        signed_by: public keys of the party that wrote the input: of the auxiliary server for "analyzer", else of the
            shuffler. One of the public keys must have signed the input; empty: signatures are not checked.
        signer: the auxiliary server's signing key, if `party` is "aux-server"; None: the output is not signed.
        ledger: the ledger that charges the release, once for each input; the drawn bins are kept beside the ledger;
            None: nothing is charged.
        clock: returns the ledger's time.

    Raises:
        UsageError: a file or key is missing or invalid, `out` is taken, clients were not told apart, a client may have
            more reports than any keep rule allows, the environment names an unknown opening engine, or the campaign is
            oblivious and no evaluator is named.
        Unanswered: the evaluator does not answer.
        SignatureError: none of the keys in `signed_by` signed the input as it is.
        Withheld: the auxiliary server released nothing, because it accepted fewer reports than the minimum batch.
    """
    campaign = Campaign.read(campaign_path)
    campaign.require_keep_rule()
    evaluator = None if party == "aux-server" else namer(campaign, evaluator)
    to = Output(out, overwrite, writer, signer)
    require_opening_engine()
    try:
        # Check the keys and the evaluator before the draw, because values that the analyzer cannot open must not be
        # released.
        opening = {role: campaign_key(keys, role, getattr(campaign.keys, role)) for role in _ROLES[party]}
        if evaluator is not None:
            evaluator.require(campaign)
    except RetiredKey as retired:
        writes = "release" if party == "aux-server" else "discover"
        return RetiredBatch(retired, campaign, writes, input_directory, to, signed_by, party == "analyzer")
    if signer is not None:
        if party != "aux-server":
            raise UsageError(f"party is {party}, but only the auxiliary server signs: leave the signing key out")
        signer.read_signing()
    require_free(out, overwrite, ("release", "discover"), (input_directory, keys, campaign_path, ledger))
    hop, read_folder = ("release", BINS) if party == "analyzer" else ("shuffle", "discovery")
    upstream = read_upstream(input_directory, hop, campaign, signed_by, read_folder)
    require_told_apart(upstream.senders, uncapped)
    folder = storage.join(folder_of(input_directory, upstream), read_folder)
    if party == "analyzer":
        reveal = reveal_steps(campaign, opening["analyzer"], upstream.senders)
        pass_on_withheld(campaign, upstream)
        # If the auxiliary server's key was destroyed, nothing was drawn, so there is no release to charge.
        drawn = upstream.released or upstream.accepted_of("discovery")
        return RevealJob(
            campaign=campaign,
            to=to,
            ledger=ledger if drawn else None,
            clock=clock,
            steps=reveal,
            evaluator=evaluator,
            upstream=upstream,
            folder=folder,
            files=find_files(folder, Kind.RELEASED),
        )
    release = release_steps(campaign, opening["aux_server"], upstream.senders)
    files = find_files(folder, SEALED["discovery"])
    check_complete(upstream, campaign, "discovery", files, exact=True)
    return ReleaseJob(
        campaign=campaign,
        to=to,
        ledger=ledger,
        clock=clock,
        steps=release,
        analyzer=opening.get("analyzer"),
        evaluator=evaluator,
        upstream=upstream,
        folder=folder,
        files=files,
    )


@dataclass(frozen=True, kw_only=True)
class ReleaseSteps(OpeningSteps):
    """Count equal hashes in bins, and draw at random which bins are released, by the keep rule."""

    stream: ClassVar[Stream] = "discovery"
    rule: KeepRule

    @property
    def follows_from(self) -> tuple[bytes, ...]:
        return self.key.id.encode(), repr(self.rule).encode()

    def add(self, files: Mapping[str, PCollection], where: Where) -> PCollection:
        campaign, form = self.campaign, self.campaign.discovery_format
        number = where.places_of(_PLACE_RECORDS, "discovery")
        tags = tag_keys(form.sealed_bytes, SystemWords())
        opens = OpenPairs(self.key, form, number, tags, where.records.get("discovery", 0))
        read, opened = self.opened(files, where, opens)
        counted = opened.accepted | "count bins" >> CountBins(form.pair_bytes, number, GroupThroughFiles(where.spill))
        counts, allowed = self.count(where, read, opened, counted["counts"])
        beside = None if where.spill is None else OneFolder(storage.join(where.spill, _DRAWN))
        drawn = beside if where.open and beside is not None else where.folder(_DRAWN)
        written = (
            counted["bins"]
            | "release" >> Release(self.rule, DrawOf(self.key, where.orders))
            | "of its order" >> beam.ParDo(ShardOfOrder())
            | "write released" >> WriteShards(drawn, Kind.RELEASED, campaign, campaign.released_bytes, 1, allowed)
        )
        return (counts, where.written(written, "released")) | "all of the release" >> beam.Flatten()


def release_steps(campaign: Campaign, key: KeyReference, senders: Senders) -> ReleaseSteps:
    """Return the steps of a release of reports whose senders were told apart as `senders` says; raises as `rule_of`."""
    return ReleaseSteps(campaign=campaign, key=key, rule=rule_of(campaign, senders))


@dataclass(frozen=True, kw_only=True)
class ReleaseJob(OpeningJob):
    """The auxiliary server's job: count equal hashes in bins and release the bins that the keep rule selects.

    If the machine has the analyzer's key too, the values in the released bins are then revealed in the same output.
    """

    name: ClassVar[str] = "discover"
    hop: ClassVar[str] = "release"
    charges: ClassVar[Hop] = "discover"
    drawn: ClassVar[bool] = True
    steps: ReleaseSteps
    analyzer: KeyReference | None
    evaluator: Evaluator | None

    def order(self, directory: str) -> Order:
        rule = self.steps.rule
        return Order(directory, draw=draw_context(self.campaign.fingerprint, rule, manifest_in(self.folder)))

    def finish(self, place: Place, sums: Mapping[str, int], charge: Charging) -> Finished:
        campaign, drawn, bins = self.campaign, _drawn_to(place), storage.join(place.directory, BINS)
        counts, opening = self.counted(sums)
        for made in (drawn, bins):
            storage.make_directory(made)
        charge.keep_draw(drawn)
        # The draw is in one file, or in no file if it is empty.
        for path, size in storage.list_files(drawn, SUFFIX):
            storage.write_whole(storage.join(bins, f"released{SUFFIX}"), [storage.read_bytes(path, size)])
        storage.remove_directory(drawn)
        summary = make_summary("release", campaign, counts, None, self.upstream, opening=opening)
        files = find_files(bins, Kind.RELEASED)
        # `kept` reveals nothing beyond the release itself. The analyzer compares its records with this number, to
        # notice a lost file.
        kept = total_records(files)
        summary = replace(summary, dead_letters=kept_of(place.directory, counts), released=kept)
        if self.analyzer is None:
            return Finished(summary, (BINS,))
        reveal = RevealJob(
            campaign=campaign,
            to=self.to,
            steps=reveal_steps(campaign, self.analyzer, self.upstream.senders),
            evaluator=self.evaluator,
            upstream=summary,
            folder=bins,
            files=files,
        )
        return Finished(summary, then=reveal)


def _drawn_to(place: Place) -> str:
    """Return the folder for drawn bins, which others must not be able to read, because a draw may be discarded."""
    beside = place.spill is not None and storage.is_remote(place.directory)
    return storage.join(place.spill if place.spill is not None and beside else place.directory, _DRAWN)
