"""What a question is asked of: the results of one campaign, from a store or from result folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.collection.windows import is_window, window_names
from hushcount.errors import NotYet, UsageError
from hushcount.questions.counted import Counted
from hushcount.questions.selecting import Choice
from pipelines.deployment.campaigns import Epochs, require_campaign
from pipelines.deployment.settings import Deployment
from pipelines.epochs.tracked_items import ITEMS_FILE, TrackedItems, estimated_items, read_tracked
from pipelines.files import storage
from pipelines.handover.hops import outputs
from pipelines.jobs import results
from pipelines.outputs.received_summary import folder_of, read_summary
from pipelines.outputs.staging import SUMMARY

_COMPACT = str.maketrans("", "", "-: ")


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


@dataclass(frozen=True, eq=False)
class Source:
    """The results of one campaign that a question is asked of.

    Attributes:
        name: the campaign's id; of a result folder, the folder as it was given.
        places: one for each window and epoch, the oldest first; at least one.
        deployment, epochs: of a store; None for folders.
    """

    name: str
    places: tuple[Place, ...]
    deployment: Deployment | None = None
    epochs: Epochs | None = None

    @cached_property
    def counted(self) -> tuple[Counted, ...]:
        """The results, in the order of the places; UsageError if a tally is missing or damaged."""
        return read_all(self.places)

    @property
    def windows(self) -> tuple[str, ...]:
        """The names of the windows, the oldest first; a window with two epochs is there once."""
        return tuple(dict.fromkeys(place.window for place in self.places))

    @property
    def dictionary(self) -> Dictionary | None:
        """That of the newest result; None in an open domain."""
        return self.counted[-1].dictionary

    @cached_property
    def followed(self) -> tuple[str, ...]:
        """The items that the campaign follows, or that folders list or have estimates of; empty if none is known."""
        if self.tracked is not None:
            return tuple(one.item for one in self.tracked.items)
        if self.dictionary is not None:
            return self.dictionary.items
        # The folder of a summary has the estimates.
        there = [one for one in self.places if storage.exists(storage.join(one.directory, results.ESTIMATES))]
        return tuple(dict.fromkeys(item for place in there for item, _, _ in estimated_items(place.window)[0]))

    @cached_property
    def tracked(self) -> TrackedItems | None:
        """When each item was seen; None for folders."""
        return None if self.epochs is None else read_tracked(self.epochs.directory / ITEMS_FILE, self.epochs.listed)

    @property
    def choices(self) -> Mapping[str, Choice]:
        """The groups that the deployment names."""
        return {} if self.deployment is None else self.deployment.file.analyzer.groups

    @property
    def base(self) -> Path:
        """The directory from which the files of these are named."""
        return Path() if self.deployment is None else self.deployment.path.parent

    @property
    def first_seen(self) -> Mapping[str, str]:
        """The first window of each discovered item."""
        return {} if self.tracked is None else {one.item: one.first_seen or "" for one in self.tracked.discovered}

    def of(self, windows: Sequence[str]) -> Source:
        """Return the results of these windows only; a tally that was read is not read again."""
        chosen = set(windows)
        part = replace(self, places=tuple(place for place in self.places if place.window in chosen))
        if "counted" in self.__dict__:
            part.__dict__["counted"] = tuple(one for one in self.counted if one.window in chosen)
        return part

    def named(self, window: str) -> str:
        """Return the name of the one window that a text names: 2026-11-22, 2026-11-22T13:00Z, or as in names of files.

        Raises:
            UsageError: no window with results has that name, or several have.
        """
        if window in self.windows:
            return window
        begin = window.translate(_COMPACT)
        fits = [one for one in self.windows if begin and is_window(one) and one.startswith(begin.removesuffix("Z"))]
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise UsageError(
                f"window {window!a} may be {len(fits)} windows: name one, as {window_names(fits)[fits[0]]}"
            )
        raise UsageError(f"window is {window!a}, must be {self._range}")

    @property
    def _range(self) -> str:
        first, *others = window_names(self.windows).values()
        if not others:
            return f"{first}, the only one with results"
        return f"one of the {len(others) + 1:,} windows with results, {first} to {others[-1]}"


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


def from_store(
    deployment: Deployment, campaign: str | None, last: int | None = None, window: str | None = None
) -> Source:
    """Return the results of a campaign in a deployment's store.

    Args:
        campaign: id; None: the only one.
        last: only of so many windows, the newest; None: of all.
        window: only of this one, as `Source.named` reads it.

    Raises:
        UsageError: there is no such campaign or window.
        NotYet: there is no result yet.
    """
    return of_epochs(deployment, require_campaign(deployment.campaigns, campaign), last, window)


def of_epochs(deployment: Deployment, epochs: Epochs, last: int | None = None, window: str | None = None) -> Source:
    """Return the results of a campaign whose epochs have been read; as `from_store`."""
    places = places_of(deployment, epochs, last if window is None else None)
    if not places:
        raise NotYet(f"campaign {epochs.campaign} has no results yet: {deployment.command('run')} makes them")
    source = Source(epochs.campaign, tuple(places), deployment, epochs)
    return source if window is None else source.of([source.named(window)])


def from_folders(campaigns: Sequence[str] | None, directories: Sequence[str]) -> Source:
    """Return results of `hushcount job analyze`, in the order in which they are given.

    Args:
        campaigns: one campaign file for all, or one for each.
        directories: of results.

    Raises:
        UsageError: another number of campaign files, a file is missing or invalid, or a folder is given twice.
    """
    if campaigns is None:
        raise UsageError("--result says nothing without its campaign file: give --campaign FILE too")
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
            f"{campaign.epoch}, as --campaign gives it: give its own campaign file"
        )
    return Place(directory, campaign, folder_of(directory))
