"""What one party hands to the next: a summary that names its batch, in that batch's folder, signed if there is a key.

The folder's name is the batch's. `hushcount run` names it WINDOW-EPOCH-FINGERPRINT; a job that is run by hand takes it
from the last name of `--out`. So a copy in the folder of another batch is refused, signed or not.

Keys are imported only when one is named: a party that does not sign has no package of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import folder_name
from hushcount.errors import UsageError
from pipelines.files import storage
from pipelines.handover.file_list import listed_files
from pipelines.handover.paths import Batch
from pipelines.outputs.staging import Output, placed, write_summary
from pipelines.outputs.summary import HopSummary

if TYPE_CHECKING:
    from hushcount.campaigns.public_keys import VerifyKeyPart
    from keys.directories import KeyReference
    from keys.roles import SigningRole


def batch_name(directory: str) -> str:
    """Return the name of the batch that a directory is for: its own last name, not that of a link's target."""
    path = directory if storage.is_remote(directory) else os.path.abspath(directory)
    return path.rstrip("/").rpartition("/")[2]


def hand_on(directory: str, to: Output, folders: Iterable[str], summary: HopSummary) -> HopSummary:
    """Write the summary of an output, which marks it as complete, last; signed, if there is a key.

    A private output is signed when it is handed to another party, and not here.

    Returns:
        The summary as written: with its batch, and with the files if it is signed.

    Args:
        directory: with the files of the output.
        to: where they will be.
        folders: of the directory that another party reads.
    """
    batch = to.writer.batch or batch_name(to.out)
    # The signature covers the batch.
    summary = placed(directory, replace(summary, batch=batch, window=_window(batch)))
    if to.signer is not None:
        from pipelines.handover.signed import sign

        summary = replace(summary, files=listed_files(directory, folders))
        if not to.writer.private:
            sign(directory, storage.json_bytes(summary.data()), to.signer)
    return write_summary(directory, summary)


def require_place(directory: str, summary: HopSummary, campaign: Campaign, signed: bool) -> None:
    """Raise UsageError if an output lies outside its batch's folder; unsigned ones may lie in folders not of `run`."""
    name, given = batch_name(directory), summary.batch
    window = _window(name)
    if not signed and window is None:
        return
    # The text is another party's: only the name of a batch is repeated.
    shown = f"batch {given}" if given is not None and _window(given) else "another batch"
    expected = name if window is None else f"{window}-{folder_name(campaign.epoch, campaign.fingerprint.hex())}"
    if (given, summary.window, name) != (name, window, expected):
        raise UsageError(
            f"input directory {directory} holds what hushcount job {summary.hop} handed on for {shown}: it lies in the "
            "wrong place; fetch it again, and leave the folder the name that it was written under"
        )


def _window(name: str) -> str | None:
    """Return the window in the name of a batch of `hushcount run`; None for other names."""
    batch = Batch.named("", name)
    return None if batch is None else batch.window


def signer_of(keys: Path | str | None, role: SigningRole) -> KeyReference | None:
    """Return the key that a party signs with, or None without a key directory.

    Raises:
        UsageError: the key is missing, it cannot be used, or the signing package is not installed.
    """
    if keys is None:
        return None
    try:
        from keys.directories import active_key
    except ModuleNotFoundError as error:
        if error.name != "keys":
            raise
        raise UsageError(
            "the output cannot be signed: the package keys is not in this image; run it in the one that is "
            "built with --target signing, or of Dataflow's --target shuffler-signing"
        ) from None

    return active_key(keys, role)


def verified_by(keys: Path | None, role: SigningRole) -> tuple[VerifyKeyPart, ...]:
    """Return the keys one of which must have signed the input; empty: signatures are not checked."""
    if keys is None:
        return ()
    from keys.directories import verify_keys

    return verify_keys(keys, role)
