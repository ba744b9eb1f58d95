"""Names of segments: COLLECTOR-SERIAL-NUMBER-WAY-KEY.blocks.

In a segment's name, WAY says how the segment's senders were told apart. KEY is the id of the key under which the
senders' tokens are hashed; each window of a collector's journal has its own key. The shuffler counts a client's reports
by the hashed token, so a client gets the cap once for each key. WAY and KEY are in the name so that they are known even
for a segment that no manifest lists.
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
"""A regular expression for WAY-KEY, the end of a segment's name."""
_NAME = re.compile(rf"(?P<collector>[a-z0-9][a-z0-9-]*?)-[0-9]{{6}}-[0-9a-f]{{8}}-{MARK}\.blocks")


@dataclass(frozen=True)
class SegmentName:
    """The parts of a segment's name; `key` is the id of the key under which the client tokens are hashed."""

    collector: str
    way: Authentication
    key: str


def key_id(key: bytes) -> str:
    """Return the id of a key that hashes client tokens: a hash, which does not reveal the key's 256 random bits."""
    return hashlib.blake2b(key, digest_size=_KEY_DIGITS // 2, person=_PERSON).hexdigest()


def mark(way: Authentication, key: bytes) -> str:
    """Return WAY-KEY, the end of the names of a journal's segments."""
    return f"{way}-{key_id(key)}"


def segment_named(path: str) -> SegmentName | None:
    """Return the parts of a segment's name, or None if the name does not have the form that collectors give."""
    match = _NAME.fullmatch(path.rpartition("/")[2])
    return None if match is None else SegmentName(match["collector"], as_way(match["way"]), match["key"])


def allotments(paths: Iterable[str]) -> int:
    """Return how many times a client gets the cap: the number of keys under which tokens were hashed, at least 1.

    A segment whose name has another form counts as one more key.
    """
    named = ((path, segment_named(path)) for path in paths)
    return max(1, len({path if name is None else (name.collector, name.key) for path, name in named}))


def senders_of(way: Authentication, segments: Mapping[Stream, Iterable[str]]) -> Senders:
    """Return the senders of segments from the segments' paths; `way` is the weakest way that told the senders apart."""
    return counted(way, allotments(segments.get("reports", ())), allotments(segments.get("discovery", ())))
