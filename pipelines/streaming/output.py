"""The output of a stream: whose windows it holds, which job writes to it, and what has become of its windows."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.envelopes import ENVELOPES
from hushcount.errors import UsageError
from pipelines.files import storage
from pipelines.ledger.clock import Clock, Witness, usual_bound
from pipelines.outputs.staging import require_free
from pipelines.streaming.closing import is_manifest
from pipelines.streaming.watch import list_names
from pipelines.streaming.windows import HELD, RECORD, STREAM, WORK, StreamWindows

_WORK = re.compile(rf"\.[0-9a-f]{{32}}{re.escape(storage.PARTIAL)}")


@dataclass(frozen=True)
class Streamed:
    """What has become of the windows of a stream.

    Attributes:
        windows: the records of those that are settled, in order of time.
        too_late: reports of both streams that came too late, of the segments whose number of records is known.
        held: what is wrong with each that has closed and is not settled.
        waiting: names of those that the clock says have closed, and the collectors do not.
        clock: what the clock says, beside the newest manifest.
    """

    windows: list[dict[str, Any]]
    too_late: int
    held: dict[str, list[str]]
    waiting: list[str]
    clock: str


def streamed(segments: str, out: str, windows: StreamWindows) -> Streamed:
    """Return what has become of the windows of a stream that writes to `out`."""
    now = time.time()
    settled = [storage.read_json(path) for path, _ in storage.list_tree(out, f"*/{RECORD}")]
    known = {record["window"] for record in settled}
    notes = [storage.read_json(path) for path, _ in storage.list_tree(out, f"{HELD}/*.json")]
    held = {note["window"]: note["faults"] for note in notes if note["window"] not in known}
    there, ends, waiting = list_names(segments, tuple(ENVELOPES)), [], set()
    for name in there:
        window = windows.of_name(name)
        if is_manifest(name):
            ends.append(window.end)
        elif window.name not in known and window.name not in held and windows.closes(window) <= now:
            waiting.add(window.name)
    moment = datetime.fromtimestamp(now, timezone.utc)
    bound = usual_bound(windows.length, windows.lateness, windows.lateness)
    clock = Clock(moment, bound, witnesses=(Witness("the newest manifest", tuple(ends)),))
    return Streamed(settled, too_late(out, settled), held, sorted(waiting), clock.says())


def too_late(out: str, settled: list[dict[str, Any]]) -> int:
    """Return how many reports of both streams came too late.

    A job that ended before it settled a window may have noted a segment that the next one found in time: what the
    window's record lists has counted.
    """
    counted = {name for record in settled for name in record["segments"]}
    notes = [storage.read_json(path) for path, _ in storage.list_tree(out, "too_late/*/*/*.json")]
    return sum(note["too_late"] or 0 for note in notes if note["segment"] not in counted)


@contextmanager
def claimed(out: str, campaign: Campaign, windows: StreamWindows, inputs: tuple[str | Path, ...] = ()) -> Iterator[str]:
    """Yield a hidden directory in the output, for windows that are being made, and remove it at the end.

    `stream.json` names it, and whose windows the output holds. The job that wrote there last is the only one that may
    settle a window: what a killed job left is removed, and one that still runs finds its directory gone.

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
    """Remove what jobs before left of windows that they were making."""
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
