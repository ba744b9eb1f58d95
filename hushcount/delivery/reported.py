"""What became of a value that an app reported: one word of a closed list, the same in clients of all languages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hushcount.allowance import OverCap
from hushcount.budget import BudgetSpent, OptedOut
from hushcount.campaigns.public_keys import NoValidKey
from hushcount.delivery.queue import QueueFull
from hushcount.errors import NotYet
from hushcount.formats.client_files import ThreadLock
from hushcount.newest import Untrusted
from hushcount.sampling import NotAsked


class Reported(str, Enum):
    """What `Sender.report` returns; each member is also the str that is its word.

    Attributes:
        QUEUED: the reports wait on this device, and a delivery sends them.
        NOT_ASKED: the campaign asks a part of its clients, and not this one.
        OVER_CAP: this person has made as many reports as count in this window.
        BUDGET_SPENT: the person's budget is spent, and its `when_spent` is "nothing".
        OPTED_OUT: the person opted out.
        QUEUE_FULL: as many reports wait as may wait.
        NOT_YET: no campaign file can be used yet: none was fetched, or its keys are not valid now.
        UNTRUSTED: the policy refuses the collector's campaign file.
        STORAGE: the sender's folder cannot be read or written.
    """

    QUEUED = "queued"
    NOT_ASKED = "not_asked"
    OVER_CAP = "over_cap"
    BUDGET_SPENT = "budget_spent"
    OPTED_OUT = "opted_out"
    QUEUE_FULL = "queue_full"
    NOT_YET = "not_yet"
    UNTRUSTED = "untrusted"
    STORAGE = "storage"

    def __str__(self) -> str:
        return self.value


_WORDS: Mapping[type[Exception], Reported] = {
    NotAsked: Reported.NOT_ASKED,
    OverCap: Reported.OVER_CAP,
    BudgetSpent: Reported.BUDGET_SPENT,
    OptedOut: Reported.OPTED_OUT,
    QueueFull: Reported.QUEUE_FULL,
    NotYet: Reported.NOT_YET,
    NoValidKey: Reported.NOT_YET,
    Untrusted: Reported.UNTRUSTED,
}
"""`Sender` and `Present` give a client all that it needs, so all other errors are of files in the sender's folder."""


@dataclass(frozen=True, eq=False)
class Refused:
    """Counts the values that were not queued, by word; threads may share this object."""

    _counts: Counter[Reported] = field(default_factory=Counter)
    _lock: ThreadLock = field(default_factory=ThreadLock, repr=False)

    def count(self, error: Exception) -> Reported:
        """Count one value, and return the word for the error that stopped its report."""
        word = _WORDS.get(type(error), Reported.STORAGE)
        with self._lock:
            self._counts[word] += 1
        return word

    def counts(self) -> Mapping[str, int]:
        with self._lock:
            return {word.value: number for word, number in self._counts.items()}
