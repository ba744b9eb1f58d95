"""Notes (small files) about each window.

A note is durable before it is needed, because a restart may change the settings.

No window that ended is opened again, whatever the clock says, because its manifest may be in the store.
"""

from __future__ import annotations

import logging
import secrets
from datetime import datetime, timedelta
from pathlib import Path

from hushcount.collection.manifests import ID, MOST_SECONDS
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import Window, window_start
from hushcount.errors import HushcountError
from hushcount.formats.whole_files import sync, write_over
from hushcount.senders import KEY, WEAKEST, Authentication, as_way, weakest
from service.window_folders import kept_windows, make_folder

_LOG = logging.getLogger("hushcount.service")
KEY_BYTES = 32
_OVER = "over"
_SECONDS = "seconds"
_ID = "id"


def _note(root: Path, window: str, name: str, data: bytes | str) -> None:
    """Write a file into a window's folder, or into the root if `window` is ""; the file is durable at the end."""
    folder = root / window
    make_folder(folder, root)
    write_over(folder / name, data, 0o600)
    sync(folder)


def _noted(path: Path) -> str | None:
    """Return the text of a note, or None if there is no note; no caller accepts the text of a damaged note."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return None


def window_key(root: Path, window: str) -> bytes:
    """Return the key of a window's token hash: the key on the disk, or a new key."""
    path = root / window / "key"
    if not path.exists():
        _note(root, window, "key", secrets.token_bytes(KEY_BYTES))
    key = path.read_bytes()
    if len(key) != KEY_BYTES:
        raise HushcountError(f"key {path} has {len(key)} bytes, must have {KEY_BYTES}: restore or remove it")
    return key


def set_seconds(root: Path, window: Window) -> None:
    """Note a window's length, because the settings may have changed when its manifests are written."""
    seconds = str(int(window.length.total_seconds()))
    if _noted(root / window.name / _SECONDS) != seconds:
        _note(root, window.name, _SECONDS, seconds)


def seconds_of(root: Path, window: str) -> int:
    """Return how long a window is; FileNotFoundError if there is no note, ValueError if the note is damaged."""
    seconds = int((root / window / _SECONDS).read_text(encoding="ascii"))
    if not 1 <= seconds <= MOST_SECONDS:
        raise ValueError(f"{_SECONDS} of window {window} is {seconds}, must be from 1 to {MOST_SECONDS}")
    return seconds


def seconds_or(root: Path, window: str, tiling: Tiling) -> int:
    """Return a window's length; without a valid note, the time to the next end of a window of the tiling."""
    try:
        return seconds_of(root, window)
    except (FileNotFoundError, ValueError):
        start = window_start(window)
        seconds = int((tiling.window_at(start).end - start).total_seconds())
        _LOG.warning("length of window not noted", extra={"window": window, "seconds": seconds})
        return seconds


def note_authentication(root: Path, window: str, way: Authentication) -> None:
    """Note how senders were authenticated in a window; if there were several ways, note the weakest."""
    noted = _noted(root / window / KEY)
    weaker = way if noted is None else weakest((way, as_way(noted)))
    if noted != weaker:
        _note(root, window, KEY, weaker)


def authentication_of(root: Path, window: str) -> Authentication:
    """Return the weakest authentication of a window's senders; without a note, the weakest way of all."""
    noted = _noted(root / window / KEY)
    return WEAKEST if noted is None else as_way(noted)


def manifest_id(root: Path, window: str) -> str:
    """Return the id of a window's manifests: the id on the disk, or a new id.

    Each directory has its own ids, so that no service overwrites another's manifests.
    """
    id = _noted(root / window / _ID) or ""
    if ID.fullmatch(id) is None:
        id = secrets.token_hex(8)
        _note(root, window, _ID, id)
    return id


def note_over(root: Path, end: datetime) -> None:
    """Note when a window ended: no later window begins before that time."""
    over = _over(root)
    if over is None or over < end:
        _note(root, "", _OVER, Window(end, end).name)


def open_window(root: Path, now: datetime, tiling: Tiling) -> Window:
    """Return the window that counts reports now, and note that all other windows on the disk are over.

    The newest window ends at its noted end, even if the settings have another tiling by now. The next window begins
    where the last window ended, so that no two windows have the same name; if the clock went back, the next window
    begins later than now.
    """
    begun = [_noted_window(root, name, tiling) for name in kept_windows(root)]
    over = _over(root)
    running = [one for one in begun[-1:] if one.start <= now < one.end and (over is None or over <= one.start)]
    if ended := [one.end for one in begun if one not in running]:
        note_over(root, max(ended))
    return running[0] if running else tiling.after(_over(root), now)


def _noted_window(root: Path, name: str, tiling: Tiling) -> Window:
    start = window_start(name)
    return Window(start, start + timedelta(seconds=seconds_or(root, name, tiling)))


def _over(root: Path) -> datetime | None:
    """Return when the newest window that is over ended; None: no window ended yet."""
    noted = _noted(root / _OVER)
    if noted is None:
        return None
    # The text is stripped: an operator may write this file after the clock was wrong, and editors add a line end.
    try:
        return window_start(noted.strip())
    except ValueError:
        raise HushcountError(
            f"{root / _OVER} is damaged: write into it the time at which the newest window in the store ended, such as "
            "20261121T000000Z"
        ) from None
