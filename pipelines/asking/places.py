"""The results of a campaign, in a store or in folders: one for each window and epoch that has a tally."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.questions.counted import Counted
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.jobs import results
from pipelines.log.outputs import outputs
from pipelines.outputs.received_summary import folder_of


@dataclass(frozen=True)
class Place:
    """One result of a campaign.

    Attributes:
        window: its name; of a result folder, the folder as it was given.
        directory: of its files.
    """

    window: str
    campaign: Campaign
    directory: str

    def read(self) -> Counted:
        """Read its tally; UsageError as `results.read_tally`."""
        tally = results.read_tally(storage.join(self.directory, results.TALLY), self.campaign)
        return Counted(self.campaign, tally, self.window)


def read_all(places: Sequence[Place]) -> tuple[Counted, ...]:
    """Read the tallies of places, in their order; the dictionary of an epoch is read once."""
    read: dict[bytes, Dictionary | None] = {}
    found = []
    for place in places:
        counted, campaign = place.read(), place.campaign
        if campaign.fingerprint not in read:
            read[campaign.fingerprint] = campaign.read_dictionary()
        # As a cached property would.
        counted.__dict__["dictionary"] = read[campaign.fingerprint]
        found.append(counted)
    return tuple(found)


def places_of(deployment: Deployment, epochs: Epochs, last: int | None = None) -> list[Place]:
    """Return the results of the last windows, or of all, the oldest first."""
    found: list[Place] = []
    for batch, path in sorted(outputs(deployment, "results", epochs.campaign), reverse=True):
        campaign = epochs.campaigns.get(batch.file)
        if campaign is None:
            continue
        if last is not None and len({place.window for place in found} | {batch.window}) > last:
            break
        where = folder_of(path.rpartition("/")[0], batch=batch.name)
        # A batch with a retired key has no tally: its reports are counted, and nothing more.
        if storage.exists(storage.join(where, results.TALLY)):
            found.append(Place(batch.window, campaign, where))
    return found[::-1]
