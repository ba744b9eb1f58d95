"""What is noted of a window beside its journals, each in a file of its own: a restart may change what is set."""

from __future__ import annotations

import secrets
from pathlib import Path

from hushcount.collection.manifests import ID
from hushcount.collection.segment_names import mark
from hushcount.collection.windows import Window
from hushcount.errors import HushcountError
from hushcount.formats.whole_files import sync, write_over
from hushcount.senders import KEY, WEAKEST, Authentication, as_way, weakest

KEY_BYTES = 32
_SECONDS = "seconds"
_MOST_SECONDS = 366 * 86_400
_ID = "id"


def make_folder(path: Path, root: Path) -> None:
    """Make a directory under the root with its parents, all their names on the disk when this returns."""
    missing = [folder for folder in (path, *path.parents) if folder.is_relative_to(root) and not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
        sync(folder.parent)


def _note(root: Path, window: str, name: str, data: bytes | str) -> None:
    """Write a file of a window, on the disk when this returns."""
    folder = root / window
    make_folder(folder, root)
    write_over(folder / name, data, 0o600)
    sync(folder)


def window_key(root: Path, window: str) -> bytes:
    """Return the key of a window's token hash: the one on the disk, or a new one."""
    path = root / window / "key"
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = secrets.token_bytes(KEY_BYTES)
        _note(root, window, "key", key)
    if len(key) != KEY_BYTES:
        raise HushcountError(f"key {path} has {len(key)} bytes, must have {KEY_BYTES}: restore or remove it")
    return key


def set_seconds(root: Path, window: Window) -> None:
    """Note how long a window is, for its manifests: the length may be another when they are written."""
    path = root / window.name / _SECONDS
    seconds = str(int(window.length.total_seconds()))
    if not path.exists() or path.read_text(encoding="ascii", errors="replace") != seconds:
        _note(root, window.name, _SECONDS, seconds)


def seconds_of(root: Path, window: str) -> int:
    """Return how long a window is.

    Raises:
        FileNotFoundError: it is not noted.
        ValueError: what is noted is damaged.
    """
    seconds = int((root / window / _SECONDS).read_text(encoding="ascii"))
    if not 1 <= seconds <= _MOST_SECONDS:
        raise ValueError(f"{_SECONDS} of window {window} is {seconds}, must be from 1 to {_MOST_SECONDS}")
    return seconds


def note_authentication(root: Path, window: str, way: Authentication) -> None:
    """Note how the senders of a window are told apart; where that was another way before, the weaker one counts."""
    path = root / window / KEY
    noted = weakest((way, authentication_of(root, window))) if path.exists() else way
    if not path.exists() or path.read_bytes() != noted.encode():
        _note(root, window, KEY, noted)


def authentication_of(root: Path, window: str) -> Authentication:
    """Return the weakest way by which senders of a window were told apart; the weakest there is if none is noted."""
    try:
        return as_way((root / window / KEY).read_text(encoding="ascii", errors="replace"))
    except FileNotFoundError:
        return WEAKEST


def segments_mark(root: Path, window: str) -> str:
    """Return WAY-KEY of the segments of a window's next journals.

    Raises:
        HushcountError: the window's key is damaged.
    """
    return mark(authentication_of(root, window), window_key(root, window))


def manifest_id(root: Path, window: str) -> str:
    """Return the id of a window's manifests: the one on the disk, or a new one, which is there when this returns.

    Whatever another journal is called, it has another: nobody writes over a manifest but who wrote it.
    """
    path = root / window / _ID
    found = path.read_text(encoding="ascii", errors="replace") if path.exists() else ""
    if ID.fullmatch(found) is None:
        found = secrets.token_hex(8)
        _note(root, window, _ID, found)
    return found
