"""Which items a campaign follows from epoch to epoch: those given, and those discovered, with when each was seen."""

from __future__ import annotations

import math
from collections.abc import Set
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from hushcount.errors import FormatError
from hushcount.formats.models import Part
from hushcount.formats.reading import TABLE_BYTES, parse_model, read_file
from hushcount.formats.whole_files import write_over
from hushcount.items import fault_of_item
from pipelines.files import storage
from pipelines.files.permissions import mode_in
from pipelines.jobs.results import ESTIMATES, FOUND, TALLY, read_csv_rows, read_found_items
from pipelines.outputs.received_summary import folder_of, read_summary
from pipelines.outputs.staging import SUMMARY

ITEMS_FILE = "items.json"
MOST_FOUND = 10_000
"""How many found items that nobody decided about are followed: strangers decide what is found."""


def _item(value: str) -> str:
    if (fault := fault_of_item(value)) is not None:
        raise ValueError(fault)
    return value


class TrackedItem(Part):
    """One item. Windows are named by their start; `last_seen` is the last one in which it was found or detected."""

    item: Annotated[str, AfterValidator(_item)]
    source: Literal["given", "discovered"]
    first_seen: str | None = None
    last_seen: str | None = None


class TrackedItems(Part):
    """The items of a campaign, the batches that they were brought up to date with, and the epochs that have them.

    `epochs` holds fingerprints: of the newest epoch, and of the one made after it, which may not be published yet.
    """

    format: Literal[1] = 1
    items: tuple[TrackedItem, ...]
    batches: tuple[str, ...] = ()
    epochs: tuple[str, ...] = ()
    target_share: float | None = Field(default=None, description="share to plan for, of the newest batch that shows it")

    def taken_over(self, epoch: str, listed: tuple[str, ...], before: Set[str]) -> TrackedItems:
        """Return the items after an epoch that was published by hand: what its dictionary has more of is given.

        So is a discovered item that had aged out and that the operator put back. Items that were given and are not in
        it any more are dropped; when which item was seen is kept.

        Args:
            epoch: fingerprint of its campaign file; one of `epochs` changes nothing.
            listed: its dictionary.
            before: what the epochs before it listed.
        """
        if epoch in self.epochs:
            return self
        known = {one.item: one for one in self.items}
        items = [known.get(item) or TrackedItem(item=item, source="given") for item in listed]
        items = [one if one.item in before else one.model_copy(update={"source": "given"}) for one in items]
        items += [one for one in self.items if one.source == "discovered" and one.item not in set(listed)]
        return self.model_copy(update={"items": tuple(items), "epochs": (epoch,)})

    def without(self, rejected: Set[str]) -> TrackedItems:
        """Return the items without those that were found and rejected."""
        items = tuple(one for one in self.items if one.source == "given" or one.item not in rejected)
        return self.model_copy(update={"items": items})

    def kept(self, windows: tuple[str, ...], unseen: int) -> tuple[str, ...]:
        """Return the items to collect next: those given, and those discovered that were seen in the last windows.

        Args:
            windows: those in whose results it could have been seen, ascending.
            unseen: after so many windows in which it was neither found nor detected a discovered item ages out.
        """
        oldest = windows[-unseen] if len(windows) >= unseen else ""
        return tuple(
            tracked.item for tracked in self.items if tracked.source == "given" or (tracked.last_seen or "") >= oldest
        )


def read_tracked(path: Path, given: tuple[str, ...]) -> TrackedItems:
    """Read the items of a campaign; where there is no file yet, those of its first dictionary.

    Raises:
        FormatError: the file is damaged.
    """
    if not path.exists():
        return TrackedItems(items=tuple(TrackedItem(item=item, source="given") for item in given))
    return parse_model(TrackedItems, read_file(path, "tracked items", TABLE_BYTES), str(path))


def write_tracked(path: Path, tracked: TrackedItems) -> None:
    """Write the items of a campaign, in one step."""
    # What was found is for those who read results, though it lies among files that everybody may read.
    write_over(path, tracked.model_dump_json(indent=1) + "\n", mode_in(path.parent))


def updated(
    tracked: TrackedItems, batch: str, found: list[str], detected: list[str], settled: Set[str] = frozenset()
) -> TrackedItems:
    """Return the items after one batch; a batch that they are up to date with changes nothing.

    Args:
        tracked: the items so far.
        batch: its name, which begins with its window's.
        found: what discovery revealed; of all that is not settled the MOST_FOUND seen last are followed, so that who
            has many values found at once shuts out none that is found later.
        detected: items of the dictionary whose estimate says that somebody holds them.
        settled: items that an operator approved, or that clients have been given.
    """
    if batch in tracked.batches:
        return tracked
    window = batch.partition("-")[0]
    items = {one.item: one for one in tracked.items}
    revealed = frozenset(found)
    for item in (*detected, *found):
        if item in items:
            seen = {
                "first_seen": _first(items[item].first_seen, window),
                "last_seen": _last(items[item].last_seen, window),
            }
            items[item] = items[item].model_copy(update=seen)
        elif item in revealed:
            items[item] = TrackedItem(item=item, source="discovered", first_seen=window, last_seen=window)
    open_ = [one for one in items.values() if one.source == "discovered" and one.item not in settled]
    for one in sorted(open_, key=lambda one: one.last_seen or "", reverse=True)[MOST_FOUND:]:
        del items[one.item]
    return tracked.model_copy(update={"items": tuple(items.values()), "batches": (*tracked.batches, batch)})


def _first(earlier: str | None, window: str) -> str:
    return window if earlier is None else min(earlier, window)


def _last(earlier: str | None, window: str) -> str:
    return window if earlier is None else max(earlier, window)


def has_results(found: str | None, results: str | None) -> bool:
    """Return whether the analyzer opened a batch; one whose key was retired has summaries and nothing beside them.

    Args:
        found: directory of what discovery revealed; None: nothing was sent for discovery.
        results: directory of the estimates; None: the batch has no reports to estimate from.
    """
    wanted = ((found, FOUND), (results, TALLY))
    return all(
        storage.exists(storage.join(directory, SUMMARY)) and storage.exists(storage.join(folder_of(directory), name))
        for directory, name in wanted
        if directory is not None
    )


def found_items(directory: str) -> list[str]:
    """Return what hushcount discover revealed into a directory."""
    return read_found_items(storage.join(folder_of(directory), FOUND))


def estimated_items(directory: str) -> tuple[list[tuple[str, float, bool]], int]:
    """Return item, count and whether it was detected, of what hushcount analyze wrote, and of how many reports.

    There is no item where it wrote a tally only.
    """
    path = storage.join(folder_of(directory), ESTIMATES)
    rows = read_csv_rows(path, ("item", "count", "detected")) if storage.exists(path) else []
    try:
        items = [(row["item"], float(row["count"]), row["detected"] == "true") for row in rows]
    except ValueError:
        raise FormatError(f"{path} has a count that is no number: restore it") from None
    if not all(math.isfinite(count) for _, count, _ in items):
        raise FormatError(f"{path} has a count that is no number: restore it")
    return items, read_summary(storage.join(directory, SUMMARY)).accepted
