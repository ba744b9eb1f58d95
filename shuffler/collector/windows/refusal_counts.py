"""How many requests were refused, for the manifest of a campaign file in a window; kept in its folder there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_model
from hushcount.formats.whole_files import sync, write_over
from shuffler.collector.campaigns import Target
from shuffler.collector.windows.window_notes import make_folder

REFUSED = "refused.json"


class RefusalCounts(Part):
    """What is noted of a campaign file in a window beside its journals."""

    fingerprint: Hex32
    refused: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)


def note_target(root: Path, window: str, target: Target) -> Path:
    """Make the folder of a campaign file in a window, so that it gets a manifest though nothing comes; return it."""
    folder = root / window / target.folder
    if not (folder / REFUSED).exists():
        make_folder(folder, root)
        write_counts(folder, RefusalCounts(fingerprint=target.fingerprint.hex()))
        sync(folder)
    return folder


def add_refused(folder: Path, counts: Mapping[str, int]) -> None:
    """Add to the numbers of refused requests of a campaign file in a window; they are on the disk once it is synced.

    Raises:
        FormatError: the numbers on the disk are damaged.
    """
    noted = read_counts(folder)
    write_counts(folder, RefusalCounts(fingerprint=noted.fingerprint, refused=Counter(noted.refused) + Counter(counts)))


def read_counts(folder: Path) -> RefusalCounts:
    """Return what is noted in a folder.

    Raises:
        FormatError: it is damaged.
    """
    return parse_model(RefusalCounts, (folder / REFUSED).read_bytes(), str(folder / REFUSED), "is damaged")


def write_counts(folder: Path, noted: RefusalCounts) -> None:
    """Write what is noted in a folder, in the place of what was; it is on the disk once the folder is synced."""
    write_over(folder / REFUSED, noted.model_dump_json(), 0o600)
