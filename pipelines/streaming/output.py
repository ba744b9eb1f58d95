"""The output of a stream: whose windows it holds, which job writes to it, and what has become of its windows."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.envelopes import ENVELOPES
from hushcount.errors import UsageError
from hushcount.formats.reading import validated
from pipelines.files import storage
from pipelines.ledger.clock import Clock, Witness, usual_bound
from pipelines.outputs.staging import require_free
from pipelines.streaming.watch import is_manifest, list_names
from pipelines.streaming.windows import HELD, RECORD, STREAM, WORK, Held, StreamWindows, TooLate, WindowRecord

Note = TypeVar("Note", WindowRecord, Held, TooLate)
_WORK = re.compile(rf"\.[0-9a-f]{{32}}{re.escape(storage.PARTIAL)}")


@dataclass(frozen=True)
class Streamed:
    """What has become of the windows of a stream.

    Attributes:
        windows: the records of the settled windows, in order of time.
        too_late: reports of both streams that came too late, of the segments whose number of records is known.
        held: the faults of each window that has closed and is not settled.
        waiting: names of windows that have closed by the clock, and not by the collectors.
        clock: what the clock says, beside the newest manifest.
    """

    windows: list[WindowRecord]
    too_late: int
    held: dict[str, tuple[str, ...]]
    waiting: list[str]
    clock: str

    def data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {**asdict(self), "windows": [record.model_dump(mode="json") for record in self.windows]}


def streamed(segments: str, out: str, windows: StreamWindows) -> Streamed:
    """Return what has become of the windows of a stream that writes to `out`."""
    now = datetime.fromtimestamp(time.time(), timezone.utc)
    settled = _read_all(WindowRecord, out, f"*/{RECORD}")
    known = {record.window for record in settled}
    held = {note.window: note.faults for note in _read_all(Held, out, f"{HELD}/*.json") if note.window not in known}
    ends, waiting = [], set()
    for name in list_names(segments, tuple(ENVELOPES)):
        window = windows.of_name(name)
        if is_manifest(name):
            ends.append(window.end)
        elif window.name not in known and window.name not in held and windows.closes(window) <= now.timestamp():
            waiting.add(window.name)
    bound = usual_bound(windows.length, windows.lateness, windows.lateness)
    clock = Clock(now, bound, witnesses=(Witness("the newest manifest", tuple(ends)),))
    return Streamed(settled, too_late(out, settled), held, sorted(waiting), clock.says())


def too_late(out: str, settled: list[WindowRecord]) -> int:
    """Return how many reports of both streams came too late.

    A job that ended before it settled a window may have noted a segment that the next job found in time: a segment in
    a window's record has counted.
    """
    counted = {name for record in settled for name in record.segments}
    notes = _read_all(TooLate, out, "too_late/*/*/*.json")
    return sum(note.too_late or 0 for note in notes if note.segment not in counted)


def _read_all(kind: type[Note], out: str, pattern: str) -> list[Note]:
    return [validated(kind, storage.read_json(path), path) for path, _ in storage.list_tree(out, pattern)]


@contextmanager
def claimed(out: str, campaign: Campaign, windows: StreamWindows, inputs: tuple[str | Path, ...] = ()) -> Iterator[str]:
    """Yield a hidden directory in the output, for windows that are being made, and remove it at the end.

    `stream.json` names it, and the campaign file of the windows. Only the job that wrote there last may settle a
    window: it removes what a killed job left, and a job that still runs finds its directory gone.

    Raises:
        UsageError: the output holds another campaign file's windows, or other things.
    """
    path = storage.join(out, STREAM)
    ours = {
        "hop": "stream",
        "campaign": campaign.id,
        "epoch": campaign.epoch,
        "fingerprint": campaign.fingerprint.hex(),
        "window_seconds": int(windows.length.total_seconds()),
    }
    if storage.exists(path):
        held = storage.read_json(path)
        for name, value in ours.items():
            if held.get(name) != value:
                raise UsageError(
                    f"output directory {out} holds a stream with {name} {held.get(name)}, not {value}: give another"
                )
    else:
        require_free(out, False, (), inputs)
    name = f".{uuid.uuid4().hex}{storage.PARTIAL}"
    storage.write_json(path, {**ours, WORK: name})
    sweep(out, name)
    work = storage.join(out, name)
    if not storage.is_remote(out):
        Path(work).mkdir(mode=0o700)
    try:
        yield work
    finally:
        storage.remove_directory(work)
        if storage.read_json(path).get(WORK) == name:
            storage.write_json(path, ours)


def sweep(out: str, kept: str) -> None:
    """Remove what earlier jobs left of windows that they were making."""
    if storage.is_remote(out):
        found = {storage.relative(file, out).partition("/")[0] for file in storage.list_hidden(out)}
    else:
        found = {path.name for path in Path(out).iterdir() if path.is_dir()}
    for name in sorted(found - {kept}):
        if _WORK.fullmatch(name) is None:
            continue
        path = storage.join(out, name)
        if not storage.is_remote(out):
            # In one step, so that a job that still runs cannot put out what is half removed.
            path = str(Path(path).rename(Path(out) / f".{uuid.uuid4().hex}{storage.PARTIAL}"))
        storage.remove_directory(path)
