"""Manifests in the store: one is believed only of the place that it lies in."""

from __future__ import annotations

from hushcount.collection.epochs import folder_name
from hushcount.collection.manifests import Manifest, collector_of, read_manifest
from hushcount.errors import FormatError


def placed_manifest(data: bytes, path: str, where: str) -> Manifest:
    """Read a manifest.

    Args:
        data: the file's.
        path: the file.
        where: the folder in which it must lie, CAMPAIGN/EPOCH-FINGERPRINT/WINDOW.

    Raises:
        FormatError: it is none, or that of another window, campaign file or collector.
    """
    manifest = read_manifest(data, path)
    of = f"{manifest.campaign}/{folder_name(manifest.epoch, manifest.fingerprint)}/{manifest.window}"
    if (where, collector_of(path.rpartition("/")[2])) != (of, manifest.collector):
        raise FormatError(f"{path} is the manifest of {of} by {manifest.collector}: it lies in the wrong place")
    return manifest
