"""Hand an output to the next party: the output's summary names the batch, lies in its folder, and may be signed.

The output's folder has the batch's name. `hushcount run` names a batch WINDOW-EPOCH-FINGERPRINT. If a job is run by
hand, the batch's name is the last part of `--out`. So a copy of an output in the folder of another batch is refused,
whether the output is signed or not.

The package `keys` is imported only if a key is named, because a party that does not sign does not have this package.
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
    """Return the name of a directory's batch, the last part of the path; of a link, the link's own name."""
    path = directory if storage.is_remote(directory) else os.path.abspath(directory)
    return path.rstrip("/").rpartition("/")[2]


def hand_on(directory: str, to: Output, folders: Iterable[str], summary: HopSummary) -> HopSummary:
    """Write the summary of an output, signed if there is a key.

    Write the summary after all other files, because it marks the output as complete. A private output is signed later,
    when it is handed to another party.

    Returns:
        The summary as written, which names the batch and, if there is a key, lists the files.

    Args:
        directory: directory with the files of the output.
        to: the output that the directory becomes.
        folders: folders of the directory that another party reads.
    """
    batch = to.writer.batch or batch_name(to.out)
    # The batch's name is put into the summary, so the signature covers it.
    summary = placed(directory, replace(summary, batch=batch, window=_window(batch)))
    if to.signer is not None:
        from pipelines.handover.signed import sign

        summary = replace(summary, files=listed_files(directory, folders))
        if not to.writer.private:
            sign(directory, storage.json_bytes(summary.data()), to.signer)
    return write_summary(directory, summary)


def require_place(directory: str, summary: HopSummary, campaign: Campaign, signed: bool) -> None:
    """Raise UsageError if an output is not in its batch's folder; unsigned outputs only if `run` named the folder."""
    name, given = batch_name(directory), summary.batch
    window = _window(name)
    if not signed and window is None:
        return
    # Another party wrote the batch's name in the summary, so the message repeats it only if it has the form of a name.
    shown = f"batch {given}" if given is not None and _window(given) else "another batch"
    expected = name if window is None else f"{window}-{folder_name(campaign.epoch, campaign.fingerprint.hex())}"
    if (given, summary.window, name) != (name, window, expected):
        raise UsageError(
            f"input directory {directory} holds the output of hushcount job {summary.hop} for {shown}: it lies in the "
            "wrong place; fetch it again, and do not rename the folder"
        )


def _window(name: str) -> str | None:
    """Return the window in a batch's name that `hushcount run` made; None for other names."""
    batch = Batch.named("", name)
    return None if batch is None else batch.window


def signer_of(keys: Path | str | None, role: SigningRole) -> KeyReference | None:
    """Return the key that a party signs with; None if `keys` is None.

    Raises:
        UsageError: the key is missing or cannot be used, or the package `keys` is not installed.
    """
    if keys is None:
        return None
    try:
        from keys.directories import active_key
    except ModuleNotFoundError as error:
        if error.name != "keys":
            raise
        raise UsageError(
            "the output cannot be signed: this image lacks the package keys; run the job in an image that is "
            "built with --target shuffler-signing, or for Dataflow in one that is made from that image"
        ) from None

    return active_key(keys, role)


def verified_by(keys: Path | None, role: SigningRole) -> tuple[VerifyKeyPart, ...]:
    """Return the public keys of the party before, one of which must have signed the input, unless empty."""
    if keys is None:
        return ()
    from keys.directories import verify_keys

    return verify_keys(keys, role)
