"""Counts refusals and damage in a campaign's folder of a window, for its manifest; damaged files move to damaged/."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from hushcount.errors import FormatError
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_model
from hushcount.formats.whole_files import sync, write_over
from service.window_folders import ASIDE, link_aside, make_folder
from shuffler.collector.campaigns import Target
from shuffler.collector.metrics import Metrics
from shuffler.collector.windows.window_files import DAMAGED, REFUSED, JournalFile

_LOG = logging.getLogger("hushcount.collector")


class RefusalCounts(Part):
    """How many requests were refused for a campaign file in a window, by reason."""

    fingerprint: Hex32
    refused: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)


def note_target(root: Path, window: str, target: Target) -> Path:
    """Make and return a campaign file's folder in a window, so that there is a manifest even if no report arrives."""
    folder = root / window / target.folder
    if not (folder / REFUSED).exists():
        make_folder(folder, root)
        _write(folder, RefusalCounts(fingerprint=target.fingerprint.hex()))
        sync(folder)
    return folder


def add_refused(root: Path, folder: Path, target: Target, counts: Mapping[str, int], metrics: Metrics) -> None:
    """Add refusals to a folder's counts; the counts are durable when the caller has synced the folder."""
    earlier = read_counts(root, folder, target.fingerprint.hex(), metrics)
    _write(folder, RefusalCounts(fingerprint=earlier.fingerprint, refused=Counter(earlier.refused) + Counter(counts)))


def read_counts(root: Path, folder: Path, fingerprint: str | None, metrics: Metrics) -> RefusalCounts:
    """Return a folder's counts.

    Damaged counts are moved to damaged/, and new counts begin at 0, with the campaign file's fingerprint.

    Raises:
        FormatError: the counts are damaged, and the fingerprint is unknown: the campaign is not collected any more.
    """
    try:
        return parse_model(RefusalCounts, (folder / REFUSED).read_bytes(), str(folder / REFUSED), "is damaged")
    except FormatError:
        if fingerprint is None:
            raise
    link_aside(root, folder / REFUSED)
    empty = RefusalCounts(fingerprint=fingerprint)
    _write(folder, empty)
    sync(folder)
    metrics.damaged_counts.inc()
    window, campaign, _ = folder.relative_to(root).parts
    _LOG.error("counts of refusals damaged", extra={"window": window, "campaign": campaign})
    return empty


def note_damage(journal: JournalFile, frames: int) -> None:
    """Note how many frames or stretches of a journal are damaged, if any is damaged, and remove an earlier note."""
    folder, name = journal.path.parent, journal.path.stem
    earlier = list(folder.glob(f"{name}.*{DAMAGED}"))
    for path in earlier:
        path.unlink()
    if frames:
        (folder / f"{name}.{frames}{DAMAGED}").touch(0o600)
    if frames or earlier:
        sync(folder)


def damage_in(folder: Path) -> int:
    """Return how many frames or stretches of a folder's journals are damaged."""
    return sum(int(path.name.split(".")[1]) for path in folder.glob(f"*{DAMAGED}"))


def put_aside(root: Path, journal: JournalFile) -> None:
    """Move a damaged journal to damaged/, for an operator to look at."""
    aside = root / ASIDE
    make_folder(aside, root)
    journal.path.rename(aside / "-".join((journal.window, *journal.folder.split("/"), journal.path.name)))
    sync(aside)


def _write(folder: Path, counts: RefusalCounts) -> None:
    write_over(folder / REFUSED, counts.model_dump_json(), 0o600)
