"""A job's input must be the whole output of the hop before it: its summary is there, and its counts are met."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.collection import segment_names
from hushcount.collection.envelopes import ENVELOPES, envelope_dtype
from hushcount.collection.manifests import SUFFIX, read_manifest
from hushcount.errors import FormatError, UsageError
from hushcount.formats.reading import LISTING_BYTES
from hushcount.senders import UNBOUND, WEAKEST, Authentication, Senders, weakest
from pipelines.files import storage
from pipelines.files.block_files import BlockFile, total_records
from pipelines.handover.parties import require_place
from pipelines.outputs.received_summary import read_summary
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import HopSummary

COMMANDS = {"release": "discover --party aux-server"}
"""The command of a hop that is not named after it."""


def read_upstream(
    directory: str, hop: str, campaign: Campaign, signed_by: Sequence[VerifyKeyPart] = (), folder: str = ""
) -> HopSummary:
    """Read the summary of the hop before.

    Args:
        directory: what it handed on.
        hop: which.
        campaign: whose.
        signed_by: public keys of its party, from elsewhere; one of them must have signed the output. Empty: signatures
            are not checked.
        folder: of the output that is to be read, whose files are checked if signatures are.

    Raises:
        UsageError: the directory is no complete output of that hop for this campaign, or of another batch.
        SignatureError: it is not what one of `signed_by` signed.
    """
    path = storage.join(directory, SUMMARY)
    command = COMMANDS.get(hop, hop)
    if not storage.exists(path):
        storage.require_directory(directory)
        raise UsageError(
            f"input directory {directory} is no complete output of hushcount {command}: it has no {SUMMARY}"
        )
    if signed_by:
        # The shuffler checks none, and has no keys.
        from pipelines.handover.signed import read_signed, require_files

        summary = read_signed(directory, signed_by)
    else:
        summary = read_summary(path)
    given = summary.hop
    if given != hop:
        raise UsageError(
            f"input directory {directory} was written by hushcount {COMMANDS.get(given, given)}, must be of {command}"
        )
    if summary.fingerprint != campaign.fingerprint.hex():
        raise UsageError(
            f"input directory {directory} is of campaign {summary.campaign} with fingerprint "
            f"{summary.fingerprint}, the campaign file has {campaign.fingerprint.hex()}: give the file it "
            "was made with"
        )
    require_place(directory, summary, campaign, bool(signed_by))
    if signed_by and folder:
        require_files(directory, folder, summary)
    return summary


def senders_of(window: str, segments: Collection[str]) -> Senders:
    """Return whose reports a window's segments hold: the weakest way that its manifests say, and keys by their names.

    Args:
        window: a collector's directory of one window.
        segments: STREAM/FILE; where one stands in no manifest, or a manifest is none, the weakest way that there is.
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
    """Check that the files hold the records that the hop before forwarded.

    Files of another campaign or record length are left out of the count: they go to the dead letter.

    Args:
        upstream: the summary of the hop before.
        campaign: whose records count.
        stream: which stream.
        files: what was found.
        exact: whether more records are wrong as well; the shuffler drops duplicates, the analyzer would count them.

    Raises:
        UsageError: a file is missing or delivered twice.
    """
    forwarded = upstream.accepted_of(stream)
    ours = [file for file in files if file.header.campaign == campaign.fingerprint]
    lengths = (campaign.sealed_bytes(stream), envelope_dtype(campaign.sealed_bytes(stream)).itemsize)
    found = total_records(file for file in ours if file.header.record_bytes in lengths)
    if found < forwarded or (exact and found > forwarded):
        verb = "a file is missing" if found < forwarded else "a file was added"
        raise UsageError(f"the {stream} files hold {found} records, hushcount {upstream.hop} wrote {forwarded}: {verb}")
