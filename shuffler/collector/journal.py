"""Journals: envelopes on a local disk, synced before anybody is told that they are kept.

    header  magic "HUSHJRN1", kind, record length, epoch, start of the window in ms since 1970, campaign fingerprint and
            id, CRC-32 of all this
    frame   length of the payload, CRC-32 of the payload, then the payload: one or more envelopes

All little-endian. A frame is what was synced at once. A crash leaves whole frames and at most a part of one more, at
the end; `recover` returns what the whole ones hold.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from hushcount.blocks import ID_BYTES, Kind
from hushcount.errors import FormatError
from hushcount.files import sync

_MAGIC = b"HUSHJRN1"
_HEADER = struct.Struct(f"<8sIIQQ32s{ID_BYTES}s")
_FRAME = struct.Struct("<II")
_CRC = struct.Struct("<I")
HEADER_BYTES = _HEADER.size + _CRC.size


@dataclass(frozen=True)
class JournalHeader:
    """Whose envelopes a journal holds.

    Attributes:
        kind: of envelopes, which says the stream.
        record_bytes: length of an envelope.
        epoch: of the campaign file.
        window_ms: start of the window, milliseconds since 1970.
        campaign: the 32-byte fingerprint of the campaign file.
        campaign_id: its id.
    """

    kind: Kind
    record_bytes: int
    epoch: int
    window_ms: int
    campaign: bytes
    campaign_id: str

    def encode(self) -> bytes:
        """Return the HEADER_BYTES bytes at the start of a journal."""
        packed = _HEADER.pack(
            _MAGIC,
            self.kind,
            self.record_bytes,
            self.epoch,
            self.window_ms,
            self.campaign,
            self.campaign_id.encode(),
        )
        return packed + _CRC.pack(zlib.crc32(packed))


@dataclass(frozen=True)
class Recovered:
    """What a journal holds.

    Attributes:
        header: its header, or None where not even that is whole: nothing in it was ever acknowledged.
        records: the envelopes of all whole frames, in the order in which they were appended.
        whole_bytes: length of the file up to where the torn frame begins.
        torn_bytes: length of what comes after.
        damaged_records: envelopes of frames in the middle that fail their checksum: the disk altered them.
    """

    header: JournalHeader | None
    records: bytes
    whole_bytes: int
    torn_bytes: int
    damaged_records: int


def recover(data: bytes, name: str) -> Recovered:
    """Return what the bytes of a journal hold; `name` is the file's, for the error.

    Raises:
        FormatError: not a journal of this version, or its header is damaged though it is long enough to be whole.
    """
    if len(data) < HEADER_BYTES:
        return Recovered(None, b"", 0, len(data), 0)
    header = _decode(data[:HEADER_BYTES], name)
    view, frames, damaged = memoryview(data), [], 0
    start = HEADER_BYTES
    while len(data) - start >= _FRAME.size:
        length, checksum = _FRAME.unpack_from(data, start)
        end = start + _FRAME.size + length
        # A file that a crash left longer than what was written ends in zeros.
        if length == 0 or length % header.record_bytes or end > len(data):
            break
        payload = view[start + _FRAME.size : end]
        if zlib.crc32(payload) == checksum:
            frames.append(payload)
        elif end == len(data):
            break
        else:
            damaged += length // header.record_bytes
        start = end
    return Recovered(header, b"".join(frames), start, len(data) - start, damaged)


def _decode(raw: bytes, name: str) -> JournalHeader:
    magic, kind, record_bytes, epoch, window_ms, campaign, campaign_id = _HEADER.unpack(raw[: _HEADER.size])
    if magic != _MAGIC or _CRC.unpack(raw[_HEADER.size :])[0] != zlib.crc32(raw[: _HEADER.size]):
        raise FormatError(f"{name} is no journal of version 1, or its header is damaged: move it out of the directory")
    return JournalHeader(
        Kind(kind), record_bytes, epoch, window_ms, campaign, campaign_id.rstrip(b"\0").decode("utf-8", "replace")
    )


@dataclass
class Journal:
    """A journal that is open for appending; each write to it waits for the disk.

    Attributes:
        path: of the file.
        header: whose envelopes.
        synced: length of the file that is known to be on the disk.
    """

    path: Path
    header: JournalHeader
    synced: int = 0
    _descriptor: int = field(default=-1, repr=False)

    @classmethod
    def create(cls, path: Path, header: JournalHeader) -> Journal:
        """Make a new journal, its name and header on the disk when this returns.

        Raises:
            OSError: the disk is full or the directory cannot be written; nothing is left but, at worst, a file with a
                torn header.
        """
        # O_DSYNC: a write returns when fdatasync would, in one system call instead of two.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_DSYNC | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        journal = cls(path, header, _descriptor=descriptor)
        try:
            journal._write(header.encode())
            sync(path.parent)
        except OSError:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        return journal

    def append(self, records: bytes) -> None:
        """Write a frame of one or more whole envelopes; they are on the disk when this returns.

        Raises:
            OSError: the disk is full or broken; `abandon` the journal.
        """
        if not records or len(records) % self.header.record_bytes:
            raise ValueError(f"records has {len(records)} bytes, must be whole envelopes of {self.header.record_bytes}")
        self._write(_FRAME.pack(len(records), zlib.crc32(records)) + records)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def abandon(self) -> None:
        """Cut off what was written of a frame that failed, as far as the disk lets us, and close the file.

        What cannot be cut off stays: a torn frame, which `recover` drops, or reports that were not acknowledged, of
        which a client's second try is a copy. After a failed write nobody knows what the disk has, so the file is not
        appended to again.
        """
        try:
            os.ftruncate(self._descriptor, self.synced)
            os.fsync(self._descriptor)
        except OSError:
            pass
        finally:
            os.close(self._descriptor)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]
        self.synced += len(data)
