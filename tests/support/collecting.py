"""Make what collectors leave behind: segments with their manifests, from clients' real reports."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.clock import MACHINE
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.manifests import Manifest, SegmentPart
from hushcount.collection.windows import window_at
from hushcount.senders import Authentication
from hushcount.wire.blocks import read_header
from tests.support.jobs import done, write_lines

DAY = timedelta(days=1)
START = window_at(datetime.now(timezone.utc), DAY).start
"""The first day of every collection here. Keys that are made now are active an hour after its end, also if midnight
passes while the tests run."""


@contextmanager
def machine_at(moment: datetime | None) -> Iterator[None]:
    """Let the clock of this process show a moment; None: let it be. Containers that use this have no pytest."""
    seconds = MACHINE.seconds
    if moment is not None:
        vars(MACHINE)["seconds"] = moment.timestamp
    try:
        yield
    finally:
        vars(MACHINE)["seconds"] = seconds


def window_name(day: float) -> str:
    """Return the name of a window, counted from START."""
    return f"{START + day * DAY:%Y%m%dT%H%M%SZ}"


def add_copies(of: Path, beside: Path, collector: str = "one") -> Path:
    """Let a window also hold a copy of another segment, as when clients had no answer and sent again; return it."""
    copy = beside.with_name("copies-000000.blocks")
    copy.write_bytes(of.read_bytes())
    manifest = beside.parents[1] / f"{collector}.manifest.json"
    described, other = (json.loads(path.read_text()) for path in (manifest, of.parents[1] / "one.manifest.json"))
    (part,) = (part for part in other["segments"]["reports"] if part["name"] == of.name)
    described["segments"]["reports"].append({**part, "name": copy.name})
    manifest.write_text(json.dumps(described))
    return copy


def collect(
    store: Path,
    campaign_path: Path,
    values: Sequence[str],
    day: float,
    collector: str = "one",
    *,
    clients: bool = False,
    seconds: int = 86_400,
    streams: Sequence[str] = ("reports", "discovery"),
    authentication: Authentication = "client-token",
    evaluator: Path | None = None,
    came: float | None = None,
) -> list[Path]:
    """Leave what a collector that received these values' reports on a day would; return its segments.

    Each value is another client's, unless lines name their clients. The store has the manifest since `came`, in days
    from START on; None: since now, or since its window's end if that is over.
    """
    campaign = Campaign.read(campaign_path)
    scratch = store / ".scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    lines = write_lines(store.parent / "sent.txt", values)
    options = [*(["--clients"] if clients else []), *([] if evaluator is None else ["--evaluator", evaluator])]
    # With noise reports name the window in which they are made.
    made_at = None if campaign.noise is None else START + day * DAY
    with machine_at(made_at):
        done("job", "encode", "--campaign", campaign_path, "--values", lines, "--out", scratch, *options)
    home = store / "segments" / campaign.id / epoch_folder(campaign) / window_name(day)
    segments: dict[str, tuple[SegmentPart, ...]] = {}
    made = []
    for stream in (stream for stream in campaign.streams if stream in streams):
        (home / stream).mkdir(parents=True, exist_ok=True)
        parts = []
        for number, path in enumerate(sorted((scratch / stream).glob("*.blocks"))):
            target = home / stream / f"{collector}-{number:06d}.blocks"
            shutil.move(path, target)
            made.append(target)
            with target.open("rb") as stream_of_bytes:
                records = read_header(stream_of_bytes, target.name).records
            data = target.read_bytes()
            digest = hashlib.blake2b(data, digest_size=32).hexdigest()
            parts.append(SegmentPart(name=target.name, records=records, bytes=len(data), digest=digest))
        segments[stream] = tuple(parts)
    manifest = Manifest(
        collector=collector,
        campaign=campaign.id,
        epoch=campaign.epoch,
        fingerprint=campaign.fingerprint.hex(),
        window=window_name(day),
        seconds=seconds,
        authentication=authentication,
        segments=segments,
        refused={},
    )
    path = home / f"{collector}.manifest.json"
    path.write_text(json.dumps(manifest.model_dump(mode="json")))
    # By this time its reports are late or not: a window that is long over was not stored now.
    ended = (START + day * DAY).timestamp() + seconds
    moment = min(ended, path.stat().st_mtime) if came is None else (START + came * DAY).timestamp()
    os.utime(path, (moment, moment))
    shutil.rmtree(scratch)
    return made
