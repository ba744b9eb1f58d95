"""What one party hands to the next: a summary that says of which batch it is, and that belongs in that batch's folder.

The folder's name is the batch's. `hushcount run` names it WINDOW-EPOCH-FINGERPRINT; a job that is run by hand is given
it, as the last name of `--out`. So what was copied from one batch's folder to another's is refused, signed or not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import folder_name
from hushcount.errors import UsageError
from pipelines.files import storage
from pipelines.handover.batch_file import BATCH_NAME
from pipelines.outputs.staging import note_folder, write_summary
from pipelines.outputs.summary import Summary

if TYPE_CHECKING:
    from keys.store import KeyReference


def batch_name(directory: str) -> str:
    """Return the name of the batch that a directory is for: its own last name, not that of what a link leads to."""
    path = directory if storage.is_remote(directory) else os.path.abspath(directory)
    return path.rstrip("/").rpartition("/")[2]


def hand_on(
    directory: str, out: str, folders: Iterable[str], summary: Summary, signer: KeyReference | None, batch: str = ""
) -> None:
    """Write the summary of an output, which marks it as complete, last; signed, if there is a key.

    Args:
        directory: where it is made.
        out: where it will be; its last name is the batch's.
        folders: of the directory that another party reads.
        summary: of the hop; changed in place.
        signer: of the party; None: unsigned.
        batch: name of the batch, where it has one of its own.
    """
    summary["batch"] = batch or batch_name(out)
    summary["window"] = _window(summary["batch"])
    # Before it is signed.
    note_folder(directory, summary)
    if signer is not None:
        # A party that does not sign has no keys.
        from pipelines.handover.signed import write_signed

        write_signed(directory, folders, summary, signer)
    write_summary(directory, summary)


def require_own_folder(out: str, batch: str) -> None:
    """Refuse to sign a batch that has a name of its own into a folder of another name, where nobody would take it.

    Raises:
        UsageError: the output has another name.
    """
    if batch and batch != batch_name(out):
        raise UsageError(
            f"output directory {out} is for batch {batch}: what is signed must lie in a folder of that name"
        )


def require_place(directory: str, summary: Summary, campaign: Campaign, signed: bool) -> None:
    """Check that an output lies in the folder of its batch; unsigned ones only where the folder is a batch's of `run`.

    Raises:
        UsageError: it lies elsewhere.
    """
    name, given = batch_name(directory), summary.get("batch")
    window = _window(name)
    if not signed and window is None:
        return
    # Of another party's text only what is a batch's name is repeated.
    shown = f"batch {given}" if isinstance(given, str) and _window(given) else "another batch"
    expected = name if window is None else f"{window}-{folder_name(campaign.epoch, campaign.fingerprint.hex())}"
    if (given, summary.get("window"), name) != (name, window, expected):
        raise UsageError(
            f"input directory {directory} holds what hushcount {summary['hop']} handed on for {shown}: it lies in the "
            "wrong place; fetch it again, and leave the folder the name that it was written under"
        )


def _window(name: str) -> str | None:
    """Return the window in the name of a batch of `hushcount run`; None for other names."""
    return name.partition("-")[0] if re.fullmatch(BATCH_NAME, name) else None
