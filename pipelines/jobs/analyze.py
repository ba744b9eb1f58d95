"""hushcount analyze: permuted sealed reports to a tally, estimates and a page."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import apache_beam as beam
from rich.console import Console

from analyzer.open_reports import OpenReports
from analyzer.tally_reports import Sums, TallyReports, read_part, rows_per_block
from hushcount.arrays import UInt64Array
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.domain import tally_items
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.errors import HushcountError, RetiredKey
from hushcount.oracles.estimates import Levels
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import Tally
from keys.store import KeyReference, campaign_key
from pipelines.engine.runner import Engine
from pipelines.files import storage
from pipelines.files.block_files import BlockFile, find_files, total_records
from pipelines.files.blocks import ReadBlocks
from pipelines.files.progress import bar
from pipelines.handover.parties import hand_on
from pipelines.handover.retired import account_retired
from pipelines.handover.upstream import check_complete, read_upstream
from pipelines.jobs import results
from pipelines.jobs.dead_letters import kept_of
from pipelines.ledger.charging import charging, cost_of
from pipelines.outputs.counting import WriteCounts, require_read_once, require_undamaged, take_counts
from pipelines.outputs.dead_letter_files import WriteDeadLetter, of_stream, of_stream_and_length
from pipelines.outputs.folders import folder_of
from pipelines.outputs.labels import SEALED, counts_of, label
from pipelines.outputs.minimum_batch import enough, require_minimum
from pipelines.outputs.staging import BY_HAND, Writer, require_free, staged
from pipelines.outputs.summary import HopSummary, make_summary


def analyze(
    campaign_path: Path,
    input_directory: str,
    keys: Path | str,
    out: str,
    *,
    items: Path | None = None,
    found: Path | str | None = None,
    levels: Levels | None = None,
    ledger: Path | None = None,
    known: datetime | None = None,
    signed_by: Sequence[VerifyKeyPart] = (),
    overwrite: bool = False,
    writer: Writer = BY_HAND,
    engine: Engine | None = None,
    console: Console | None = None,
) -> HopSummary:
    """Open, tally and estimate; write estimates.parquet, estimates.csv, tally.npz, report.html and summary.json.

    Args:
        campaign_path: the campaign file.
        input_directory: what hushcount shuffle wrote.
        keys: directory with the analyzer's private key, or env:NAME, a variable that every worker has.
        out: output directory.
        items: items to estimate, one a line or a .csv with the column item; the whole dictionary when it is not given.
            With an open domain those in `found`, or else only the tally is written, to be asked later.
        found: a result of hushcount discover, to be shown on the page.
        levels: confidence of the intervals and false-positive rate of detection; the defaults when not given.
        signed_by: the shuffler's public keys; one must have signed the input. Empty: signatures are not checked.
        ledger: where the release is charged, once for an input; None: nowhere.
        known: a moment that is known to have come, by what else than the clock tells the time.
        writer: who writes `out`.

    Raises:
        UsageError: a file or key is missing or invalid, or `out` is taken.
        RetiredKey: the campaign's key was destroyed; `out` then holds a summary that counts all reports as retired_key.
        SignatureError: the input is not what one of `signed_by` signed.
        TooFewOpened: fewer reports were accepted than the minimum batch; nothing is written or charged.
        HushcountError: the release does not fit into the campaign's limit.
    """
    campaign = Campaign.read(campaign_path)
    mechanism = campaign.require_frequency()
    try:
        reference = campaign_key(keys, "analyzer", campaign.keys.analyzer)
    except RetiredKey as retired:
        account_retired(retired, campaign, "analyze", input_directory, out, overwrite, signed_by, writer=writer)
    read: tuple[str | Path, ...] = (
        input_directory,
        keys,
        campaign_path,
        *(path for path in (items, found, ledger) if path is not None),
    )
    require_free(out, overwrite, ("analyze",), read, writer)
    dictionary = campaign.read_dictionary()
    revealed = None if found is None else results.read_found(found, campaign)
    names = results.read_names(items) if items else None
    if names is None and dictionary is None and revealed is not None and revealed.items:
        names = list(revealed.items)
    wanted = results.wanted_items(mechanism, dictionary, names)
    columns = tally_items(mechanism, None if wanted is None else wanted.items)
    upstream = read_upstream(input_directory, "shuffle", campaign, signed_by, "reports")
    reports = storage.join(folder_of(input_directory, upstream), "reports")
    files = find_files(reports, SEALED["reports"])
    # Before the ledger is asked: what a release costs follows from how many reports the hop before says that there are.
    check_complete(upstream, campaign, "reports", files, exact=True)
    with charging(ledger, campaign, "analyze", upstream, reports, known=known) as charge:
        engine = engine or Engine()
        with staged(out, overwrite, writer) as directory:
            with ExitStack() as stack:
                progress = stack.enter_context(bar(console, "analyze", total_records(files), directory))
                pipeline = stack.enter_context(engine.pipeline("analyze"))
                _graph(pipeline, campaign, mechanism, columns, reference, files, directory, progress)
            sums = take_counts(directory)
            counts = counts_of(sums, ("reports",))
            require_read_once("reports", counts["reports"].received, total_records(files))
            require_undamaged(reports, counts["reports"].rejected)
            require_minimum("analyze", campaign, "reports", counts["reports"], upstream)
            tally = gather_tally(mechanism, columns, storage.join(directory, ".tally"))
            accepted = counts["reports"].accepted
            if tally.reports != accepted:
                raise HushcountError(
                    f"the tally holds {tally.reports} reports, {accepted} were accepted: report this bug"
                )
            summary = make_summary("analyze", campaign, counts, accepted, upstream)
            summary = replace(summary, dead_letters=kept_of(directory, counts))
            results.write_tally(directory, replace(tally, senders=upstream.senders), campaign)
            summary = results.write_results(directory, campaign, tally, wanted, levels or Levels(), summary, revealed)
            summary = replace(summary, ledger=charge.commit(cost_of(summary.stated, "analyze"), accepted))
            return hand_on(directory, out, (), summary, None)


def _graph(
    pipeline: beam.Pipeline,
    campaign: Campaign,
    mechanism: Mechanism,
    columns: UInt64Array,
    key: KeyReference,
    files: list[BlockFile],
    directory: str,
    progress: str | None,
) -> None:
    length = campaign.sealed_bytes("reports")
    read = pipeline | "read" >> ReadBlocks(files, campaign.fingerprint, length, 0, progress)
    opened = read["blocks"] | "open" >> beam.ParDo(
        OpenReports(key, mechanism, campaign.binding("reports"), length)
    ).with_outputs("counts", "dead", main="reports")
    counts = (read["counts"], opened.counts) | "all counts" >> beam.Flatten() | "label" >> beam.Map(label, "reports")
    counts | "counts" >> WriteCounts(directory)
    # A local directory is shown by its renaming; in a store every object is to be seen as soon as it is written.
    allowed = enough(counts, "reports", campaign) if storage.is_remote(directory) else None
    (
        opened.reports
        | "tally" >> TallyReports(mechanism, columns)
        | "write tally"
        >> beam.ParDo(WriteTallyPart(storage.join(directory, ".tally")), True if allowed is None else allowed)
    )
    dead = (
        read["dead"] | "stream of dead" >> beam.Map(of_stream, "reports"),
        opened.dead | "length of dead" >> beam.Map(of_stream_and_length, "reports", length),
    )
    dead | "dead letter" >> WriteDeadLetter(directory, campaign, allowed)


class WriteTallyPart(beam.DoFn):
    """(block of rows, Sums) to one file, whole or not at all; none unless the side input `allowed` is true."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def process(self, element: tuple[int, Sums], allowed: bool = True) -> None:
        if not allowed:
            return
        block, sums = element
        storage.write_whole(storage.join(self._directory, f"{block:06d}.part"), [sums.part_bytes()])


def gather_tally(mechanism: Mechanism, items: UInt64Array, directory: str) -> Tally:
    """Read the parts of the tally that the job wrote, and remove them."""
    counts = mechanism.new_tally(items)
    rows, reports = rows_per_block(mechanism, items), 0
    for path, _ in storage.list_files(directory, ".part"):
        with storage.open_read(path) as stream:
            added, part = read_part(stream, rows * counts.shape[1])
        reports += added
        first = int(path.rpartition("/")[2].partition(".")[0]) * rows
        last = min(first + rows, len(counts))
        counts[first:last] += part[: last - first]
    storage.remove_directory(directory)
    return Tally(counts, reports, items)
