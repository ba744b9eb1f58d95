"""The private keys of a key directory: open while their files are there, and forgotten when the files are gone."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hushcount.errors import HushcountError
from keys.directories import KeyReference
from keys.evaluating import EvaluatorKey
from keys.listing import PUBLIC_FILE, read_listing
from keys.roles import EvaluatingRole
from service.campaign_folders import Stamp, stamp_of

_ROLE: EvaluatingRole = "evaluator"


class KeysHere:
    """The keys that are open. `look` reads the directory again, and forgets keys without a file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open: dict[str, tuple[Stamp, EvaluatorKey]] = {}
        self.faults: dict[str, str] = {}
        """By key id, why a file that is there cannot be used."""
        self.retired: frozenset[str] = frozenset()
        """The ids of destroyed keys: these never answer again."""

    def look(self, wanted: Iterable[str]) -> None:
        """Open the keys with these ids if their files are there, and forget all other keys.

        Raises:
            UsageError: the directory's listing is damaged. All keys are closed, as it is unknown which are destroyed.
        """
        opened: dict[str, tuple[Stamp, EvaluatorKey]] = {}
        faults: dict[str, str] = {}
        try:
            self.retired = self._listed_as_retired()
        except (HushcountError, OSError):
            self._open = {}
            raise
        # A destroyed key stays destroyed, even if a backup brings its file back.
        for id in (id for id in wanted if id not in self.retired):
            reference = KeyReference(str(self._directory), _ROLE, id)
            try:
                stamp = stamp_of(reference.path)
            except FileNotFoundError:
                continue
            except OSError as error:
                faults[id] = f"cannot read {reference.place}: {error.strerror}"
                continue
            before = self._open.get(id)
            if before is not None and before[0] == stamp:
                opened[id] = before
                continue
            try:
                opened[id] = (stamp, reference.read_evaluator())
            except HushcountError as error:
                faults[id] = str(error)
        self._open, self.faults = opened, faults

    def _listed_as_retired(self) -> frozenset[str]:
        if not (self._directory / PUBLIC_FILE).exists():
            return frozenset()
        return frozenset(key.id for key in read_listing(self._directory).keys if key.retired_at is not None)

    def find(self, id: str) -> EvaluatorKey | None:
        """Return the key with this id, or None: it was destroyed, never made here, or cannot be read."""
        found = self._open.get(id)
        return None if found is None else found[1]

    def __len__(self) -> int:
        return len(self._open)
