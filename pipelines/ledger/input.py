"""Which input a release is made from: digests of its files, the same in whatever order and under whatever names."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from pipelines.files import storage
from pipelines.files.block_files import SUFFIX


def outline(directory: str) -> str:
    """Return the digest of the sizes of a directory's block files; no file is opened."""
    return _digest([f"{size}" for _, size in storage.list_files(directory, SUFFIX)])


def manifest(directory: str) -> str:
    """Return the digest of the contents of a directory's block files.

    Sealed reports are random to whoever cannot open them, so that no two batches are alike, whatever they hold.
    """
    return manifest_of([path for path, _ in storage.list_files(directory, SUFFIX)])


def manifest_of(paths: Iterable[str]) -> str:
    """Return the digest of the contents of these files, as `manifest` does of a directory that holds no others."""
    return _digest([storage.digest_of(path)[1] for path in paths])


def _digest(parts: list[str]) -> str:
    return hashlib.blake2b("\n".join(sorted(parts)).encode(), digest_size=32).hexdigest()
