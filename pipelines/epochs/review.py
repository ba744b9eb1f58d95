"""Found values wait until an operator approves them: whoever can send discovery reports can have any sentence found.

A value that joins a dictionary is served to every client, and makes a new epoch, which every client answers afresh.
What the operator decided lies beside the items, in a file that only `hushcount epoch review` writes; a value that was
rejected stays so, however often it is found again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from pathlib import Path

from hushcount.errors import UsageError
from hushcount.formats.models import Part
from hushcount.formats.reading import TABLE_BYTES, parse_model, read_file
from hushcount.formats.whole_files import sync, write_over
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.publish import publishing
from pipelines.epochs.tracked_items import ITEMS_FILE, TrackedItem, TrackedItems, read_tracked
from pipelines.files.permissions import mode_in

REVIEW_FILE = "review.json"
ALL = "all"
_ID_BYTES = 6


class Decisions(Part):
    """What the operator decided about found values."""

    format: int = 1
    approved: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()

    def waiting(self, tracked: TrackedItems, listed: Collection[str]) -> tuple[TrackedItem, ...]:
        """Return the found values that nobody decided about, and that no client has been given yet."""
        decided = {*self.approved, *self.rejected, *listed}
        return tuple(one for one in tracked.items if one.source == "discovered" and one.item not in decided)

    def admitted(
        self, kept: Sequence[str], given: Collection[str], listed: Collection[str], most: int, unseen: bool
    ) -> tuple[str, ...]:
        """Return the items of the next epoch.

        Args:
            kept: what may be collected, in its order.
            given: which of it an operator listed.
            listed: what the newest epoch lists.
            most: how many may join at most.
            unseen: whether values join that nobody decided about.
        """
        here, rejected, approved = {*given, *listed}, set(self.rejected).difference(given), set(self.approved)
        able = [item for item in kept if item not in rejected and (item in here or unseen or item in approved)]
        joining = set([item for item in able if item not in here][:most])
        return tuple(item for item in able if item in here or item in joining)


def read_decisions(folder: Path) -> Decisions:
    """Read what was decided about a campaign's found values; nothing where there is no file.

    Raises:
        FormatError: the file is damaged.
    """
    path = folder / REVIEW_FILE
    if not path.exists():
        return Decisions()
    return parse_model(Decisions, read_file(path, "review file", TABLE_BYTES), str(path))


def waiting(epochs: Epochs) -> tuple[TrackedItem, ...]:
    """Return the found values of a campaign that wait for a decision."""
    dictionary = epochs.newest[1].read_dictionary()
    listed = () if dictionary is None else dictionary.items
    return read_decisions(epochs.directory).waiting(read_tracked(epochs.directory / ITEMS_FILE, listed), listed)


def decide(epochs: Epochs, approve: Sequence[str], reject: Sequence[str]) -> Decisions:
    """Approve and reject found values; what was decided otherwise before is decided anew.

    Args:
        epochs: of the campaign.
        approve: ids of values, or "all" that wait.
        reject: the same.

    Raises:
        UsageError: an id names no found value, or stands on both sides.
        HushcountError: somebody is publishing, and does not come to an end.
    """
    with publishing(epochs.directory):
        dictionary = epochs.newest[1].read_dictionary()
        listed = () if dictionary is None else dictionary.items
        tracked = read_tracked(epochs.directory / ITEMS_FILE, listed)
        before = read_decisions(epochs.directory)
        found = [one.item for one in tracked.items if one.source == "discovered"]
        known = {id_of(item): item for item in (*before.approved, *before.rejected, *found)}
        undecided = [one.item for one in before.waiting(tracked, listed)]
        yes, no = (_chosen(ids, known, undecided) for ids in (approve, reject))
        if both := yes & no:
            raise UsageError(f"{id_of(min(both))} is to be approved and rejected: give one of both")
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
            raise UsageError(f"{name[: 2 * _ID_BYTES]!a} is no id of a found value: hushcount epoch review lists them")
        chosen |= set(undecided) if name == ALL else {known[name]}
    return chosen


def id_of(item: str) -> str:
    """Return by what an operator names a value: typing or pasting one that a stranger chose is not safe."""
    return hashlib.blake2b(item.encode(), digest_size=_ID_BYTES, person=b"review").hexdigest()


def shown(item: str) -> str:
    """Return a value for a terminal: what does not print, turns the text or takes no room stands as its code."""
    return "".join(letter if letter.isprintable() and letter != "\\" else _code(letter) for letter in item)


def _code(letter: str) -> str:
    return "\\\\" if letter == "\\" else letter.encode("unicode_escape").decode()
