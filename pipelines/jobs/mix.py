"""The hop "mix": the auxiliary server opens the outer layer of frequency reports, and adds dummies of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import apache_beam as beam
from apache_beam.pvalue import PCollection

from aux_server.mix import Mix, OpenLayers
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.collection.windows import window_start
from hushcount.draws import Draw
from hushcount.errors import HushcountError, RetiredKey, UsageError
from hushcount.reasons import DUMMIES
from hushcount.wire.tags import tag_keys
from keys.directories import campaign_key
from keys.opening_engines import require_opening_engine
from pipelines.engine.group_through_files import GroupThroughFiles
from pipelines.files import storage
from pipelines.files.block_files import find_files, total_records
from pipelines.files.blocks import WriteShards
from pipelines.files.orders import ShardOfOrder
from pipelines.handover.retired import RetiredBatch
from pipelines.handover.upstream import check_complete, read_upstream
from pipelines.jobs.dead_letters import kept_of
from pipelines.jobs.dummies import MixDraw, add_dummies, form_of, noise_context
from pipelines.jobs.job import Finished, Place
from pipelines.jobs.opening import OpeningJob, OpeningSteps
from pipelines.jobs.together import BatchJob, Where
from pipelines.ledger.charging import Charging
from pipelines.ledger.draws import manifest_in
from pipelines.ledger.own_time import ALONE, LedgerClock
from pipelines.outputs.account import Hop
from pipelines.outputs.counts import SEALED
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import Output, require_free
from pipelines.outputs.summary import make_summary

_SHARD_RECORDS = 1 << 17


@dataclass(frozen=True, kw_only=True)
class MixSteps(OpeningSteps):
    """Open the layers of the batch's window, and mix their boxes with dummies."""

    stream: ClassVar[Stream] = "reports"
    mix: MixDraw

    @property
    def record_bytes(self) -> int:
        return self.campaign.layer_bytes

    @property
    def follows_from(self) -> tuple[bytes, ...]:
        return self.key.id.encode(), self.mix.draw.context

    def add(self, files: Mapping[str, PCollection], where: Where) -> PCollection:
        campaign, mix, stream = self.campaign, self.mix, self.stream
        opens = OpenLayers(
            self.key, campaign.binding(stream), mix.begins, self.record_bytes, where.records.get(stream, 0)
        )
        read, opened = self.opened(files, where, opens)
        number = where.places_of(_SHARD_RECORDS, stream)
        given = {
            "boxes": opened.accepted,
            "dummies": add_dummies(files[stream].pipeline, form_of(campaign, None), mix.draw),
        }
        keys = tag_keys(campaign.box_bytes, mix.words)
        mixed = given | "mix boxes" >> Mix(campaign.box_bytes, number, keys, GroupThroughFiles(where.spill))
        counts, allowed = self.count(where, read, opened, mixed["counts"])
        written = (
            mixed["shards"]
            | "of its order" >> beam.ParDo(ShardOfOrder())
            | "write mixed"
            >> WriteShards(where.folder(stream), SEALED[stream], campaign, campaign.box_bytes, number, allowed)
        )
        return (counts, where.written(written, stream)) | "all of the mix" >> beam.Flatten()


@dataclass(frozen=True, kw_only=True)
class MixJob(OpeningJob):
    """Mix the reports of one batch; a batch is mixed once."""

    name: ClassVar[str] = "mix"
    hop: ClassVar[str] = "mix"
    charges: ClassVar[Hop] = "analyze"
    steps: MixSteps

    def finish(self, place: Place, sums: Mapping[str, int], charge: Charging) -> Finished:
        added = sums.get(f"reports:{DUMMIES}", 0)
        counts, opening = self.counted({name: number for name, number in sums.items() if name != f"reports:{DUMMIES}"})
        summary = make_summary("mix", self.campaign, counts, None, self.upstream, opening=opening)
        dummies = (self.upstream.dummies or 0) + added
        written = total_records(find_files(storage.join(place.directory, "reports"), SEALED["reports"]))
        if written != (wanted := summary.accepted + dummies):
            raise HushcountError(f"reports: {written} of {wanted} reports were written: run again")
        summary = replace(summary, dead_letters=kept_of(place.directory, counts), dummies=dummies)
        return Finished(summary, ("reports",))


def plan_mix(  # noqa: PLR0913  # as plan_analyze
    campaign_path: Path,
    input_directory: str,
    keys: Path | str,
    to: Output,
    *,
    window: str,
    signed_by: Sequence[VerifyKeyPart] = (),
    ledger: Path | None = None,
    clock: LedgerClock = ALONE,
) -> BatchJob | RetiredBatch:
    """Plan the mix of a batch that the shuffler handed on.

    Args:
        window: name of the batch's window, which every report must name.

    Raises:
        UsageError: the campaign has no noise, a file or key is missing or invalid, or `to` is taken.
        SignatureError: none of the keys in `signed_by` signed the input as it is.
    """
    campaign = Campaign.read(campaign_path)
    if campaign.noise is None:
        raise UsageError(f"campaign {campaign.id} has no noise, so that the auxiliary server mixes no reports of it")
    require_opening_engine()
    try:
        key = campaign_key(keys, "aux_server", campaign.keys.aux_server)
    except RetiredKey as retired:
        return RetiredBatch(retired, campaign, "mix", input_directory, to, signed_by)
    require_free(to.out, to.overwrite, ("mix",), (input_directory, keys, campaign_path))
    upstream = read_upstream(input_directory, "shuffle", campaign, signed_by, "reports")
    folder = storage.join(folder_of(input_directory, upstream), "reports")
    files = find_files(folder, SEALED["reports"])
    check_complete(upstream, campaign, "reports", files, exact=True)
    begins = int(window_start(window).timestamp())
    draw = Draw(key, noise_context(campaign, "mix", begins, manifest_in(folder)))
    return MixJob(
        campaign=campaign,
        to=to,
        ledger=ledger,
        clock=clock,
        steps=MixSteps(campaign=campaign, key=key, mix=MixDraw(draw, begins)),
        upstream=upstream,
        folder=folder,
        files=files,
    )
