"""What collectors leave in a world's store: segments of reports, and a manifest of each window."""

from __future__ import annotations

import hashlib
import os
from datetime import timedelta

from hushcount.campaigns.campaign import Stream
from hushcount.collection.epochs import epoch_folder
from hushcount.collection.manifests import Manifest, SegmentPart
from hushcount.collection.segment_names import mark
from hushcount.collection.windows import Window
from pipelines.files import storage
from tests.model.made import SEGMENT, made
from tests.model.world import Acknowledged, Sent, World
from tests.support.collecting import DAY
from tests.support.records import ENVELOPES, envelopes, file_bytes


def collect(
    world: World, window: Window, reports: int = SEGMENT, copies: Sent | None = None, *, wrong: float = 0.0
) -> Sent:
    """Let a collector end a window: a segment of each stream, with copies of an earlier one's reports beside.

    Args:
        wrong: by how many days its clock is.
    """
    serial = next(world.serial)
    collector = f"c{serial}"
    home = _folder_of(world, window)
    sent = Sent(window, {}, {}, {})
    segments: dict[Stream, tuple[SegmentPart, ...]] = {}
    for stream in world.campaign.streams:
        rows = made().sealed[stream][serial * SEGMENT : serial * SEGMENT + reports]
        enveloped = envelopes(world.campaign, rows, [f"client {serial} {index}" for index in range(reports)])
        data = file_bytes(ENVELOPES[stream], enveloped, world.campaign.fingerprint, world.campaign.id)
        parts = []
        contents = [(data, reports)]
        if copies is not None:
            contents.append((copies.content[copies.paths[stream]], len(copies.sealed[stream])))
            copies.copied = True
        for number, (content, held) in enumerate(contents):
            key = f"{collector} {window.name}".encode()
            name = f"{collector}-{number:06d}-00000000-{mark('client-token', key)}.blocks"
            path = storage.join(home, stream, name)
            storage.write_whole(path, [content])
            digest = hashlib.blake2b(content, digest_size=32).hexdigest()
            parts.append(SegmentPart(name=name, records=held, bytes=len(content), digest=digest))
            world.acknowledged[path] = Acknowledged(
                window, stream, held, world.moment(), world.moment() + _wrong_stamp(world, wrong)
            )
            if not number:
                sent.paths[stream], sent.content[path] = path, content
        segments[stream] = tuple(parts)
        sent.sealed[stream] = {digest_of(row.tobytes()) for row in rows}
    end_window(world, window, collector, segments, wrong=wrong)
    world.sent.append(sent)
    return sent


def end_window(
    world: World,
    window: Window,
    collector: str,
    segments: dict[Stream, tuple[SegmentPart, ...]],
    *,
    wrong: float = 0.0,
) -> None:
    """Let a collector write its manifest of a window; on a disk its clock stamps it."""
    manifest = Manifest(
        collector=collector, campaign="words", epoch=1, fingerprint=world.campaign.fingerprint.hex(),
        window=window.name, seconds=int(window.length.total_seconds()), authentication="client-token",
        segments=segments, refused={},
    )  # fmt: skip
    path = storage.join(_folder_of(world, window), f"{collector}.manifest.json")
    storage.write_json(path, manifest.model_dump(mode="json"))
    if not world.kind.remote:
        written = (world.moment() + _wrong_stamp(world, wrong)).timestamp()
        os.utime(path, (written, written))


def _wrong_stamp(world: World, wrong: float) -> timedelta:
    """Return by how much the stamp of a file is wrong: a store of objects has a clock of its own."""
    return (world.store_wrong if world.kind.remote else wrong) * DAY


def _folder_of(world: World, window: Window) -> str:
    """Return where collectors put what comes in a window."""
    folder = world.deployment.folder("segments")
    return storage.join(folder, "words", epoch_folder(world.campaign), window.name)


def digest_of(sealed: bytes) -> bytes:
    """Return what a sealed report is known by here."""
    return hashlib.blake2b(sealed, digest_size=16).digest()
