"""What one party hands to the next: a summary that says of which batch it is, and that belongs in that batch's folder.

The folder's name is the batch's. `hushcount run` names it WINDOW-EPOCH-FINGERPRINT; a job that is run by hand is given
it, as the last name of `--out`. So what was copied from one batch's folder to another's is refused, signed or not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import folder_name
from hushcount.errors import UsageError
from pipelines.files import storage
from pipelines.handover.batch_file import BATCH_NAME
from pipelines.outputs.staging import placed, write_summary
from pipelines.outputs.summary import HopSummary

if TYPE_CHECKING:
    from keys.store import KeyReference


def batch_name(directory: str) -> str:
    """Return the name of the batch that a directory is for: its own last name, not that of what a link leads to."""
    path = directory if storage.is_remote(directory) else os.path.abspath(directory)
    return path.rstrip("/").rpartition("/")[2]


def hand_on(
    directory: str, out: str, folders: Iterable[str], summary: HopSummary, signer: KeyReference | None, batch: str = ""
) -> HopSummary:
    """Write the summary of an output, which marks it as complete, last; signed, if there is a key.

    Returns:
        The summary as written: with its batch, and with the files if it is signed.

    Args:
        directory: where it is made.
        out: where it will be; its last name is the batch's.
        folders: of the directory that another party reads.
        summary: of the hop.
        signer: of the party; None: unsigned.
        batch: name of the batch, where it has one of its own.
    """
    batch = batch or batch_name(out)
    # Before it is signed.
    summary = placed(directory, replace(summary, batch=batch, window=_window(batch)))
    if signer is not None:
        # A party that does not sign has no keys.
        from pipelines.handover.signed import write_signed

        summary = write_signed(directory, folders, summary, signer)
    return write_summary(directory, summary)


def require_own_folder(out: str, batch: str) -> None:
    """Refuse to sign a batch that has a name of its own into a folder of another name, where nobody would take it.

    Raises:
        UsageError: the output has another name.
    """
    if batch and batch != batch_name(out):
        raise UsageError(
            f"output directory {out} is for batch {batch}: what is signed must lie in a folder of that name"
        )


def require_place(directory: str, summary: HopSummary, campaign: Campaign, signed: bool) -> None:
    """Check that an output lies in the folder of its batch; unsigned ones only where the folder is a batch's of `run`.

    Raises:
        UsageError: it lies elsewhere.
    """
    name, given = batch_name(directory), summary.batch
    window = _window(name)
    if not signed and window is None:
        return
    # Of another party's text only what is a batch's name is repeated.
    shown = f"batch {given}" if given is not None and _window(given) else "another batch"
    expected = name if window is None else f"{window}-{folder_name(campaign.epoch, campaign.fingerprint.hex())}"
    if (given, summary.window, name) != (name, window, expected):
        raise UsageError(
            f"input directory {directory} holds what hushcount {summary.hop} handed on for {shown}: it lies in the "
            "wrong place; fetch it again, and leave the folder the name that it was written under"
        )


def _window(name: str) -> str | None:
    """Return the window in the name of a batch of `hushcount run`; None for other names."""
    return name.partition("-")[0] if re.fullmatch(BATCH_NAME, name) else None
