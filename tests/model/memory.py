"""What was seen of a world until now, and what may have been deleted or forgotten of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hushcount.collection.windows import window_start
from pipelines.files import storage
from tests.model.seen import Fate, Output, handed_on_at
from tests.model.world import World
from tests.support.collecting import DAY


class Broken(BaseException):
    """A promise was broken; no exception that a run may catch."""


@dataclass
class Memory:
    """What was seen until now.

    Attributes:
        outputs: the first that was seen of each, by place.
        forwarded: the batch that each report was forwarded in.
        keys: of charges that an output names, by place.
        draws: the values that were handed out, by the key that their release was charged under.
    """

    outputs: dict[str, Output] = field(default_factory=dict)
    forwarded: dict[bytes, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    draws: dict[str, frozenset[str]] = field(default_factory=dict)


def require(holds: bool, sentence: str) -> None:
    """Raise Broken unless a promise holds."""
    if not holds:
        raise Broken(sentence)


def is_old(world: World, place: str) -> bool:
    """Return whether retention may have deleted an output."""
    folder, _, batch = place.partition("/")
    window = batch.partition("-")[0]
    age = world.moment() - world.ends.get(window, window_start(window) + DAY)
    waits = world.kind.apart and folder == "shuffled" and bool(world.unread.get(place, {"reports"}))
    if waits and "at_most" in world.kind.retention:
        waits = world.moment() - handed_on_at(world, batch) <= 4 * DAY
    return folder in ("shuffled", "released") and bool(world.kind.retention) and age > 3 * DAY and not waits


def is_forgotten(world: World, path: str, told: Mapping[str, Fate]) -> bool:
    """Return whether retention deleted a segment with its manifest before the log was lost that knew it."""
    known = storage.relative(path, world.deployment.folder("segments")) in told
    return world.log_restored and not known and path not in world.harmed and not storage.exists(path)
