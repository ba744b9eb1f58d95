"""What the disk altered: put aside for people to look at, and counted for the manifest."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from hushcount.formats.whole_files import sync
from shuffler.collector.metrics import Metrics
from shuffler.collector.windows.refusal_counts import REFUSED, RefusalCounts, write_counts
from shuffler.collector.windows.window_files import DAMAGED, JournalFile
from shuffler.collector.windows.window_notes import make_folder

_LOG = logging.getLogger("hushcount.collector")
_ASIDE = "damaged"


def note_damage(journal: JournalFile, frames: int) -> None:
    """Note how many frames or stretches of a journal are damaged, if any; done again, the last number counts."""
    folder, name = journal.path.parent, journal.path.stem
    earlier = list(folder.glob(f"{name}.*{DAMAGED}"))
    for path in earlier:
        path.unlink()
    if frames:
        (folder / f"{name}.{frames}{DAMAGED}").touch(0o600)
    if frames or earlier:
        sync(folder)


def damage_noted(folder: Path) -> int:
    """Return how many frames or stretches of journals of a campaign file in a window are damaged."""
    return sum(int(path.name.split(".")[1]) for path in folder.glob(f"*{DAMAGED}"))


def put_aside(root: Path, journal: JournalFile) -> None:
    """Move a damaged journal to `damaged/`, for people to look at."""
    folder = root / _ASIDE
    make_folder(folder, root)
    name = "-".join((journal.window, *journal.folder.split("/"), journal.path.name))
    journal.path.rename(folder / name)
    sync(folder)


def renew_refused(root: Path, folder: Path, fingerprint: str, metrics: Metrics) -> RefusalCounts:
    """Keep the damaged counts of a campaign file in a window in `damaged/`, begin anew, and return what is noted then.

    Args:
        root: directory of journals.
        folder: of the campaign file in the window.
        fingerprint: of the campaign file, hexadecimal.
        metrics: to count in.
    """
    aside = root / _ASIDE
    make_folder(aside, root)
    kept = aside / "-".join((*folder.relative_to(root).parts, REFUSED))
    kept.unlink(missing_ok=True)
    # A second name, not a move: without the file the window would have no manifest if it ended here.
    os.link(folder / REFUSED, kept)
    sync(aside)
    noted = RefusalCounts(fingerprint=fingerprint)
    write_counts(folder, noted)
    sync(folder)
    metrics.damaged_counts.inc()
    window, campaign, _ = folder.relative_to(root).parts
    _LOG.error("counts of refusals damaged", extra={"window": window, "campaign": campaign})
    return noted
