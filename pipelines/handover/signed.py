"""Sign outputs and check them, so that a party reads exactly the files that the party before it wrote for this batch.

`summary.json` names hop, campaign, epoch, fingerprint, batch and window, and lists the files with their digests.
`summary.json.sig`, beside the files, signs exactly the bytes of the summary. The next party checks signature and files
before it reads any report. So the next party notices, and names, a lost, added, exchanged or altered file, or an output
in the place of another output.
"""

from __future__ import annotations

from collections.abc import Sequence

from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.campaigns.signatures import SIGNATURE_BYTES, SignatureError, parse_signature, verify
from hushcount.errors import UsageError
from keys.directories import KeyReference
from pipelines.files import storage
from pipelines.handover.file_list import all_files, listed_as
from pipelines.outputs.received_summary import folder_of, parse_summary
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import HopSummary

SIGNATURE = f"{SUMMARY}.sig"


def sign(directory: str, summary: bytes, reference: KeyReference) -> None:
    """Write the signature of a summary's bytes into the directory with the files that the summary lists."""
    signature = reference.sign(summary, "summary")
    storage.write_whole(storage.join(directory, SIGNATURE), [signature.model_dump_json().encode() + b"\n"])


def read_signed(directory: str, keys: Sequence[VerifyKeyPart]) -> HopSummary:
    """Return an output's summary after a check that one of `keys` signed it; the keys must not come from the output.

    Raises:
        SignatureError: the summary is not signed, or none of these keys signed it.
        UsageError: the summary is missing or invalid.
    """
    path = storage.join(directory, SUMMARY)
    payload = storage.read_bytes(path)
    signature_path = storage.join(folder_of(directory, parse_summary(payload, path)), SIGNATURE)
    if not storage.exists(signature_path):
        raise SignatureError(f"{path} is not signed: the party that wrote it must give --sign-with KEYS")
    signature = parse_signature(storage.read_bytes(signature_path, SIGNATURE_BYTES), signature_path)
    verify(keys, payload, "summary", signature)
    # Parse the bytes that were verified, because the file may have changed after they were read.
    return parse_summary(payload, path)


def require_files(directory: str, folder: str, summary: HopSummary, *, digests: bool = True) -> None:
    """Check that a folder of an output holds exactly the files that its signed summary lists.

    Args:
        folder: folder of the stream to read; files of the other streams may have gone to another party.
        digests: whether to compare the digests of the files; if not, only names and lengths are compared.

    Raises:
        SignatureError: a file is missing, was added, or differs from the signed list; the message names the file.
        UsageError: the summary lists no such folder.
    """
    listed = (summary.files or {}).get(folder)
    if listed is None:
        raise UsageError(f"{storage.join(directory, SUMMARY)} lists no {folder} files")
    signed = {file.name: file for file in listed}
    where = storage.join(folder_of(directory, summary), folder)
    there = {path.rpartition("/")[2]: (path, size) for path, size in all_files(where)}
    for name in sorted(signed.keys() ^ there.keys()):
        what = "is missing" if name in signed else "was not signed"
        raise SignatureError(f"{storage.join(where, name)} {what}")
    for name, (path, size) in there.items():
        if size != signed[name].bytes or (digests and listed_as(path) != signed[name]):
            raise SignatureError(f"{path} is not the file that was signed: restore it")
