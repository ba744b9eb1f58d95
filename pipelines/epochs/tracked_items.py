"""The items that a campaign follows from epoch to epoch, when each was seen, and the operator's decisions on them.

Discovered values wait until an operator approves them, because whoever can send discovery reports can make any text be
found. Every client downloads a value that joins a dictionary. A value that joins also causes a new epoch, in which
clients with a memory spend their epsilon anew. Only `hushcount campaign review` writes the file of decisions. A
rejected value remains rejected, even if discovery finds it again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Sequence, Set
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from hushcount.errors import FormatError, UsageError
from hushcount.formats.models import Part
from hushcount.formats.reading import TABLE_BYTES, parse_model, read_file
from hushcount.formats.whole_files import sync, write_over
from hushcount.items import fault_of_item
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.publish import publishing
from pipelines.files import storage
from pipelines.files.permissions import mode_in
from pipelines.jobs.found import FOUND, read_found_items
from pipelines.jobs.results import ESTIMATES, TALLY
from pipelines.jobs.table_files import read_csv_rows
from pipelines.outputs.received_summary import folder_of, read_summary
from pipelines.outputs.staging import SUMMARY

REVIEW_FILE = "review.json"
ALL = "all"
_ID_BYTES = 6
ITEMS_FILE = "items.json"
MOST_FOUND = 10_000
"""The most undecided found items in the list: strangers decide what is found, so the list needs a limit."""


def _item(value: str) -> str:
    if (fault := fault_of_item(value)) is not None:
        raise ValueError(fault)
    return value


class TrackedItem(Part):
    """One item. `first_seen`, `last_seen`: start of the first and last window in which it was found or detected."""

    item: Annotated[str, AfterValidator(_item)]
    source: Literal["given", "discovered"]
    first_seen: str | None = None
    last_seen: str | None = None


class TrackedItems(Part):
    """The items of a campaign, the batches whose results these items include, and the epochs that have the items.

    `epochs` holds the fingerprint of the newest epoch, and of the next epoch, which may not be published yet.
    """

    format: Literal[1] = 1
    items: tuple[TrackedItem, ...]
    batches: tuple[str, ...] = ()
    epochs: tuple[str, ...] = ()
    target_share: float | None = Field(
        default=None, description="share to plan for, from the newest batch that has one"
    )

    @property
    def discovered(self) -> tuple[TrackedItem, ...]:
        """The items that were discovered."""
        return tuple(one for one in self.items if one.source == "discovered")

    def taken_over(self, epoch: str, listed: tuple[str, ...], before: Set[str]) -> TrackedItems:
        """Return the items after an epoch that an operator published by hand.

        New items of the epoch's dictionary become "given", because an operator listed them. A discovered item that had
        aged out, and that the operator put back, also becomes "given". "given" items that the dictionary lacks are
        dropped. Each remaining item keeps the windows in which it was seen.

        Args:
            epoch: fingerprint of the epoch's campaign file; if it is among `epochs`, no item changes.
            listed: items of the epoch's dictionary.
            before: items that every dictionary since the last known epoch had.
        """
        if epoch in self.epochs:
            return self
        known = {one.item: one for one in self.items}
        items = [known.get(item) or TrackedItem(item=item, source="given") for item in listed]
        items = [one if one.item in before else one.model_copy(update={"source": "given"}) for one in items]
        items += [one for one in self.discovered if one.item not in set(listed)]
        return self.model_copy(update={"items": tuple(items), "epochs": (epoch,)})

    def without(self, rejected: Set[str]) -> TrackedItems:
        """Return the items, but leave out the discovered items that the operator rejected."""
        items = tuple(one for one in self.items if one.source == "given" or one.item not in rejected)
        return self.model_copy(update={"items": items})

    def kept(self, windows: tuple[str, ...], unseen: int) -> tuple[str, ...]:
        """Return the items that have not aged out: the operator's, and discovered items seen in the last windows.

        Args:
            windows: the windows with results that could show an item, oldest first.
            unseen: number of windows after which a discovered item that was neither found nor detected ages out.
        """
        oldest = windows[-unseen] if len(windows) >= unseen else ""
        return tuple(one.item for one in self.items if one.source == "given" or (one.last_seen or "") >= oldest)


def read_tracked(path: Path, given: tuple[str, ...]) -> TrackedItems:
    """Read a campaign's items; if no file exists, take `given`, the dictionary's items. FormatError: a damaged file."""
    if not path.exists():
        return TrackedItems(items=tuple(TrackedItem(item=item, source="given") for item in given))
    return parse_model(TrackedItems, read_file(path, "tracked items", TABLE_BYTES), str(path))


def write_tracked(path: Path, tracked: TrackedItems) -> None:
    """Write the items of a campaign, in one step."""
    # Only readers of results may see found items, but other files in the same folder are for everybody.
    write_over(path, tracked.model_dump_json(indent=1) + "\n", mode_in(path.parent))


def updated(
    tracked: TrackedItems, batch: str, found: list[str], detected: list[str], settled: Set[str] = frozenset()
) -> TrackedItems:
    """Return the items after one batch; if `tracked` already includes the batch, no item changes.

    Args:
        found: values that discovery revealed. Of the items that are not settled, only the MOST_FOUND seen last are
            kept, so that an attacker who makes many values be found cannot shut out later values.
        detected: items of the dictionary with an estimate that is significantly above 0.
        settled: items that an operator approved, or that a dictionary already lists.
    """
    if batch in tracked.batches:
        return tracked
    window = batch.partition("-")[0]
    items = {one.item: one for one in tracked.items}
    revealed = frozenset(found)
    for item in (*detected, *found):
        if item in items:
            one = items[item]
            seen = {"first_seen": min(one.first_seen or window, window), "last_seen": max(one.last_seen or "", window)}
            items[item] = one.model_copy(update=seen)
        elif item in revealed:
            items[item] = TrackedItem(item=item, source="discovered", first_seen=window, last_seen=window)
    undecided = [one for one in items.values() if one.source == "discovered" and one.item not in settled]
    for one in sorted(undecided, key=lambda one: one.last_seen or "", reverse=True)[MOST_FOUND:]:
        del items[one.item]
    return tracked.model_copy(update={"items": tuple(items.values()), "batches": (*tracked.batches, batch)})


def has_results(found: str | None, results: str | None) -> bool:
    """Return whether the analyzer opened a batch; a batch of a retired key is not opened and has only summaries."""
    return all(
        storage.exists(storage.join(directory, SUMMARY)) and storage.exists(storage.join(folder_of(directory), name))
        for directory, name in ((found, FOUND), (results, TALLY))
        if directory is not None
    )


def found_items(directory: str) -> list[str]:
    """Return the values that hushcount job discover wrote into a directory."""
    return read_found_items(storage.join(folder_of(directory), FOUND))


def estimated_items(directory: str) -> tuple[list[tuple[str, float, bool]], int]:
    """Return the items that hushcount job analyze estimated, with count and detection, and the number of all reports.

    If the job wrote a tally, but no estimates, the list of items is empty.
    """
    path = storage.join(folder_of(directory), ESTIMATES)
    rows = read_csv_rows(path, ("item", "count", "detected")) if storage.exists(path) else []
    try:
        items = [(row["item"], float(row["count"]), row["detected"] == "true") for row in rows]
    except ValueError:
        items = [("", math.nan, False)]
    if not all(math.isfinite(count) for _, count, _ in items):
        raise FormatError(f"{path} has a count that is not a number: restore it")
    return items, read_summary(storage.join(directory, SUMMARY)).accepted


class Decisions(Part):
    """The operator's decisions on discovered values."""

    format: int = 1
    approved: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()

    def waiting(self, tracked: TrackedItems, listed: Collection[str]) -> tuple[TrackedItem, ...]:
        """Return the discovered values that await a decision and are not among `listed`."""
        decided = {*self.approved, *self.rejected, *listed}
        return tuple(one for one in tracked.discovered if one.item not in decided)

    def admitted(
        self, kept: Sequence[str], given: Collection[str], listed: Collection[str], most: int, unseen: bool
    ) -> tuple[str, ...]:
        """Return the items of the next epoch.

        Args:
            kept: the items that may be collected, in their order.
            given: the items among `kept` that an operator listed.
            listed: the items of the newest dictionary.
            most: the most items that join the dictionary.
            unseen: whether values without the operator's decision join too.
        """
        here, rejected, approved = {*given, *listed}, set(self.rejected).difference(given), set(self.approved)
        able = [item for item in kept if item not in rejected and (item in here or unseen or item in approved)]
        joining = set([item for item in able if item not in here][:most])
        return tuple(item for item in able if item in here or item in joining)


def read_decisions(folder: Path) -> Decisions:
    """Read the decisions on a campaign's discovered values; no file: no decisions. FormatError: a damaged file."""
    path = folder / REVIEW_FILE
    if not path.exists():
        return Decisions()
    return parse_model(Decisions, read_file(path, "review file", TABLE_BYTES), str(path))


def waiting(epochs: Epochs) -> tuple[TrackedItem, ...]:
    """Return the discovered values of a campaign that wait for a decision."""
    tracked = read_tracked(epochs.directory / ITEMS_FILE, epochs.listed)
    return read_decisions(epochs.directory).waiting(tracked, epochs.listed)


def decide(epochs: Epochs, approve: Sequence[str], reject: Sequence[str]) -> Decisions:
    """Approve and reject discovered values by id, or all waiting values by "all"; a new decision replaces an old one.

    Raises:
        UsageError: an id names no discovered value, or is in both lists.
        HushcountError: another process has been publishing for half a minute.
    """
    with publishing(epochs.directory):
        tracked = read_tracked(epochs.directory / ITEMS_FILE, epochs.listed)
        before = read_decisions(epochs.directory)
        found = [one.item for one in tracked.discovered]
        known = {id_of(item): item for item in (*before.approved, *before.rejected, *found)}
        undecided = [one.item for one in before.waiting(tracked, epochs.listed)]
        yes, no = (_chosen(ids, known, undecided) for ids in (approve, reject))
        if both := yes & no:
            raise UsageError(f"{id_of(min(both))} is in both --approve and --reject: give it in one of them")
        after = Decisions(
            approved=tuple(sorted((set(before.approved) - no) | yes)),
            rejected=tuple(sorted((set(before.rejected) - yes) | no)),
        )
        write_over(epochs.directory / REVIEW_FILE, after.model_dump_json(indent=1) + "\n", mode_in(epochs.directory))
        sync(epochs.directory)
    return after


def _chosen(ids: Sequence[str], known: dict[str, str], undecided: Sequence[str]) -> set[str]:
    chosen: set[str] = set()
    for name in ids:
        if name != ALL and name not in known:
            raise UsageError(
                f"{name[: 2 * _ID_BYTES]!a} is not the id of a discovered value: hushcount campaign review lists them"
            )
        chosen |= set(undecided) if name == ALL else {known[name]}
    return chosen


def id_of(item: str) -> str:
    """Return the id by which an operator names a value, because it is not safe to paste a text of a stranger."""
    return hashlib.blake2b(item.encode(), digest_size=_ID_BYTES, person=b"review").hexdigest()


def shown(item: str) -> str:
    """Return a value for a terminal; characters that have no printed form, or that reverse text, become codes."""
    return "".join(letter if letter.isprintable() and letter != "\\" else _code(letter) for letter in item)


def _code(letter: str) -> str:
    return "\\\\" if letter == "\\" else letter.encode("unicode_escape").decode()
