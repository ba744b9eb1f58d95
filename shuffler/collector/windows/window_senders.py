"""How the senders of a window are told apart, noted beside its journals: a restart may change it."""

from __future__ import annotations

from pathlib import Path

from hushcount.collection.segment_names import mark
from hushcount.formats.whole_files import sync, write_over
from hushcount.senders import KEY, WEAKEST, Authentication, as_way, weakest
from shuffler.collector.windows.window_files import make_folder, window_key


def note_authentication(root: Path, window: str, way: Authentication) -> None:
    """Note how the senders of a window are told apart; where that was another way before, the weaker one counts."""
    path = root / window / KEY
    noted = weakest((way, authentication_of(root, window))) if path.exists() else way
    if not path.exists() or path.read_bytes() != noted.encode():
        make_folder(path.parent, root)
        write_over(path, noted, 0o600)
        sync(path.parent)


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
