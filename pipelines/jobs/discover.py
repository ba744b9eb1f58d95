"""hushcount discover: the auxiliary server's release, then the analyzer's opening of what was released."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import apache_beam as beam
from rich.console import Console

from analyzer.reveal import Reveal
from aux_server.count_bins import CountBins
from aux_server.keep import Release
from aux_server.open_pairs import OpenPairs
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.discovery.keep_rules import KeepRule
from hushcount.errors import RetiredKey, UsageError
from hushcount.privacy.unit import rule_of
from hushcount.randomness import SystemWords
from hushcount.senders import require_told_apart
from hushcount.wire.blocks import Kind
from hushcount.wire.places import MOST_PLACES
from hushcount.wire.tags import tag_keys
from keys.store import KeyReference, campaign_key
from pipelines.engine.group_through_files import THROUGH_ENGINE_RECORDS, GroupThroughFiles
from pipelines.engine.runner import Engine
from pipelines.files import storage
from pipelines.files.block_files import SUFFIX, BlockFile, find_files, total_records
from pipelines.files.blocks import ReadBlocks, WriteShards
from pipelines.files.progress import bar
from pipelines.handover.parties import hand_on
from pipelines.handover.retired import account_retired
from pipelines.handover.upstream import check_complete, read_upstream
from pipelines.jobs import results
from pipelines.jobs.dead_letters import kept_of
from pipelines.ledger.charging import Charging, charging, cost_of
from pipelines.outputs.counting import WriteCounts, require_read_once, require_undamaged, take_counts
from pipelines.outputs.counts import BinCounts, StreamCounts
from pipelines.outputs.dead_letter_files import WriteDeadLetter, of_stream, of_stream_and_length
from pipelines.outputs.folders import folder_of
from pipelines.outputs.labels import SEALED, counts_of, label
from pipelines.outputs.minimum_batch import enough, pass_on_withheld, require_minimum
from pipelines.outputs.staging import BY_HAND, Writer, require_free, staged
from pipelines.outputs.summary import HopSummary, make_summary

Party = Literal["both", "aux-server", "analyzer"]
_PLACE_RECORDS = 1 << 17
_BINS = "bins"


def discover(
    campaign_path: Path,
    input_directory: str,
    keys: Path | str,
    out: str,
    *,
    party: Party = "both",
    uncapped: bool = False,
    ledger: Path | None = None,
    known: datetime | None = None,
    signed_by: Sequence[VerifyKeyPart] = (),
    signer: KeyReference | None = None,
    overwrite: bool = False,
    writer: Writer = BY_HAND,
    engine: Engine | None = None,
    console: Console | None = None,
) -> HopSummary:
    """Release and reveal unknown values; write found.csv and summary.json.

    Args:
        campaign_path: the campaign file.
        input_directory: what hushcount shuffle wrote; for the analyzer alone, what the auxiliary server wrote.
        keys: directory with the private keys of the parties that run here, or env:NAME, a variable of every worker.
        out: output directory.
        party: "aux-server" writes `bins/` for the analyzer, "analyzer" reads it; "both" does one after the other,
            for a machine that holds both keys, and then `bins/` does not stay.
        uncapped: whether to go on where no client was told from another, so that any one can reveal a value.
        signed_by: public keys of the party before, the auxiliary server for the analyzer alone, else the shuffler; one
            must have signed the input. Empty: signatures are not checked.
        signer: the auxiliary server's signing key, where it runs alone; None: unsigned.
        ledger: where the release is charged, once for an input, and beside which its draw is kept; None: nowhere.
        known: a moment that is known to have come, by what else than the clock tells the time.
        writer: who writes `out`.

    Raises:
        UsageError: a file or key is missing or invalid, `out` is taken, no client was told from another, or each
            has more reports in it than any keep rule bounds.
        RetiredKey: a key that is needed was destroyed; `out` then holds a summary that counts all as retired_key.
        SignatureError: the input is not what one of `signed_by` signed.
        TooFewOpened: fewer reports were accepted than the minimum batch; nothing is written or charged.
        HushcountError: the release does not fit into the campaign's limit.
    """
    campaign = Campaign.read(campaign_path)
    campaign.require_keep_rule()
    if party != "aux-server":
        campaign.require_hash_key()
    try:
        # Both before anything is drawn: what the analyzer cannot open must not be released.
        aux = None if party == "analyzer" else campaign_key(keys, "aux_server", campaign.keys.aux_server)
        analyzer = None if party == "aux-server" else campaign_key(keys, "analyzer", campaign.keys.analyzer)
    except RetiredKey as retired:
        hop = "release" if party == "aux-server" else "discover"
        account_retired(
            retired,
            campaign,
            hop,
            input_directory,
            out,
            overwrite,
            signed_by,
            signer,
            released=party == "analyzer",
            writer=writer,
        )
    if signer is not None:
        if party != "aux-server":
            raise UsageError(
                f"party is {party}, but only what the auxiliary server hands on is signed: leave the key out"
            )
        signer.read_signing()
    read: tuple[str | Path, ...] = (input_directory, keys, campaign_path, *([] if ledger is None else [ledger]))
    require_free(out, overwrite, ("release", "discover"), read, writer)
    hop, read_folder = ("release", _BINS) if party == "analyzer" else ("shuffle", "discovery")
    upstream = read_upstream(input_directory, hop, campaign, signed_by, read_folder)
    senders = upstream.senders
    require_told_apart(senders, uncapped)
    rule = rule_of(campaign, senders)
    if party == "analyzer":
        pass_on_withheld(campaign, upstream)
        if not (upstream.released or upstream.accepted_of("discovery")):
            # Nothing was drawn, because the auxiliary server's key was retired; what is released is nothing.
            ledger = None
    engine = engine or Engine()
    source = folder_of(input_directory, upstream)
    folder = storage.join(source, read_folder)
    with (
        charging(ledger, campaign, "discover", upstream, folder, drawn=party != "analyzer", known=known) as charge,
        staged(out, overwrite, writer) as directory,
    ):
        summary, release = upstream, source
        if aux is not None:
            release = directory
            summary = _release(campaign, rule, folder, aux, directory, upstream, charge, engine, console)
        if analyzer is not None:
            summary = _reveal(campaign, release, analyzer, directory, summary, engine)
        if party == "both":
            storage.remove_directory(storage.join(directory, _BINS))
        summary = replace(summary, ledger=charge.commit(cost_of(summary.stated, "discover"), summary.accepted))
        return hand_on(directory, out, (_BINS,), summary, signer)


def _release(
    campaign: Campaign,
    rule: KeepRule,
    discovery: str,
    key: KeyReference,
    directory: str,
    upstream: HopSummary,
    charge: Charging,
    engine: Engine,
    console: Console | None,
) -> HopSummary:
    """The auxiliary server's job."""
    files = find_files(discovery, SEALED["discovery"])
    check_complete(upstream, campaign, "discovery", files, exact=True)
    total, bins = total_records(files), storage.join(directory, _BINS)
    with engine.spill(directory) as spill:
        drawn = _drawn_to(directory, spill)
        with ExitStack() as stack:
            progress = stack.enter_context(bar(console, "discover", total, directory))
            # Outside the pipeline, which runs when its block ends.
            pipeline = stack.enter_context(engine.pipeline("discover"))
            _release_graph(pipeline, campaign, rule, key, files, directory, spill, progress)
        counts = _counts(directory)
        require_read_once("discovery", counts.received, total)
        require_undamaged(discovery, counts.rejected)
        require_minimum("release", campaign, "discovery", counts, upstream)
        for made in (drawn, bins):
            storage.make_directory(made)
        charge.fix_draw(drawn)
        if drawn != bins:
            _copy(drawn, bins)
    summary = make_summary("release", campaign, {"discovery": counts}, None, upstream)
    # How many bins are kept follows from the release; it lets the analyzer notice a file that was lost on the way.
    kept = total_records(find_files(storage.join(directory, _BINS), Kind.RELEASED))
    return replace(summary, dead_letters=kept_of(directory, {"discovery": counts}), released=kept)


def _release_graph(
    pipeline: beam.Pipeline,
    campaign: Campaign,
    rule: KeepRule,
    key: KeyReference,
    files: list[BlockFile],
    directory: str,
    spill: str | None,
    progress: str | None,
) -> None:
    drawn = _drawn_to(directory, spill)
    form = campaign.discovery_format
    each = THROUGH_ENGINE_RECORDS if spill is None else _PLACE_RECORDS
    places = min(MOST_PLACES, max(1, -(-total_records(files) // each)))
    read = pipeline | "read" >> ReadBlocks(files, campaign.fingerprint, form.sealed_bytes, 0, progress)
    opened = read["blocks"] | "open" >> beam.ParDo(
        OpenPairs(key, form, places, tag_keys(form.sealed_bytes, SystemWords()))
    ).with_outputs("counts", "dead", main="pairs")
    counted = opened.pairs | "count bins" >> CountBins(form.pair_bytes, places, GroupThroughFiles(spill))
    counts = (
        (read["counts"], opened.counts, counted["counts"])
        | "all counts" >> beam.Flatten()
        | "label" >> beam.Map(label, "discovery")
    )
    counts | "counts" >> WriteCounts(directory)
    allowed = enough(counts, "discovery", campaign) if storage.is_remote(directory) else None
    (
        counted["bins"]
        | "release" >> Release(rule)
        | "write released" >> WriteShards(drawn, Kind.RELEASED, campaign, form.pair_bytes, 1, allowed)
    )
    dead = (
        read["dead"] | "stream of dead" >> beam.Map(of_stream, "discovery"),
        opened.dead | "length of dead" >> beam.Map(of_stream_and_length, "discovery", form.sealed_bytes),
    )
    dead | "dead letter" >> WriteDeadLetter(directory, campaign, allowed)


def _drawn_to(directory: str, spill: str | None) -> str:
    """Return where bins are drawn: in a store an output lies open, and a draw that is thrown away must not be seen."""
    return storage.join(directory if spill is None else spill, _BINS)


def _copy(drawn: str, bins: str) -> None:
    """Copy the one file of a draw that is fixed to where the analyzer finds it; of a draw of nothing there is none."""
    for path, size in storage.list_files(drawn, SUFFIX):
        storage.write_whole(storage.join(bins, f"released{SUFFIX}"), [storage.read_bytes(path, size)])


def _reveal(
    campaign: Campaign, release: str, key: KeyReference, directory: str, released: HopSummary, engine: Engine
) -> HopSummary:
    """The analyzer's job: found.csv."""
    form = campaign.discovery_format
    record_bytes = form.pair_bytes
    files = find_files(storage.join(release, _BINS), Kind.RELEASED)
    if total_records(files) != released.released:
        raise UsageError(
            f"the released files hold {total_records(files)} records, hushcount discover --party aux-server wrote "
            f"{released.released}: a file is missing or was added"
        )
    with engine.pipeline("discover") as pipeline:
        read = pipeline | "read" >> ReadBlocks(files, campaign.fingerprint, record_bytes, 0, None)
        opened = (
            read["blocks"]
            | "records" >> beam.FlatMap(_records, record_bytes)
            | "reveal" >> beam.ParDo(Reveal(key, form)).with_outputs("counts", main="found")
        )
        (opened.found | "gather" >> beam.combiners.ToList() | "write found" >> beam.Map(_write_found, directory))
        (
            (read["counts"], opened.counts)
            | "all counts" >> beam.Flatten()
            | "label" >> beam.Map(label, "discovery")
            | "counts" >> WriteCounts(directory)
        )
    bins = _counts(directory)
    require_read_once("released records", bins.received, total_records(files))
    require_undamaged(storage.join(release, _BINS), bins.rejected)
    summary = make_summary("discover", campaign, {"discovery": released.streams["discovery"]}, None, released)
    return replace(summary, bins=BinCounts(bins.received, bins.accepted, bins.rejected))


def _records(block: bytes, record_bytes: int) -> list[bytes]:
    return [block[start : start + record_bytes] for start in range(0, len(block), record_bytes)]


def _write_found(found: list[str], directory: str) -> None:
    results.write_found(directory, found)


def _counts(directory: str) -> StreamCounts:
    return counts_of(take_counts(directory), ("discovery",))["discovery"]
