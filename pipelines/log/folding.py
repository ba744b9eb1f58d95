"""Fold a log, entry by entry: each kind of decision has one function here, which says what it changes."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field

from hushcount.errors import FormatError
from pipelines.deployment.settings import Party
from pipelines.log import entries
from pipelines.log.effects import Effects, Undecidable
from pipelines.log.entry_files import Entry
from pipelines.log.facts import Head
from pipelines.log.fold import Fold


@dataclass
class Folding:
    """A fold while entries are added to it; what it held before stays as it was."""

    party: Party
    campaign: str
    head: Head = field(default_factory=Head)
    _fold: Fold | None = None

    def __post_init__(self) -> None:
        self._state = Effects(Fold(self.campaign) if self._fold is None else self._fold)

    @property
    def fold(self) -> Fold:
        """What the entries come to."""
        if self._fold is None:
            self._fold = self._state.fold({self.party: self.head})
        return self._fold

    def add(self, entry: Entry) -> None:
        """Add the next entry.

        Raises:
            FormatError: it does not follow the entry before, or decides what cannot be decided then. Some of it may be
                added: begin anew.
        """
        head, opened = self.head, entry.decision
        restored = opened.restored if isinstance(opened, entries.Opened) else None
        if restored is not None and (restored.generation, restored.number, restored.entry) == astuple(head):
            # It replaces what was read so far.
            head = Head(head.generation + 1, 0, head.digest)
        if (entry.number, entry.before) != (head.number + 1, head.digest):
            raise FormatError(
                f"entry {entry.number} of the log of {self.party} and {self.campaign} does not follow entry "
                f"{head.number}: something else wrote there; restore the log"
            )
        where = f"entry {entry.number} of the log of {self.party} and {self.campaign}"
        if isinstance(entry.decision, entries.Opened) and entry.decision.party != self.party:
            raise FormatError(f"{where} is of {entry.decision.party}: restore the log")
        here = Head(head.generation, entry.number, entry.digest)
        try:
            self._state.add(entry, here)
        except KeyError as error:
            raise FormatError(
                f"{where} is about {error.args[0]!a}, of which no entry before speaks: restore the log"
            ) from None
        except Undecidable as error:
            raise FormatError(f"{where} {error}: restore the log") from None
        self.head, self._fold = here, None
