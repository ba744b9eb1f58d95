"""Names of segments: COLLECTOR-SERIAL-NUMBER-WAY-KEY.blocks.

WAY says how the segment's senders were told apart, and KEY is the id of the key that their tokens are hashed under: of
one window of one collector's journal. The cap counts by that hash, so that a client has the cap once for each key. So a
segment says both that no manifest lists.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hushcount.campaigns.campaign import Stream
from hushcount.senders import WAYS, Authentication, Senders, as_way, counted

_KEY_DIGITS = 16
_PERSON = b"token key id"
MARK = rf"(?P<way>{'|'.join(WAYS)})-(?P<key>[0-9a-f]{{{_KEY_DIGITS}}})"
"""WAY-KEY, in a regular expression."""
_NAME = re.compile(rf"(?P<collector>[a-z0-9][a-z0-9-]*?)-[0-9]{{6}}-[0-9a-f]{{8}}-{MARK}\.blocks")


@dataclass(frozen=True)
class SegmentName:
    """What the name of a segment says.

    Attributes:
        collector: that wrote it.
        way: how its senders were told apart.
        key: id of the key of its client tokens.
    """

    collector: str
    way: Authentication
    key: str


def key_id(key: bytes) -> str:
    """Return the id of a key of client tokens, which tells nothing of it: a hash of its 256 random bits."""
    return hashlib.blake2b(key, digest_size=_KEY_DIGITS // 2, person=_PERSON).hexdigest()


def mark(way: Authentication, key: bytes) -> str:
    """Return WAY-KEY, the end of the names of a journal's segments."""
    return f"{way}-{key_id(key)}"


def segment_named(path: str) -> SegmentName | None:
    """Return what a segment's name says; None: no collector named it."""
    match = _NAME.fullmatch(path.rpartition("/")[2])
    return None if match is None else SegmentName(match["collector"], as_way(match["way"]), match["key"])


def allotments(paths: Iterable[str]) -> int:
    """Return how many times a client gets the cap in segments: the keys of their tokens, at least 1.

    A segment that no collector named counts as a key of its own.
    """
    named = ((path, segment_named(path)) for path in paths)
    return max(1, len({path if name is None else (name.collector, name.key) for path, name in named}))


def senders_of(way: Authentication, segments: Mapping[Stream, Iterable[str]]) -> Senders:
    """Return whose reports segments hold.

    Args:
        way: the weakest by which their senders were told apart.
        segments: their paths, by stream.
    """
    return counted(way, allotments(segments.get("reports", ())), allotments(segments.get("discovery", ())))
