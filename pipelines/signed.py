"""Signed outputs: what one party handed on is what the next one reads, file by file.

`summary.json` lists the files with their digests, `summary.json.sig` beside it is the party's signature of exactly its
bytes. So a file that was lost, added, exchanged or altered on the way is named before any of it is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from hushcount.errors import FormatError, UsageError
from hushcount.public_keys import VerifyKeyPart
from hushcount.signatures import Signature, SignatureError, verify
from keys.signing import sign
from keys.store import KeyReference
from pipelines import storage
from pipelines.batch_file import digest_of
from pipelines.block_io import SUFFIX
from pipelines.staging import SUMMARY
from pipelines.summary import Summary

SIGNATURE = f"{SUMMARY}.sig"


def listed_files(directory: str, folders: Iterable[str]) -> dict[str, list[dict[str, Any]]]:
    """Return name, bytes and digest of every block file of a job's output, by its folder."""
    listed: dict[str, list[dict[str, Any]]] = {}
    for folder in folders:
        listed[folder] = []
        for path, _ in storage.list_files(storage.join(directory, folder), SUFFIX):
            size, digest = digest_of(path)
            listed[folder].append({"name": path.rpartition("/")[2], "bytes": size, "digest": digest})
    return listed


def write_signed(directory: str, folders: Iterable[str], summary: Summary, reference: KeyReference) -> None:
    """Add the files to a summary, and write the signature of it as `storage.write_json` will write it, last."""
    summary["files"] = listed_files(directory, folders)
    signature = sign(reference, storage.json_bytes(summary), "summary")
    storage.write_whole(storage.join(directory, SIGNATURE), [signature.model_dump_json().encode() + b"\n"])


def require_signed(directory: str, folder: str, keys: Sequence[VerifyKeyPart], *, digests: bool = True) -> None:
    """Check that a directory holds, in this folder, exactly what one of these keys signed.

    Args:
        directory: what the party before handed on.
        folder: of the stream that is to be read; the others may have been given to somebody else.
        keys: those of that party, from elsewhere than the directory.
        digests: whether to read the files; without, only their names and lengths are compared.

    Raises:
        SignatureError: nobody signed it, or somebody else did, or a file is not what was signed; it is named.
        UsageError: the summary or its signature is missing.
    """
    summary_path, signature_path = storage.join(directory, SUMMARY), storage.join(directory, SIGNATURE)
    if not storage.exists(signature_path):
        raise SignatureError(f"{summary_path} is not signed: whoever wrote it must give --sign-with KEYS")
    payload = storage.read_bytes(summary_path)
    try:
        signature = Signature.model_validate_json(storage.read_bytes(signature_path))
    except ValueError:
        raise FormatError(f"{signature_path} is no signature: restore it") from None
    verify(keys, payload, "summary", signature)
    # Of the bytes that were verified: the file may be another by now.
    files = json.loads(payload).get("files", {})
    if folder not in files:
        raise UsageError(f"{summary_path} lists no {folder} files")
    signed = {file["name"]: (file["bytes"], file["digest"]) for file in files[folder]}
    where = storage.join(directory, folder)
    there = {path.rpartition("/")[2]: (path, size) for path, size in storage.list_files(where, SUFFIX)}
    for name in sorted(signed.keys() ^ there.keys()):
        what = "is missing" if name in signed else "was not signed"
        raise SignatureError(f"{storage.join(where, name)} {what}")
    for name, (path, size) in there.items():
        if size != signed[name][0] or (digests and digest_of(path) != signed[name]):
            raise SignatureError(f"{path} is not the file that was signed: restore it")
