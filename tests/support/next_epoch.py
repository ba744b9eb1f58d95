"""A site whose runs plan its campaign anew: what clients send, and what is published and followed."""

from __future__ import annotations

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.epochs import CollectionFile, read_collection
from pipelines.audit.doctor import examine
from pipelines.epochs.tracked_items import TrackedItems
from tests.support.site import Site, at

NEW = "newcomer"
"""A value that the first dictionary does not list."""
AT_ONCE = 'review = false\nleast_length = "1d"\n'
"""What is found joins without anybody's approval, and whatever changes makes an epoch in the next window."""


def sent(new: int, number: int = 400) -> list[str]:
    """Return so many values: so many of the newcomer, half of the rest alpha and half beta."""
    return [NEW] * new + [["alpha", "beta"][index % 2] for index in range(number - new)]


def follow_with(site: Site, tail: str, campaign: str = "words") -> None:
    """From now on the site's runs plan the campaign anew, with these settings, and at once."""
    config = site.config.read_text().partition("[next_epoch.")[0]
    site.config.write_text(f"{config}[next_epoch.{campaign}]\n{AT_ONCE}{tail}")


def collection(site: Site) -> CollectionFile:
    """Return the epochs of the site's campaign."""
    return read_collection(site.root / "campaigns" / "words" / "collection.json")


def newest(site: Site, campaign: str = "words") -> Campaign:
    """Return the campaign file of the last epoch."""
    folder = site.root / "campaigns" / campaign
    return Campaign.read(folder / read_collection(folder / "collection.json").epochs[-1].file)


def after_newest(site: Site) -> list[object]:
    """Return the options of a campaign file that follows the last epoch."""
    return ["--after", newest(site).path]


def items(campaign: Campaign) -> tuple[str, ...]:
    """Return what the campaign's dictionary lists, sorted. It has them in random order, also those that joined."""
    dictionary = campaign.read_dictionary()
    assert dictionary is not None
    assert dictionary.is_in_random_order
    return tuple(sorted(dictionary.items))


def tracked(site: Site, campaign: str = "words") -> TrackedItems:
    """Return the items that a campaign follows."""
    return TrackedItems.model_validate_json((site.root / "campaigns" / campaign / "items.json").read_bytes())


def found(site: Site, name: str, day: float) -> tuple[str, str]:
    """Return the verdict of the one check with this name on a day, and what it says."""
    (one,) = (check for check in examine(site.deployment, at(day)) if check.name == name)
    return one.verdict, one.says
