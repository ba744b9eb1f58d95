"""Which windows may be opened: none that ended, whatever the clock says, for its manifest may be in the store."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from hushcount.collection.windows import Window, is_window, window_at, window_start
from hushcount.errors import HushcountError
from hushcount.formats.whole_files import sync, write_over

_ENDED = "ended"


def note_ended(root: Path, windows: list[str]) -> None:
    """Note that windows ended: none up to the newest of them is opened again, whatever the clock says."""
    ended = _ended(root)
    newest = max([ended, *windows])
    if newest != ended:
        write_over(root / _ENDED, newest, 0o600)
        sync(root)


def first_open_window(root: Path, now: Window, length: timedelta) -> Window:
    """Return the window in which reports may be counted: the present one, or a later one if the clock went back."""
    ended = _ended(root)
    if now.name > ended:
        return now
    # Any window of the present length that begins after the one that ended.
    last = window_start(ended)
    return window_at(last, length).next


def _ended(root: Path) -> str:
    """Return the name of the newest window that ended; names have the order of time, and "" comes first."""
    path = root / _ENDED
    try:
        # An editor ends the line, and the repair of a wrong clock is to write this file.
        ended = path.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return ""
    if not is_window(ended):
        raise HushcountError(
            f"{path} is damaged: write the name of the newest window in the store into it, as 20261121T000000Z"
        )
    return ended
