"""Check a job's input: the output of the hop before must be whole, and a collector's manifest must be in its place."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.collection import segment_names
from hushcount.collection.envelopes import ENVELOPES, envelope_dtype
from hushcount.collection.epochs import folder_name
from hushcount.collection.manifests import SUFFIX, Manifest, collector_of, read_manifest
from hushcount.errors import FormatError, UsageError
from hushcount.formats.reading import LISTING_BYTES
from hushcount.senders import UNBOUND, WEAKEST, Authentication, Senders, weakest
from pipelines.files import storage
from pipelines.files.block_files import BlockFile, total_records
from pipelines.handover.parties import require_place
from pipelines.handover.paths import WindowPath
from pipelines.outputs.received_summary import read_summary
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import HopSummary

COMMANDS = {"release": "discover --party aux-server"}
"""The command of the job that runs a hop, if the command's name differs from the hop's name."""


def read_upstream(
    directory: str, hop: str, campaign: Campaign, signed_by: Sequence[VerifyKeyPart] = (), folder: str = ""
) -> HopSummary:
    """Read and check the summary of the hop that wrote a job's input.

    Args:
        signed_by: public keys of the party of that hop, one of which must have signed the output; empty: signatures are
            not checked.
        folder: folder of the output that the job reads; if signatures are checked, the files in the folder are checked
            too.

    Raises:
        UsageError: the directory is not a complete output of that hop for this campaign and batch.
        SignatureError: none of the keys in `signed_by` signed the output as it is.
    """
    path = storage.join(directory, SUMMARY)
    command = COMMANDS.get(hop, hop)
    if not storage.exists(path):
        storage.require_directory(directory)
        raise UsageError(
            f"input directory {directory} is not a complete output of hushcount job {command}: it has no {SUMMARY}"
        )
    if signed_by:
        # Import `signed` only here, because the shuffler checks no signatures and does not have the package `keys`.
        from pipelines.handover.signed import read_signed, require_files

        summary = read_signed(directory, signed_by)
    else:
        summary = read_summary(path)
    if summary.hop != hop:
        raise UsageError(
            f"input directory {directory} was written by hushcount job {COMMANDS.get(summary.hop, summary.hop)}, "
            f"must be the output of {command}"
        )
    if summary.fingerprint != campaign.fingerprint.hex():
        raise UsageError(
            f"input directory {directory} is of campaign {summary.campaign} with fingerprint "
            f"{summary.fingerprint}, the campaign file has {campaign.fingerprint.hex()}: give the campaign file that "
            "the input was made with"
        )
    require_place(directory, summary, campaign, bool(signed_by))
    if signed_by and folder:
        require_files(directory, folder, summary)
    return summary


def placed_manifest(data: bytes, path: str, folder: WindowPath) -> Manifest:
    """Return the manifest in a file's bytes; `folder` is the folder of the file.

    Raises:
        FormatError: the file is not a manifest, or the manifest's window, campaign file or collector does not match the
            path.
    """
    manifest = read_manifest(data, path)
    of = WindowPath(manifest.campaign, folder_name(manifest.epoch, manifest.fingerprint), manifest.window)
    if (folder, collector_of(path.rpartition("/")[2])) != (of, manifest.collector):
        raise FormatError(f"{path} is the manifest of {of} by {manifest.collector}: it lies in the wrong place")
    return manifest


def senders_of(window: str, segments: Collection[str]) -> Senders:
    """Return how a window's senders were told apart, from the window's manifests and the token keys in segments' names.

    Args:
        segments: names of segments, as STREAM/FILE. The senders of a segment that is in no manifest count as told apart
            in the weakest way. If a manifest is invalid, the senders of all segments count as told apart in the weakest
            way.
    """
    named: dict[str, Authentication] = {}
    for path, _ in storage.list_files(window, SUFFIX):
        try:
            manifest = read_manifest(storage.read_bytes(path, LISTING_BYTES), path)
        except FormatError:
            return UNBOUND
        for stream, parts in manifest.segments.items():
            named |= {f"{stream}/{part.name}": manifest.authentication for part in parts}
    way = weakest(named.get(segment, WEAKEST) for segment in segments)
    paths = {stream: [segment for segment in segments if segment.startswith(f"{stream}/")] for stream in ENVELOPES}
    return segment_names.senders_of(way, paths)


def check_complete(
    upstream: HopSummary, campaign: Campaign, stream: Stream, files: list[BlockFile], exact: bool
) -> None:
    """Check that a job's input files hold as many records as the hop before the job forwarded.

    Files of another campaign or record length are not counted, because their records go to the dead letter.

    Args:
        exact: whether it is an error too if the files hold more records than the hop before forwarded. The shuffler
            drops copies of reports, but the analyzer would count them.

    Raises:
        UsageError: the files hold too few records, so a file is missing; or, if `exact`, too many, so a file was added.
    """
    forwarded = upstream.accepted_of(stream) + (upstream.dummies or 0 if stream == "reports" else 0)
    lengths = [campaign.sealed_bytes(stream), envelope_dtype(campaign.sealed_bytes(stream)).itemsize]
    if stream == "reports" and campaign.noise is not None:
        lengths += [campaign.layer_bytes, campaign.box_bytes]
    found = total_records(
        file for file in files if file.header.campaign == campaign.fingerprint and file.header.record_bytes in lengths
    )
    if found < forwarded or (exact and found > forwarded):
        verb = "a file is missing" if found < forwarded else "a file was added"
        job = COMMANDS.get(upstream.hop, upstream.hop)
        raise UsageError(f"the {stream} files hold {found} records, but hushcount job {job} wrote {forwarded}: {verb}")
