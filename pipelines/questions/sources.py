"""Read the results that a question is about, from a store or from result folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone, tzinfo
from functools import cached_property
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.clock import MACHINE
from hushcount.collection.windows import is_window, window_names
from hushcount.errors import NotYet, UsageError
from hushcount.questions.counted import Counted
from hushcount.questions.selecting import Choice
from hushcount.strata import Where
from pipelines.deployment.campaigns import Epochs, require_campaign
from pipelines.deployment.settings import Deployment
from pipelines.epochs.tracked_items import ITEMS_FILE, TrackedItems, estimated_items, read_tracked
from pipelines.files import storage
from pipelines.handover.hops import outputs
from pipelines.jobs import results
from pipelines.log.log import Logs
from pipelines.outputs.received_summary import folder_of, read_summary
from pipelines.outputs.staging import SUMMARY
from pipelines.questions.breakdown import text_of
from pipelines.windows.collecting import collecting
from pipelines.windows.intake import intake_of
from pipelines.windows.rules import calendar_of
from pipelines.windows.stored import stored_files


@dataclass(frozen=True)
class Place:
    """One result of a campaign.

    Attributes:
        window: name of the result's window; for a result folder, the path that the user gave.
        directory: directory of the result's files.
    """

    window: str
    campaign: Campaign
    directory: str

    def read(self) -> Counted:
        """Read the tally of the result; UsageError for the same reasons as in `results.read_tally`."""
        tally = results.read_tally(storage.join(self.directory, results.TALLY), self.campaign)
        return Counted(self.campaign, tally, self.window)


def read_all(places: Sequence[Place]) -> tuple[Counted, ...]:
    """Read the tallies of places, in the order of the places; the dictionary of an epoch is read only once."""
    read: dict[bytes, Dictionary | None] = {}
    found = []
    for place in places:
        counted, campaign = place.read(), place.campaign
        if campaign.fingerprint not in read:
            read[campaign.fingerprint] = campaign.read_dictionary()
        # Fill the cached property `dictionary`, so that each dictionary is read only once.
        counted.__dict__["dictionary"] = read[campaign.fingerprint]
        found.append(counted)
    return tuple(found)


@dataclass(frozen=True, eq=False)
class Source:
    """The results that a question is about.

    Attributes:
        name: id of the campaign; if the folders are of several campaigns, the ids of all of them.
        places: at least one result, one for each window and epoch, the oldest first.
        deployment, epochs: deployment and epochs of a store; None for folders.
        fits: sentences on how the windows fill the range from which they were chosen.
    """

    name: str
    places: tuple[Place, ...]
    deployment: Deployment | None = None
    epochs: Epochs | None = None
    fits: tuple[str, ...] = ()

    @cached_property
    def counted(self) -> tuple[Counted, ...]:
        """The results, in the order of the places; UsageError if a tally is missing or damaged."""
        return read_all(self.places)

    @property
    def heading(self) -> str:
        """The name, as it stands in headings (`Campaign.heading`)."""
        return " and ".join(dict.fromkeys(place.campaign.heading for place in self.places))

    @property
    def windows(self) -> tuple[str, ...]:
        """The names of the windows, the oldest first; the name of a window with two epochs is listed once."""
        return tuple(dict.fromkeys(place.window for place in self.places))

    @property
    def zone(self) -> tzinfo:
        """The zone in which the days of windows begin."""
        return timezone.utc if self.deployment is None else self.deployment.windows.tiling.clock

    @property
    def has_days(self) -> bool:
        """Whether windows are days, of UTC or of the zone."""
        return self.deployment is not None and self.deployment.windows.tiling.length in ("day", timedelta(days=1))

    def names(self, windows: Iterable[str]) -> dict[str, str]:
        """Return the names of windows as people read them; a result folder's name is its path.

        Args:
            windows: also as `hushcount.questions.sides.added_up` names windows that it adds up: FIRST to LAST.
        """
        ends = {window: window.split(" to ") for window in windows}
        named = window_names({end for both in ends.values() for end in both if is_window(end)}, self.zone)
        return {window: " to ".join(named.get(end, end) for end in both) for window, both in ends.items()}

    @property
    def dictionary(self) -> Dictionary | None:
        """The dictionary of the newest result; None in an open domain."""
        return self.counted[-1].dictionary

    @cached_property
    def followed(self) -> tuple[str, ...]:
        """The items that the campaign follows; for folders, listed or else estimated items; empty if none is known."""
        if self.tracked is not None:
            return tuple(one.item for one in self.tracked.items)
        if self.dictionary is not None:
            return self.dictionary.items
        # If there is no dictionary, take the items for which the folders have estimates.
        there = [one for one in self.places if storage.exists(storage.join(one.directory, results.ESTIMATES))]
        return tuple(dict.fromkeys(item for place in there for item, _, _ in estimated_items(place.window)[0]))

    @cached_property
    def tracked(self) -> TrackedItems | None:
        """The items that the campaign follows, with the windows in which they were seen; None for folders."""
        return None if self.epochs is None else read_tracked(self.epochs.directory / ITEMS_FILE, self.epochs.listed)

    @property
    def choices(self) -> Mapping[str, Choice]:
        """The groups of items in the deployment file, by name."""
        return {} if self.deployment is None else self.deployment.file.analyzer.groups

    @property
    def base(self) -> Path:
        """The directory to which the paths of the groups' files are relative."""
        return Path() if self.deployment is None else self.deployment.path.parent

    @property
    def first_seen(self) -> Mapping[str, str]:
        """The first window of each discovered item."""
        return {} if self.tracked is None else {one.item: one.first_seen or "" for one in self.tracked.discovered}

    @cached_property
    def ends(self) -> Mapping[str, datetime]:
        """When each window ends, by name; empty for folders."""
        if self.deployment is None:
            return {}
        calendar = calendar_of(self.deployment, Logs(self.deployment).read(self.name))
        return {name: calendar.named(name).end for name in self.windows}

    def of(self, windows: Sequence[str], fits: Sequence[str] = ()) -> Source:
        """Return a source with the results of these windows only; a tally that was read is not read again."""
        chosen = set(windows)
        places = tuple(place for place in self.places if place.window in chosen)
        part = replace(self, places=places, fits=(*self.fits, *fits))
        if "counted" in self.__dict__:
            part.__dict__["counted"] = tuple(one for one in self.counted if one.window in chosen)
        return part

    def within(self, where: Where) -> Source:
        """Return the parts of the results that have public coordinates; UsageError: no atom lies within them."""
        parts = [(place, one.within(where)) for place, one in zip(self.places, self.counted, strict=True)]
        there = [(place, one) for place, one in parts if one is not None]
        if not there:
            raise UsageError(
                f"{text_of(where)} has the minimum batch by itself in none of these windows: leave it out, or choose "
                "others"
            )
        source = replace(self, places=tuple(place for place, _ in there))
        source.__dict__["counted"] = tuple(one for _, one in there)
        return source


def in_zone(zone: tzinfo) -> str:
    """Return the words that follow days of a zone; empty for UTC."""
    return "" if str(zone) == "UTC" else f" in {zone}"


def places_of(deployment: Deployment, epochs: Epochs, last: int | None = None) -> list[Place]:
    """Return the results of the `last` newest windows (None: of all windows), the oldest result first."""
    found: list[Place] = []
    for batch, path in sorted(outputs(deployment, "results", epochs.campaign), reverse=True):
        campaign = epochs.campaigns.get(batch.file)
        if campaign is None:
            continue
        if last is not None and len({place.window for place in found} | {batch.window}) > last:
            break
        where = folder_of(path.rpartition("/")[0], batch=batch.name)
        # A batch of a retired key has no tally, because its reports could not be opened.
        if storage.exists(storage.join(where, results.TALLY)):
            found.append(Place(batch.window, campaign, where))
    return found[::-1]


def from_store(deployment: Deployment, campaign: str | None, last: int | None = None) -> Source:
    """Return the results of a campaign in a deployment's store.

    Args:
        campaign: id of the campaign; None: the only campaign.
        last: number of newest windows; None: all windows.

    Raises:
        UsageError: the campaign does not exist.
        NotYet: the campaign has no result yet.
    """
    return of_epochs(deployment, require_campaign(deployment.campaigns, campaign), last)


def of_epochs(deployment: Deployment, epochs: Epochs, last: int | None = None) -> Source:
    """Return the results of the campaign with these epochs; all else is as in `from_store`."""
    places = places_of(deployment, epochs, last)
    if not places:
        raise NotYet(f"campaign {epochs.campaign} has no results yet: {_outlook(deployment, epochs)}")
    return Source(epochs.campaign, tuple(places), deployment, epochs)


def _outlook(deployment: Deployment, epochs: Epochs) -> str:
    fold, name = Logs(deployment).read(epochs.campaign), epochs.campaign
    files = stored_files(deployment, campaign=name).get(name, ()) if deployment.shuffles else ()
    listed = intake_of(deployment, fold, files).listed
    return "; ".join(collecting(deployment, epochs, fold, listed, MACHINE.now()).outlook)


def from_folders(campaigns: Sequence[str] | None, directories: Sequence[str]) -> Source:
    """Return results of `hushcount job analyze`, in the order in which they are given.

    Args:
        campaigns: one campaign file for all results, or one campaign file for each result.
        directories: directories of results.

    Raises:
        UsageError: the number of campaign files is wrong, a file is missing or invalid, or a folder is given twice.
    """
    if campaigns is None:
        raise UsageError("--result needs its campaign file: give --campaign FILE too")
    if len(campaigns) not in (1, len(directories)):
        raise UsageError(
            f"--campaign is given {len(campaigns)} times for {len(directories)} results, must be given once, or once "
            "for each --result"
        )
    if len(set(directories)) < len(directories):
        raise UsageError(f"--result {max(directories, key=directories.count)} is given twice: give each result once")
    files = {path: Campaign.read(Path(path)) for path in campaigns}
    each = [files[path] for path in (campaigns if len(campaigns) > 1 else [campaigns[0]] * len(directories))]
    places = tuple(_place(campaign, path) for campaign, path in zip(each, directories, strict=True))
    names = {one.id: None for one in each}
    return Source(" and ".join(names), places)


def _place(campaign: Campaign, directory: str) -> Place:
    if not storage.exists(directory):
        raise UsageError(f"result {directory} does not exist: give a folder that hushcount job analyze wrote")
    mark = storage.join(directory, SUMMARY)
    if storage.exists(mark) and (made := read_summary(mark)).fingerprint != campaign.fingerprint.hex():
        raise UsageError(
            f"result {directory} is of campaign {made.campaign}, epoch {made.epoch}, must be of {campaign.id}, epoch "
            f"{campaign.epoch}, as --campaign says: give the campaign file of the result"
        )
    return Place(directory, campaign, folder_of(directory))
