"""The counts of the present window, written before an answer is sent, so that a restart renews no client's limit.

    COUNTS/lock                                         locked while an evaluator runs
           over                                         end of the newest window that is over; none before it opens
           damaged/                                     damaged files of refusals
           WINDOW/key                                   key of the hash of client tokens; deleted with the window
                  id, seconds, authentication           for the manifests of the window
                  CAMPAIGN/EPOCH-FINGERPRINT/asked      a record of each answered request
                                             refused.json

A record has 12 bytes, little-endian: the keyed hash of the asker (8), how many evaluations (2), and who asked (2): 0 a
client, 1 the verifier. A record is written before its answer is sent, so a killed process loses no record. Twice a
second records are synced, and refusals are written. A power cut loses later records and refusals, so the numbers in
manifests may be too low, but never too high.
"""

from __future__ import annotations

import logging
import os
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from evaluator.campaigns import AskedEpoch
from evaluator.manifests import ASKERS, Asked, Asker, EvaluationManifest
from evaluator.refusals import TOO_MANY_EVALUATIONS, TOO_MANY_EVALUATIONS_AT_ONCE
from hushcount.campaigns.public_keys import KeyId
from hushcount.clock import MACHINE, Clock
from hushcount.collection.manifests import Refused
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import Window
from hushcount.errors import FormatError
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_model
from hushcount.formats.whole_files import sync, write_over
from hushcount.senders import Authentication
from service import window_notes
from service.client_limit import ClientLimit, Counted
from service.window_folders import link_aside, make_folder

_LOG = logging.getLogger("hushcount.evaluator")
_ASKED = "asked"
_REFUSED = "refused.json"
_RECORD = struct.Struct("<QHH")
_READ_RECORDS = 1 << 16
EVALUATIONS = Counted("evaluations", "ask", TOO_MANY_EVALUATIONS, TOO_MANY_EVALUATIONS_AT_ONCE)


class RefusedCounts(Part):
    """Refused requests about one campaign file in a window, by asker and reason."""

    fingerprint: Hex32
    key: KeyId | None
    clients: Refused = Field(default_factory=dict)
    verifier: Refused = Field(default_factory=dict)


@dataclass
class _Folder:
    """A campaign file's folder in the present window."""

    path: Path
    epoch: AskedEpoch
    descriptor: int = -1
    refused: dict[Asker, Counter[str]] = field(default_factory=lambda: {asker: Counter() for asker in ASKERS})
    unwritten: bool = False  # whether refusals changed since they were written
    unsynced: bool = False  # whether records were written since the last sync


class Counting:
    """One window's counts and limits. Only `flush` and `close` may run outside the event loop's thread."""

    def __init__(
        self,
        root: Path,
        window: Window,
        way: Authentication,
        a_client: int | None,
        verifier: int,
        clock: Clock = MACHINE,
    ) -> None:
        self.window = window
        self._root = root
        window_notes.set_seconds(root, window)
        window_notes.note_authentication(root, window.name, way)
        window_notes.manifest_id(root, window.name)
        key = window_notes.window_key(root, window.name)
        self._limits = {
            "clients": ClientLimit(a_client, EVALUATIONS, clock=clock),
            "verifier": ClientLimit(verifier, EVALUATIONS, clock=clock),
        }
        for limit in self._limits.values():
            limit.begin(window, key)
        self._folders: dict[str, _Folder] = {}
        for path in sorted((root / window.name).glob(f"*/*/{_ASKED}")):
            for name, evaluations, asker in _records(path):
                self._limits[asker].add(name, evaluations)

    def reserve(self, epoch: AskedEpoch, asker: Asker, client: bytes | None, evaluations: int) -> None:
        """Count evaluations before they are made, so that parallel requests cannot pass the limit; or raise Refused."""
        self._limits[asker].reserve(_of(epoch, client), evaluations, self.window, epoch.cap)

    def give_back(self, epoch: AskedEpoch, asker: Asker, client: bytes | None, evaluations: int) -> None:
        """Take back a reservation of evaluations that were not answered."""
        self._limits[asker].give_back(_of(epoch, client), evaluations, self.window)

    def answered(self, epoch: AskedEpoch, asker: Asker, client: bytes | None, evaluations: int) -> None:
        """Write the record of an answer that is about to be sent; OSError: the answer must not be sent."""
        folder = self._folder(epoch)
        told = _of(epoch, client)
        name = 0 if told is None else self._limits[asker].name_of(told)
        record = _RECORD.pack(name, evaluations, ASKERS.index(asker))
        if os.write(folder.descriptor, record) != len(record):
            # The incomplete record is cut off, because the next records would otherwise be read at wrong offsets.
            _cut_to_whole(folder.descriptor)
            raise OSError("a record was not written whole")
        folder.unsynced = True

    def refused(self, epoch: AskedEpoch, asker: Asker, reason: str, number: int) -> None:
        """Count refused requests; the next flush writes the counts. OSError: these refusals are not counted."""
        folder = self._folder(epoch)
        folder.refused[asker][reason] += number
        folder.unwritten = True

    def flush(self) -> None:
        """Sync all records, and write all refusals. OSError: a later call tries again."""
        for folder in list(self._folders.values()):
            if folder.unsynced:
                folder.unsynced = False
                try:
                    os.fdatasync(folder.descriptor)
                except OSError:
                    folder.unsynced = True
                    raise
            if folder.unwritten:
                _write_refused(folder)

    def close(self) -> None:
        """Flush, and close the files: the window has ended.

        OSError: some files are still open, and a later call tries again.
        """
        self.flush()
        while self._folders:
            os.close(self._folders.popitem()[1].descriptor)

    def _folder(self, epoch: AskedEpoch) -> _Folder:
        found = self._folders.get(epoch.fingerprint)
        if found is None:
            path = self._root / self.window.name / epoch.folder
            make_folder(path, self._root)
            found = _Folder(path, epoch)
            try:
                earlier = _read_refused(path)
            except FormatError:
                earlier = None
                link_aside(self._root, path / _REFUSED)
                _LOG.error("counts of refusals damaged", extra={"window": self.window.name, "campaign": epoch.campaign})
            if earlier is None:
                # The file of refusals also has the fingerprint, without which the records of this folder would not be
                # counted.
                _write_refused(found)
            else:
                found.refused["clients"].update(earlier.clients)
                found.refused["verifier"].update(earlier.verifier)
            found.descriptor = os.open(path / _ASKED, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            _cut_to_whole(found.descriptor)
            self._folders[epoch.fingerprint] = found
        return found


def manifests_of(root: Path, window: str, evaluator: str, tiling: Tiling) -> dict[str, EvaluationManifest]:
    """Return the manifests of a window that ended, by path below the store's folder of evaluations.

    Args:
        tiling: tells the length of the window, if no note states it.

    Raises:
        FormatError: a file of refusals is damaged.
    """
    seconds = window_notes.seconds_or(root, window, tiling)
    id, way = window_notes.manifest_id(root, window), window_notes.authentication_of(root, window)
    found = {}
    for path in sorted({one.parent for one in (root / window).glob("*/*/*")}):
        refused = _read_refused(path)
        if refused is None:
            # The file of refusals is written before the first record, so somebody has removed the file.
            _LOG.error("counts lost", extra={"window": window, "campaign": path.parent.name})
            continue
        asked = Counter[Asker]()
        for _, evaluations, asker in _records(path / _ASKED):
            asked[asker] += evaluations
        found[f"{path.parent.name}/{path.name}/{window}/{evaluator}-{id}.json"] = EvaluationManifest(
            evaluator=evaluator,
            campaign=path.parent.name,
            epoch=int(path.name.partition("-")[0]),
            fingerprint=refused.fingerprint,
            key=refused.key,
            window=window,
            seconds=seconds,
            authentication=way,
            clients=Asked(evaluations=asked["clients"], refused=refused.clients),
            verifier=Asked(evaluations=asked["verifier"], refused=refused.verifier),
        )
    return found


def _cut_to_whole(descriptor: int) -> None:
    """Cut off an incomplete last record, which a crash or a full disk left."""
    os.ftruncate(descriptor, os.fstat(descriptor).st_size // _RECORD.size * _RECORD.size)


def _of(epoch: AskedEpoch, client: bytes | None) -> bytes | None:
    """Return bytes that are different for each pair of client and campaign file; None if clients are not told apart."""
    return None if client is None else bytes.fromhex(epoch.fingerprint) + client


def _records(path: Path) -> Iterator[tuple[int, int, Asker]]:
    """Yield hash, number and asker of each whole record; skip records of zeros, as in a lost disk block."""
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        return
    with stream:
        while block := stream.read(_READ_RECORDS * _RECORD.size):
            for name, evaluations, asker in _RECORD.iter_unpack(block[: len(block) // _RECORD.size * _RECORD.size]):
                if evaluations and asker < len(ASKERS):
                    yield name, evaluations, ASKERS[asker]


def _read_refused(folder: Path) -> RefusedCounts | None:
    try:
        raw = (folder / _REFUSED).read_bytes()
    except FileNotFoundError:
        return None
    return parse_model(RefusedCounts, raw, str(folder / _REFUSED), "is damaged")


def _write_refused(folder: _Folder) -> None:
    folder.unwritten = False
    epoch = folder.epoch
    try:
        counts = RefusedCounts(
            fingerprint=epoch.fingerprint,
            key=None if epoch.key is None else epoch.key.id,
            clients=dict(folder.refused["clients"]),
            verifier=dict(folder.refused["verifier"]),
        )
        write_over(folder.path / _REFUSED, counts.model_dump_json(), 0o600)
        sync(folder.path)
    except OSError:
        folder.unwritten = True
        raise
