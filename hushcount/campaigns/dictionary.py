"""Dictionaries: the items that a campaign knows in advance, and how strings become items of a mechanism."""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np

from hushcount.arrays import UInt64Array
from hushcount.errors import UsageError
from hushcount.formats.lines import MOST_NAMED, bare_lines, is_utf8, require_fit, text_of
from hushcount.formats.reading import open_regular
from hushcount.items import MOST_SPELLED_BYTES, canonical, fault_of_item, may_be_item
from hushcount.maths.fingerprints import OTHER, fingerprints
from hushcount.oracles.mechanism import Mechanism

MOST_ITEMS = 1 << 24
MOST_BYTES = 1 << 28
"""Most bytes of a dictionary, unpacked."""
USUAL_BYTES = 1 << 25
"""Most bytes of a dictionary that a sender fetches, unless the sender's policy sets another limit."""
_PACKING = 6
"""Level of gzip. Level 9 takes three times as long, and its output is only one hundredth shorter."""
_MAGIC = b"\x1f\x8b"
_ORDER_BYTES = 16
_ORDER_PERSON = b"hushcount order"


@dataclass(frozen=True)
class Dictionary:
    """A list of distinct items in canonical spelling (`items.canonical`); callers must look up values in this spelling.

    UsageError if the list is empty, or if an item is invalid (`items.fault_of_item`) or repeated. The error has the
    name of the list and the lines of the wrong items, but not the items.
    """

    items: tuple[str, ...]
    name: InitVar[str] = "the list of items"

    def __post_init__(self, name: str) -> None:
        object.__setattr__(self, "items", tuple(map(canonical, self.items)))
        if not self.items:
            raise UsageError(f"{name} is empty, must hold at least 1 item")
        require_fit(_faults(self.items), name)

    @property
    def digest(self) -> str:
        """BLAKE2b-256 of the items, one item a line; this hash identifies the dictionary."""
        return hashlib.blake2b(self.text, digest_size=32).hexdigest()

    @property
    def text(self) -> bytes:
        """The content of the dictionary's file, unpacked: the items, one item a line."""
        return "".join(f"{item}\n" for item in self.items).encode()

    def packed(self) -> bytes:
        """Return the gzip file that clients fetch. The same items, packed by the same zlib, give the same bytes."""
        return gzip.compress(self.text, _PACKING, mtime=0)

    @cached_property
    def sizes(self) -> str:
        """A text that says how long the dictionary's file is, and how many bytes each client fetches."""
        return (
            f"{len(self.text):,} bytes; each client fetches {len(self.packed()):,} bytes, packed, once for each change"
        )

    def __contains__(self, value: str) -> bool:
        return value in self._index

    def positions(self, values: Sequence[str]) -> UInt64Array:
        """Return uint64[n]: the position of each value, or the number of items, which stands for "other"."""
        other = len(self.items)
        return np.fromiter((self._index.get(value, other) for value in values), dtype=np.uint64, count=len(values))

    @cached_property
    def is_in_random_order(self) -> bool:
        """Whether the items are in the order of `in_random_order`; dictionaries made by hand or long ago are not."""
        return self.items == in_random_order(self.items)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {item: position for position, item in enumerate(self.items)}


def _faults(items: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield line and fault of every item that is invalid or repeats an earlier item."""
    first: dict[str, int] = {}
    for line, item in enumerate(items, start=1):
        if (before := first.setdefault(item, line)) != line:
            yield line, f"is line {before} again, in NFC"
        elif (fault := fault_of_item(item)) is not None:
            yield line, fault if is_utf8(item) else "is not UTF-8"


def in_random_order(items: Iterable[str]) -> tuple[str, ...]:
    """Return canonical items sorted by their hash: each set of items has one such order, unrelated to the names.

    If the dictionary is in this order, the sum over any group of items has the same error as the sum over a random
    group (`estimating.summed`). In an alphabetical dictionary, groups such as all items with one prefix have
    consecutive positions, and affine hash functions do not treat consecutive positions like random ones.
    """
    return tuple(sorted(items, key=_place_of))


def _place_of(item: str) -> bytes:
    return hashlib.blake2b(item.encode(), digest_size=_ORDER_BYTES, person=_ORDER_PERSON).digest()


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a text or gzip file, without line ends and byte order mark.

    Raises:
        UsageError: the file cannot be read, or is not text in UTF-8 (`formats.lines.bare_lines`).
    """
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as stream:
            yield from bare_lines(stream, str(path))
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or 'it is damaged'}") from None


def read_items(path: Path) -> list[str]:
    """Return the items of a file, one a line, in canonical spelling; UsageError: it cannot be read or is not UTF-8."""
    items = [canonical(text_of(line)) for line in read_lines(path)]
    require_fit(((line, "is not UTF-8") for line, item in enumerate(items, start=1) if not is_utf8(item)), str(path))
    return items


def read_dictionary(path: Path, most: int = MOST_ITEMS) -> Dictionary:
    """Read a dictionary file, text or gzip with one item a line; another party may have made it.

    The dictionary may have at most `most` items, and no more bytes are read or unpacked than `most` items can have.

    Raises:
        UsageError: the file is missing, unreadable, not a regular file, damaged or too long, or lines are invalid or
            repeated. The error message contains nothing of the file's content.
    """
    try:
        with open_regular(path) as raw:
            return _parsed(raw, most, f"dictionary {path}")
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise UsageError(f"cannot read dictionary {path}: {reason}") from None


def parse_dictionary(data: bytes, most: int, most_bytes: int = MOST_BYTES) -> Dictionary:
    """Return the dictionary in a file's bytes, like `read_dictionary`; at most `most_bytes` bytes are unpacked."""
    try:
        return _parsed(io.BytesIO(data), most, "the dictionary", most_bytes)
    except (OSError, EOFError, zlib.error):
        raise UsageError("cannot read the dictionary: it is damaged") from None


def _parsed(raw: IO[bytes], most: int, name: str, most_bytes: int = MOST_BYTES) -> Dictionary:
    # No UTF-8 text begins with the two bytes of gzip, so neither the file's name nor a server's header is needed to
    # recognise gzip.
    packed = raw.read(len(_MAGIC)) == _MAGIC
    raw.seek(0)
    with gzip.GzipFile(fileobj=raw) if packed else raw as stream:
        lines = bare_lines(_bounded(stream.readline, most, most_bytes, name), name)
        return Dictionary(tuple(map(text_of, lines)), name)


def _bounded(readline: Callable[[int], bytes], most: int, most_bytes: int, name: str) -> Iterator[bytes]:
    number, left, longest = 0, most_bytes, MOST_SPELLED_BYTES + len(codecs.BOM_UTF8) + len(b"\r\n")
    while line := readline(longest + 1):
        number, left = number + 1, left - len(line)
        if left < 0:
            raise UsageError(
                f"{name} has more than {most_bytes:,} bytes unpacked: shorten it, or raise max_dictionary_bytes if a "
                "policy sets this limit"
            )
        if len(line) > longest:
            raise UsageError(
                f"line {number} of {name} is too long, must have at most {MOST_SPELLED_BYTES:,} bytes: drop it"
            )
        if number > most:
            raise UsageError(f"{name} has more items than the {most:,} that it may have: drop some")
        yield line


def items_of(mechanism: Mechanism, dictionary: Dictionary | None, values: Sequence[str]) -> UInt64Array:
    """Return uint64[n]: the item of each value; a value outside the dictionary becomes the reserved item "other".

    If `dictionary` is None, the domain is open, and every string that may be an item is a separate item.
    """
    if dictionary is not None and mechanism.encoder.domain is not None:
        return dictionary.positions(values)
    known = may_be_item if dictionary is None else dictionary.__contains__
    fit = np.fromiter(map(known, values), dtype=np.bool_, count=len(values))
    # Values that are no items may hold a lone surrogate, which has no fingerprint.
    named = fingerprints(value if listed else "" for value, listed in zip(values, fit, strict=True))
    return np.where(fit, named, np.uint64(OTHER))


def other_item(mechanism: Mechanism) -> int:
    """Return the reserved item "other": the last position, or in an open domain a fingerprint that no string has."""
    return OTHER if mechanism.encoder.domain is None else mechanism.encoder.domain - 1


def known_items(mechanism: Mechanism, dictionary: Dictionary | None, values: Sequence[str]) -> UInt64Array:
    """Return the items of values to estimate; UsageError names the values that are not in the dictionary."""
    absent = [] if dictionary is None else [at for at, value in enumerate(values) if value not in dictionary]
    if absent:
        named = ", ".join(f"{values[at]!r} (line {at + 1})" for at in absent[:MOST_NAMED])
        rest = f" and {len(absent) - MOST_NAMED:,} more" if len(absent) > MOST_NAMED else ""
        raise UsageError(
            f"these items are not in the campaign's dictionary, so that their reports count as 'other': {named}{rest}; "
            "ask for listed items, or collect with --open-domain"
        )
    return items_of(mechanism, dictionary, values)


def tally_items(mechanism: Mechanism, wanted: UInt64Array | None = None) -> UInt64Array:
    """Return the items for which a tally has columns, as uint64[c], distinct and ascending.

    With a dictionary, the tally has a column for each item and for "other". In an open domain, a tally that counts
    cells of a sketch has no columns for items. Any other tally has a column for each item in `wanted`, because no other
    item can be estimated later; UsageError if `wanted` is None.
    """
    encoder = mechanism.encoder
    if encoder.domain is not None or not encoder.by_item:
        return np.arange(encoder.domain or 0, dtype=np.uint64)
    if wanted is None:
        raise UsageError(
            "this mechanism has no sketch of the open domain: say which items to count, by --items FILE, or by --found "
            "with the output of hushcount job discover"
        )
    return np.unique(wanted)
