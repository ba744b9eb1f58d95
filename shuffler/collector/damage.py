"""What the disk altered: put aside for people to look at, and counted for the manifest."""

from __future__ import annotations

from pathlib import Path

from hushcount.files import sync
from shuffler.collector.window_files import JournalFile, make_folder

_ASIDE = "damaged"
_NOTE = ".damaged"


def note_damage(journal: JournalFile, frames: int) -> None:
    """Note how many frames or stretches of a journal are damaged; done again, the number counts once."""
    folder, name = journal.path.parent, journal.path.name.removesuffix(".journal")
    for earlier in folder.glob(f"{name}.*{_NOTE}"):
        earlier.unlink()
    (folder / f"{name}.{frames}{_NOTE}").touch(0o600)
    sync(folder)


def damage_noted(folder: Path) -> int:
    """Return how many frames or stretches of journals of a campaign file in a window are damaged."""
    return sum(int(path.name.split(".")[1]) for path in folder.glob(f"*{_NOTE}"))


def put_aside(root: Path, journal: JournalFile) -> None:
    """Move a damaged journal to `damaged/`, for people to look at."""
    folder = root / _ASIDE
    make_folder(folder, root)
    name = "-".join((journal.window, *journal.folder.split("/"), journal.path.name))
    journal.path.rename(folder / name)
    sync(folder)
