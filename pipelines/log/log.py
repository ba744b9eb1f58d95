"""The log of one party and campaign in the store: read its new entries, and put the next entry if no other run did.

Entries are the files `log/PARTY/CAMPAIGN/GENERATION/0000000001.json` and so on; a log that replaces a lost log has the
next generation. A checkpoint is the fold after some entry, so a reader with a checkpoint reads only later entries.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from hushcount.errors import FormatError
from hushcount.formats.reading import TABLE_BYTES
from pipelines.deployment.settings import Deployment, Party
from pipelines.files import storage
from pipelines.files.storage_errors import StorageError
from pipelines.log.entries import MOST_NUMBER, Decision, Opened, whole_second
from pipelines.log.entry_files import BESIDE_BYTES, ENTRY_BYTES, Entry, digest_of, read_entry, write_entry
from pipelines.log.facts import Head
from pipelines.log.fold import Fold, merged
from pipelines.log.folding import Folding
from pipelines.log.probe import require

_EVERY = 100
"""The most entries between two checkpoints, if the checkpoints can be written."""
_FOLD = TypeAdapter(Fold)


class Log:
    """The log of one party and campaign, as far as this process has read it."""

    def __init__(self, deployment: Deployment, party: Party, campaign: str) -> None:
        self.party: Party = party
        self.campaign = campaign
        self._folder = deployment.folder("log", party, campaign)
        self._probed = deployment.folder("log", party)
        self._folding = Folding(party, campaign)
        self._checkpoint, self._is_known = 0, False

    @property
    def fold(self) -> Fold:
        """The fold of the entries that were read."""
        return self._folding.fold

    @property
    def head(self) -> Head:
        """The newest entry that was read."""
        return self._folding.head

    def known(self) -> Fold:
        """Return the fold; read the store only if this process has not read the log yet; raises what `read` raises."""
        return self.fold if self._is_known else self.read()

    def read(self) -> Fold:
        """Read all entries that are in the store by now, and return their fold.

        If the log was restored since the last reading, it is read again from its beginning.

        Raises:
            FormatError: an entry is damaged, or does not follow the entry before it.
            UsageError: a newer version wrote an entry.
            StorageError, OSError: the store cannot be read.
        """
        if self.head.number and not self.stands():
            self._begin_anew()
        if self.head.number == 0:
            self._begin(self._newest_generation())
        try:
            while (entry := self._next()) is not None:
                self._folding.add(entry)
        except FormatError:
            # If the operator restores the log, `hushcount run --watch` can then continue with it.
            self._begin_anew()
            raise
        self._is_known = True
        return self.fold

    def decide(self, decision: Callable[[Fold], Decision | None], at: datetime) -> Entry | None:
        """Put a decision as the next entry.

        If another run puts an entry first, `decision` is called again with the new fold.

        Args:
            decision: takes the fold of the log, and returns the decision; or returns None, and no entry is put.
            at: the present.

        Returns:
            The entry; None if no entry was put.

        Raises:
            HushcountError: the log is empty, and its store would let several writers put the same entry.
            FormatError: the log does not allow the decision, or `read` raises it.
            UsageError, StorageError, OSError: `read` raises it.
        """
        self.read()
        opening = Opened(party=self.party, campaign=self.campaign)
        while (wanted := decision(self.fold)) is not None:
            if self.head.number == 0:
                require(self._probed)
                if self._put(opening, at) is None:
                    continue
            if (entry := self._put(wanted, at)) is not None:
                self._save()
                return entry
        return None

    def replace(self, opened: Opened, at: datetime) -> Entry | None:
        """Put the first entry of the next generation, which replaces this log; None if another run did so first.

        It raises what `read` raises.

        Args:
            opened: the decision of the new entry, which states where this log ended.
        """
        head = self.head
        if head.number == 0:
            require(self._probed)
        return self._put_at(Head(head.generation + 1, 0, head.digest), opened, at)

    def has(self, entry: Head) -> bool:
        """Return whether the log has an entry (`Head.is_named`), or its replacement counts the entry as lost."""
        if entry.generation < self.head.generation:
            restored = self._opened(entry.generation + 1).restored
            # Two entries may have had this number: one from before the restore, and one by a run that did not notice
            # the restore.
            return restored is not None and entry.number <= restored.lost
        if entry.generation > self.head.generation or entry.number > self.head.number:
            return False
        # The digest of the newest entry was checked, and this digest covers all entries before it.
        if any(one.is_named(entry) for one in (self.head, *self.fold.entries)):
            return True
        data = storage.read_if_there(self._path(entry.number, entry.generation), ENTRY_BYTES)
        return data is not None and digest_of(data).startswith(entry.digest or "")

    def stands(self) -> bool:
        """Return whether the newest entry that was read is still in the store, and no other log has replaced this log.

        Call this before deleting any file that cannot be made again, because the log may have been restored since.
        """
        head = self.head
        if head.number:
            data = storage.read_if_there(self._path(head.number, head.generation), ENTRY_BYTES)
            if data is None or digest_of(data) != head.digest:
                return False
        return not storage.exists(self._path(1, head.generation + 1))

    def entry(self, head: Head) -> Entry:
        """Return an entry that was read before; raises what `read` raises."""
        path = self._path(head.number, head.generation)
        return read_entry(storage.read_bytes(path, ENTRY_BYTES), path, self._beside)

    def _put(self, decision: Decision, at: datetime) -> Entry | None:
        """Try to put the next entry; if another run's entry has its number, read that entry and return None."""
        if not self.stands():
            # A restored log may lack the entry that this process read last, and must not get an entry that follows it.
            self.read()
            return None
        return self._put_at(self.head, decision, at)

    def _put_at(self, head: Head, decision: Decision, at: datetime) -> Entry | None:
        path = self._path(head.number + 1, head.generation)
        written = write_entry(head.number + 1, head.digest, whole_second(at), decision)
        # An entry that readers would refuse must not be written, because nobody can remove an entry.
        folding = Folding(self.party, self.campaign, self.head, self.fold)
        folding.add(read_entry(written.data, path, lambda _: written.beside or b""))
        if written.beside is not None:
            storage.write_whole(self._beside_path(digest_of(written.beside)), [written.beside])
        failure = StorageError(f"{path} was written, and is not there: find out what removes it")
        try:
            storage.put_absent(path, written.data)
        except StorageError as error:
            # Perhaps the entry was written, and only the store's answer was lost: the id of the entry in the store
            # shows who put it.
            failure = error
        entry = self._read_at(path)
        if entry is None:
            raise failure
        if entry.id != written.id:
            self.read()
            return None
        self._folding = folding
        return entry

    def _begin_anew(self) -> None:
        self._folding, self._checkpoint, self._is_known = Folding(self.party, self.campaign), 0, False

    def _newest_generation(self) -> int:
        generation = 1
        while storage.exists(self._path(1, generation + 1)):
            generation += 1
        return generation

    def _opened(self, generation: int) -> Opened:
        decision = self.entry(Head(generation, 1)).decision
        if not isinstance(decision, Opened):
            raise FormatError(f"{self._path(1, generation)} does not open a log: restore it")
        return decision

    def _next(self) -> Entry | None:
        return self._read_at(self._path(self.head.number + 1, self.head.generation))

    def _read_at(self, path: str) -> Entry | None:
        data = storage.read_if_there(path, ENTRY_BYTES)
        return None if data is None else read_entry(data, path, self._beside)

    def _beside(self, digest: str) -> bytes:
        return storage.read_bytes(self._beside_path(digest), BESIDE_BYTES)

    def _path(self, number: int, generation: int) -> str:
        return storage.join(self._folder, f"{generation:06d}", f"{number:010d}.json")

    def _beside_path(self, digest: str) -> str:
        return storage.join(self._folder, "lists", f"{digest}.json")

    def _begin(self, generation: int, most: int = MOST_NUMBER) -> None:
        """Begin reading at the checkpoint if the log has the entry that the checkpoint names, else at the first entry.

        A generation states the last entry of the generation before that still counts, and continues after that entry.

        Args:
            most: number of the last entry to use.
        """
        with suppress(ValidationError, KeyError, FormatError, OSError):
            fold = _FOLD.validate_json(storage.read_bytes(self._checkpoint_path(generation), TABLE_BYTES))
            head = fold.heads[self.party]
            path = self._path(head.number, generation)
            named = storage.read_if_there(path, ENTRY_BYTES) if head.number <= most else None
            if named is not None and head == Head(generation, head.number, digest_of(named)):
                self._folding = Folding(self.party, self.campaign, head, fold)
                self._checkpoint = head.number
                return
        if generation > 1:
            restored = self._opened(generation).restored
            end = 0 if restored is None else restored.number
            self._begin(generation - 1, end)
            while self.head.number < end and (entry := self._next()) is not None:
                self._folding.add(entry)
            self._folding.add(self.entry(Head(generation, 1)))
            self._checkpoint = 0

    def _save(self) -> None:
        """Replace the checkpoint, if it is many entries behind the log.

        An error is ignored, because without a checkpoint reading only takes longer.
        """
        head = self.head
        if head.number - self._checkpoint >= _EVERY:
            with suppress(StorageError, OSError):
                storage.write_whole(self._checkpoint_path(head.generation), [_FOLD.dump_json(self.fold)])
                self._checkpoint = head.number

    def _checkpoint_path(self, generation: int) -> str:
        return storage.join(self._folder, "checkpoints", f"{generation:06d}.json")


class Logs:
    """The logs of the parties of a deployment. Reading a log again continues where this process stopped reading."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._logs: dict[tuple[Party, str], Log] = {}

    def of(self, party: Party, campaign: str) -> Log:
        """Return the log of a party and campaign, without reading or writing it."""
        if (party, campaign) not in self._logs:
            self._logs[party, campaign] = Log(self._deployment, party, campaign)
        return self._logs[party, campaign]

    def read(self, campaign: str) -> Fold:
        """Read the logs of the parties here on a campaign, and return their fold; raises what `Log.read` raises."""
        return merged(campaign, [self.of(party, campaign).read() for party in self._deployment.file.parties])

    def known(self, campaign: str) -> Fold:
        """Return the fold of the logs here as this process last read them; `read` them if it has not read them yet.

        A decision must be made on logs that were just read, so `Log.decide` reads them again.
        """
        return merged(campaign, [self.of(party, campaign).known() for party in self._deployment.file.parties])

    def shared(self, campaign: str) -> Log:
        """Return the log for entries that belong to no single party: the log of the first party here."""
        return self.of(self._deployment.file.parties[0], campaign)
