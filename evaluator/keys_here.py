"""The private keys of a key directory: a key is open while its file exists, and forgotten when the file is removed."""

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
        """By key id, why the key's existing file cannot be used."""
        self.retired: frozenset[str] = frozenset()
        """The ids of destroyed keys; no request is answered with a destroyed key."""

    def look(self, wanted: Iterable[str]) -> None:
        """Open each key with one of these ids if its file exists, and forget all other keys.

        Raises:
            UsageError: the directory's listing is damaged. All keys are closed, because it is unknown which keys are
                destroyed.
        """
        opened: dict[str, tuple[Stamp, EvaluatorKey]] = {}
        faults: dict[str, str] = {}
        try:
            self.retired = self._listed_as_retired()
        except (HushcountError, OSError):
            self._open = {}
            raise
        # A key that is listed as destroyed is not opened, even if a backup has restored its file.
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
        """Return the key with this id; None if the key was destroyed, was never made here, or cannot be read."""
        found = self._open.get(id)
        return None if found is None else found[1]

    def __len__(self) -> int:
        return len(self._open)
