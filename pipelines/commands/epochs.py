"""hushcount campaign publish and campaign review: begin an epoch, and decide on discovered values."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from rich.console import RenderableType
from typer import Option

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.signatures import signature_path
from hushcount.clock import MACHINE
from pipelines.console import options
from pipelines.console.answer import Answer, Sentence, note
from pipelines.console.tables import Table, stamp

if TYPE_CHECKING:
    from pipelines.deployment.campaigns import Epochs
    from pipelines.deployment.settings import Deployment


def publish_epoch(
    campaign: options.CampaignFile,
    config: options.Config = options.HERE,
    begins: Annotated[
        str | None, Option(help="Start, as in 2026-12-01T00:00:00Z.", show_default="the end of this window")
    ] = None,
    early: Annotated[bool, Option("--early", help="Begin before the present epoch reaches its least_length.")] = False,
) -> Answer:
    """Use it to begin a campaign, and for each new campaign file. The previous epoch ends when the new one begins.

    Dictionary and signature must lie beside the campaign file. To renew a signature, publish the file again.

    Example: hushcount campaign publish --campaign settings.json
    """
    from pipelines.deployment.campaigns import unnamed_collectors
    from pipelines.deployment.publish import publish
    from pipelines.deployment.settings import Deployment

    deployment = Deployment.read(config)
    part = publish(deployment, campaign, options.begins_at(begins), early=early)
    published = Campaign.read(campaign)
    if said := unnamed_collectors(deployment, published):
        note(f"warning: {said}: make the next epoch with hushcount campaign new --config {config}")
    line = f"epoch {part.epoch} begins {part.begins.isoformat()}: {part.file}"
    discovery = published.discovery
    # A redacted campaign file is not for clients, so it needs no signature.
    if not signature_path(campaign).exists() and (discovery is None or discovery.hash_key_commitment is None):
        note(f"warning: {campaign} is unsigned, so clients refuse it: hushcount campaign sign, then publish it again")
    return Answer(part.model_dump(mode="json"), [line])


def review(
    config: options.Config = options.HERE,
    campaign: options.CampaignId = None,
    approve: Annotated[list[str] | None, Option(help="Id of a value for the next epoch, or all.")] = None,
    reject: Annotated[list[str] | None, Option(help="Id of a value never to show again, or all.")] = None,
) -> Answer:
    """Use it if discovery finds values. Strangers may have sent them, so unprintable characters appear as codes.

    Example: hushcount campaign review --approve 0c5f1e9a2b3d --reject all
    """
    from pipelines.deployment.campaigns import require_campaign
    from pipelines.deployment.settings import Deployment
    from pipelines.epochs import tracked_items
    from pipelines.epochs.tracked_items import decide, id_of, read_decisions, shown, waiting

    deployment = Deployment.read(config)
    epochs = require_campaign(deployment.campaigns, campaign)
    decisions = decide(epochs, approve or (), reject or ()) if approve or reject else read_decisions(epochs.directory)
    values = waiting(epochs)
    listed = [
        {"id": id_of(one.item), "item": one.item, "first_seen": one.first_seen, "last_seen": one.last_seen}
        for one in values
    ]
    people: list[RenderableType] = []
    if values:
        cells = [(id_of(one.item), shown(one.item), one.first_seen or "", one.last_seen or "") for one in values]
        heads = ("id", "value", "first seen", "last seen")
        people.append(Table(f"{epochs.campaign}: discovered values to decide on", heads, cells, words=("value",)))
    approved, rejected = len(decisions.approved), len(decisions.rejected)
    people.append(f"{len(values):,} wait, {approved:,} approved, {rejected:,} rejected")
    if len(values) >= tracked_items.MOST_FOUND:
        people.append(
            f"the list is full: it keeps the {tracked_items.MOST_FOUND:,} values found last; reject unwanted values; "
            "found.csv of each batch has all values"
        )
    begins, says = _counted_from(deployment, epochs)
    if set(decisions.approved).difference(epochs.listed):
        people.append(says)
    decided = decisions.model_dump(mode="json", exclude={"format"})
    counted_from = None if begins is None else {"epoch": epochs.newest[1].epoch + 1, "begins": begins.isoformat()}
    return Answer({"campaign": epochs.campaign, "waiting": listed, **decided, "counted_from": counted_from}, people)


def layers(config: options.Config = options.HERE) -> Answer:
    """Use it before you make a campaign with --sample: it shows the buckets of each layer, and how many are free.

    Buckets stay taken when a campaign ends, because a limit may count what its clients paid.

    Example: hushcount campaign layers
    """
    from hushcount.privacy.layers import of_person, paid_for
    from pipelines.deployment.campaigns import published_files
    from pipelines.deployment.settings import Deployment
    from pipelines.epochs.samples import shares

    files = published_files(Deployment.read(config).campaigns)
    found = shares(files)
    newest = {one.id: one for one in sorted(files, key=lambda one: one.epoch)}
    _, paid = paid_for(newest.values())
    rows = [(one.layer, one.campaign, f"{one.share:.2%}", one.ranges) for one in found]
    taken: dict[str, float] = {}
    for one in found:
        taken[one.layer] = taken.get(one.layer, 0.0) + one.share
    free = [f"{layer}: {max(1.0 - share, 0.0):.2%} of its clients are free" for layer, share in taken.items()]
    heads = ("layer", "campaign", "asks", "buckets")
    people: list[RenderableType] = [Table("", heads, rows, words=("buckets",)), *free]
    says = map(Sentence, of_person(paid))
    data = {"shares": [asdict(one) for one in found], "epsilon": paid.epsilon, "discovery": paid.discovery_epsilon}
    return Answer(data, [*(people if rows else ["all campaigns ask all clients"]), *says])


def _counted_from(deployment: Deployment, epochs: Epochs) -> tuple[datetime | None, str]:
    """Return the earliest begin of the next epoch, and a sentence on when an approved value is counted.

    The begin is None if no run makes the next epoch by itself, or if a value is counted without a new epoch.
    """
    from pipelines.epochs.next_epoch import earliest_begin

    _, campaign = epochs.newest
    part, newest = deployment.file.next_epoch.get(campaign.id), epochs.collection.epochs[-1]
    if campaign.dictionary is None:
        says = "a value needs no new epoch: it is counted in each window whose discovery finds it"
        if campaign.mechanism is not None and not campaign.require_frequency().encoder.by_item:
            ask = deployment.command(f"ask item --campaign {campaign.id} --item VALUE")
            says = f"a value needs no new epoch, because a sketch counts all values: {ask} also asks earlier windows"
        return None, says
    before = "in windows before, clients sent them as 'other', so they cannot be asked there"
    if campaign.mechanism is None:
        before = "from then on clients no longer send them for discovery"
    counted = f"approved values are in the dictionary from epoch {campaign.epoch + 1} on"
    if part is None or newest.ends is not None:
        return None, (
            f"{counted}, which no run makes by itself: set [next_epoch.{campaign.id}], or run hushcount campaign new "
            f"--after with the longer dictionary; {before}"
        )
    begins = earliest_begin(deployment.windows.tiling.window_at, newest, part, MACHINE.now())
    return begins, f"{counted}, which begins {stamp(begins)} at the earliest; {before}"
