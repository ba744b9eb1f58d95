"""The next epoch: discovered items join the dictionary, unseen ones leave it, parameters are planned anew ([J] 6.2).

What is published follows from what was released, the dictionary and the shares, and from the keys that are active: no
report is looked at. Of the ledger only its plain sums hold then, for an epoch's parameters depend on the results of the
one before (docs/adr/0009).
"""

from __future__ import annotations

import math
import tempfile
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, select

from hushcount.campaign import Campaign
from hushcount.collection import EpochPart
from hushcount.dictionary import Dictionary
from hushcount.errors import UsageError
from hushcount.planning import Objective
from keys.listing import PUBLIC_FILE
from keys.store import PublicFile, read_public
from pipelines.create import create_campaign
from pipelines.deployment import Deployment, NextEpochPart
from pipelines.epochs import Epochs
from pipelines.publish import publish
from pipelines.state import HOPS, MANIFESTS
from pipelines.tracked_items import (
    ITEMS_FILE,
    TrackedItems,
    estimated_items,
    found_items,
    read_tracked,
    updated,
    write_tracked,
)


def follow(
    connection: Connection, deployment: Deployment, epochs: Epochs, part: NextEpochPart, now: datetime
) -> EpochPart | None:
    """Bring a campaign's items up to date with all finished batches, and publish the next epoch if anything changed.

    Args:
        connection: to the state.
        deployment: whose.
        epochs: of the campaign.
        part: what may change.
        now: the present.

    Returns:
        The epoch that was published, or None.

    Raises:
        UsageError: the mechanism cannot be planned for the new dictionary.
    """
    _, campaign = epochs.newest
    dictionary = campaign.read_dictionary()
    if dictionary is None and not part.settings and campaign.mechanism is None:
        raise UsageError(f"campaign {campaign.id} has neither dictionary nor mechanism: there is nothing to plan anew")
    tracked = read_tracked(epochs.directory / ITEMS_FILE, () if dictionary is None else dictionary.items)
    shares: list[float] = []
    for batch in _finished(connection, epochs.campaign):
        if batch in tracked.batches:
            continue
        results = estimated_items(deployment.folder("results", epochs.campaign, batch))
        found = found_items(deployment.folder("found", epochs.campaign, batch)) if part.add_found else []
        tracked = updated(tracked, batch, found, [item for item, _, detected in results if detected])
        shares = sorted((count for _, count, _ in results), reverse=True) or shares
    share = _target_share(shares, part.target_rank) or tracked.target_share
    windows = tuple(
        sorted(
            connection.execute(
                select(MANIFESTS.c.window).where(MANIFESTS.c.campaign == epochs.campaign).distinct()
            ).scalars()
        )
    )
    published = _publish(deployment, campaign, tracked, windows, share, part, now)
    # Last: a run that dies before does all of it again, with the same result.
    write_tracked(epochs.directory / ITEMS_FILE, tracked.model_copy(update={"target_share": share}))
    return published


def _finished(connection: Connection, campaign: str) -> list[str]:
    """Return the batches that the analyzer was done with, oldest first."""
    done = select(HOPS.c.batch).where(HOPS.c.campaign == campaign, HOPS.c.hop.in_(("analyze", "discover"))).distinct()
    return sorted(connection.execute(done).scalars())


def _target_share(counts: list[float], rank: int | None) -> float | None:
    """Return the share of the item of that rank, to a power of two: noise must not make an epoch. None: unknown."""
    total = sum(max(count, 0.0) for count in counts)
    if rank is None or total <= 0.0:
        return None
    count = max(counts[min(rank, len(counts)) - 1], 1.0)
    return min(0.5, 2.0 ** round(math.log2(count / total)))


def _publish(
    deployment: Deployment,
    campaign: Campaign,
    tracked: TrackedItems,
    windows: tuple[str, ...],
    share: float | None,
    part: NextEpochPart,
    now: datetime,
) -> EpochPart | None:
    keys = _keys(deployment, campaign, now)
    wanted = tracked.kept(windows, part.unseen_windows)
    same_items = campaign.dictionary is None or Dictionary(wanted).digest == campaign.dictionary.digest
    same_keys = (keys.analyzer, keys.aux_server) == (campaign.keys.analyzer, campaign.keys.aux_server)
    if same_items and same_keys and share == tracked.target_share:
        return None
    discovery = None
    if campaign.discovery is not None:
        discovery = campaign.discovery.model_dump(exclude={"hash_key", "hash_key_commitment"})
    with tempfile.TemporaryDirectory(prefix="hushcount-epoch-") as scratch:
        listed = None
        if campaign.dictionary is not None:
            listed = Path(scratch) / "dictionary.txt"
            listed.write_text("".join(f"{item}\n" for item in wanted), encoding="utf-8")
        following = create_campaign(
            campaign.id,
            keys,
            Path(scratch),
            mechanism=None if campaign.mechanism is None else campaign.mechanism.name,
            epsilon=None if campaign.mechanism is None else campaign.mechanism.epsilon,
            dictionary=listed,
            settings=part.settings,
            objective=Objective() if share is None else Objective("target", share),
            shuffle=campaign.shuffle.model_dump(),
            discovery=discovery,
            epoch=campaign.epoch + 1,
        )
        made = Path(scratch) / f"{campaign.id}.json"
        following.write(made)
        return publish(deployment, made, now=now)


def _keys(deployment: Deployment, campaign: Campaign, now: datetime) -> PublicFile:
    """Return the keys that are active now, of those whose listing is here; else those of the campaign."""
    listed = PublicFile()
    directory = Path(deployment.keys)
    if (directory / PUBLIC_FILE).exists():
        listed = read_public([directory], now)
    return PublicFile(
        analyzer=listed.analyzer or campaign.keys.analyzer,
        aux_server=(listed.aux_server or campaign.keys.aux_server) if campaign.keys.aux_server else (),
    )
