"""Write to key directories: whole, under a lock, and nothing of it if a step fails."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from hushcount.errors import UsageError
from hushcount.formats.whole_files import write_new
from keys import records
from keys.listing import ListedKey
from keys.private import PrivateKey, SigningKey
from keys.roles import SIGNING_ROLES, Role


def new_key(role: Role, begins: datetime, days: int, overlap_seconds: int, wrap: str | None) -> tuple[ListedKey, str]:
    """Make a key pair: what public.json lists, and the content of its private key file."""
    if days < 1:
        raise UsageError(f"days is {days}, must be at least 1")
    key = SigningKey.generate() if role in SIGNING_ROLES else PrivateKey.generate()
    try:
        ends = begins + timedelta(days)
    except OverflowError:
        raise UsageError(f"days is {days}, must end before the year 10000") from None
    listed = ListedKey(
        role=role,
        id=key.id,
        key=key.public_key.hex(),
        not_before=begins,
        not_after=ends,
        overlap_seconds=overlap_seconds,
    )
    return listed, records.record(role, key.id, key.secret_for_storage(), wrap)


@contextmanager
def writing(directory: Path) -> Iterator[Callable[[Path, str, int], None]]:
    """Yield a function that writes new files to a key directory; if the block fails they are removed again.

    The directory is locked meanwhile, so that two commands do not change one listing.

    Raises:
        UsageError: the directory cannot be written.
    """
    made: list[Path] = []

    def write(path: Path, content: str, mode: int) -> None:
        write_new(path, content, mode)
        made.append(path)

    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _locked(directory):
            yield write
    except OSError as error:
        _remove(made)
        raise UsageError(f"cannot write keys to {directory}: {error.strerror}") from None
    except BaseException:
        _remove(made)
        raise


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
