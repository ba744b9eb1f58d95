"""If a batch is sealed to a destroyed key, count every report of the batch and do nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.errors import RetiredKey, UsageError
from hushcount.reasons import Reason
from hushcount.wire.blocks import Kind
from pipelines.files import storage
from pipelines.files.block_files import find_files, total_records
from pipelines.handover.parties import hand_on
from pipelines.handover.upstream import check_complete, read_upstream
from pipelines.outputs.counts import SEALED, BinCounts, StreamCounts
from pipelines.outputs.received_summary import folder_of
from pipelines.outputs.staging import SUMMARY, Output, require_free, staged
from pipelines.outputs.summary import HopSummary, make_summary

REASON: Reason = "retired_key"


class CountedRetired(RetiredKey):
    """The reports of a batch that are sealed to a destroyed key were counted.

    `reports` is the number of reports; `summary` was written.
    """

    def __init__(self, message: str, id: str, reports: int, summary: HopSummary) -> None:
        super().__init__(message, id)
        self.reports = reports
        self.summary = summary


@dataclass(frozen=True)
class RetiredBatch:
    """A batch that nobody can open, because the key of its campaign was destroyed.

    Attributes:
        hop: the hop whose summary is written: analyze, mix, release or discover.
        to: where the summary is written.
        signed_by: public keys of the party before; empty: signatures are not checked.
        released: whether the input is the auxiliary server's release, which the analyzer would open.
    """

    retired: RetiredKey
    campaign: Campaign
    hop: str
    input_directory: str
    to: Output
    signed_by: Sequence[VerifyKeyPart] = ()
    released: bool = False


def account_retired(batch: RetiredBatch) -> NoReturn:
    """Write only a summary.json, which counts every report of a batch as retired_key; then raise CountedRetired.

    No report is opened or released, and nothing is charged. Through the exception, the command's exit status says that
    there is no result.

    Raises:
        CountedRetired: always; it has the number of reports and the summary, and its message names the file of the
            summary.
        UsageError: the input is not complete, or `out` is taken.
        SignatureError: none of the keys in `signed_by` signed the input as it is.
    """
    campaign, hop, to, out, released = batch.campaign, batch.hop, batch.to, batch.to.out, batch.released
    require_free(out, to.overwrite, (hop,), (batch.input_directory,))
    folder = "bins" if released else "reports" if hop in ("analyze", "mix") else "discovery"
    before = "release" if released else "mix" if hop == "analyze" and campaign.noise is not None else "shuffle"
    upstream = read_upstream(batch.input_directory, before, campaign, batch.signed_by, folder)
    source = folder_of(batch.input_directory, upstream)
    summary = _of_bins(campaign, upstream, source) if released else _of_reports(campaign, upstream, hop, source)
    number = (summary.rejected if summary.bins is None else summary.bins.rejected)[REASON]
    with staged(out, to.overwrite, to.writer) as directory:
        summary = hand_on(directory, to, ("reports" if hop == "mix" else "bins",), summary)
    where = storage.join(out, SUMMARY) if storage.is_remote(out) else str(Path(out) / SUMMARY)
    what = "released records" if released else "reports"
    said = f"{batch.retired}: {number} {what} are counted as {REASON} in {where}"
    raise CountedRetired(said, batch.retired.id, number, summary)


def _of_reports(campaign: Campaign, upstream: HopSummary, hop: str, source: str) -> HopSummary:
    stream: Stream = "reports" if hop in ("analyze", "mix") else "discovery"
    files = find_files(storage.join(source, stream), SEALED[stream])
    check_complete(upstream, campaign, stream, files, exact=True)
    number = upstream.accepted_of(stream)
    summary = make_summary(hop, campaign, {stream: StreamCounts(number, 0, {REASON: number})}, None, upstream)
    # With released=0 the analyzer reads this summary as an empty release, so the next hop of the batch can run.
    return replace(summary, released=0) if hop == "release" else summary


def _of_bins(campaign: Campaign, upstream: HopSummary, source: str) -> HopSummary:
    number = total_records(find_files(storage.join(source, "bins"), Kind.RELEASED))
    if number != upstream.released:
        raise UsageError(
            f"the released files hold {number} records, but hushcount job discover --party aux-server wrote "
            f"{upstream.released}: a file is missing or was added; fetch the output again"
        )
    pairs: dict[Stream, StreamCounts] = {"discovery": upstream.streams["discovery"]}
    bins = BinCounts(number, 0, {REASON: number})
    return replace(make_summary("discover", campaign, pairs, None, upstream), bins=bins)
