"""Segments of campaigns that this deployment has no file of: no run takes them, and nobody else would say so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container

from hushcount.collection.envelopes import ENVELOPES
from hushcount.collection.epochs import COLLECTION_FILE
from hushcount.errors import HushcountError
from hushcount.wire.blocks import read_header
from pipelines.deployment.settings import Deployment
from pipelines.files import storage


def unclaimed(deployment: Deployment, campaigns: Container[str]) -> dict[str, str]:
    """Return a sentence for each campaign of which segments wait and no file is here, by its id.

    Args:
        deployment: whose store it is; where the shuffler does not run, nothing is looked at.
        campaigns: ids of those that have files, valid or not.
    """
    if "shuffler" not in deployment.file.parties:
        return {}
    root = deployment.folder("segments")
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for path, _ in storage.list_tree(root, "*/*/*/*/*.blocks"):
        campaign, _, _, stream, _ = storage.relative(path, root).split("/")
        if campaign not in campaigns:
            found[campaign].append((stream, path))
    return {campaign: _sentence(deployment, campaign, listed) for campaign, listed in sorted(found.items())}


def _sentence(deployment: Deployment, campaign: str, listed: list[tuple[str, str]]) -> str:
    numbers = dict.fromkeys(ENVELOPES, 0)
    unreadable = 0
    for stream, path in listed:
        try:
            with storage.open_read(path) as stream_of_bytes:
                records = read_header(stream_of_bytes, path).records
        except (HushcountError, OSError):
            unreadable += 1
            continue
        if stream in numbers:
            numbers[stream] += records
    what = [f"{number:,} {stream}" for stream, number in numbers.items() if number]
    what += [f"{unreadable:,} segments that cannot be read"] if unreadable else []
    return (
        f"{campaign}: {' and '.join(what) or 'segments'} wait in {deployment.folder('segments', campaign)}, and no run "
        f"takes them: {deployment.campaigns / campaign} has no {COLLECTION_FILE}; publish the campaign file there with "
        "hushcount epoch publish, or remove them if they are of no campaign of yours"
    )
