"""Addresses: a client replaces a URL by its site, its host, or its host and the begin of its path (docs/adr/0057).

All spellings of one address become one text, and what may identify a person or hold a secret is left out: scheme,
query, fragment, parameters of segments, and segments that look like an id. What is no public address of the web, such
as an IP address, a port or a name of a local network, counts as "other".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from typing import Literal
from unicodedata import category, normalize
from urllib.parse import quote, unquote_to_bytes

from hushcount.formats.unicode13 import is_assigned, nfc
from hushcount.items import MOST_ITEM_BYTES, fault_of_text

Take = Literal["site", "host", "path"]
"""What clients tell of an address, from the least to the most."""
OTHER = ""
"""What is no address: no item is empty, so it counts as "other"."""
MOST_URL_CHARACTERS = 8192
MOST_SEGMENTS = 8
ID = ":id"
"""What stands for a segment that looks like an id."""
_PARTS = re.compile(r"http(s?):[/\\]*([^/\\?#]*)([^?#]*)", re.IGNORECASE | re.ASCII)
_ENDS = "".join(map(chr, range(33)))
_DROPPED = str.maketrans("", "", "\t\n\r")
_PORT = re.compile(r":([0-9]*)\Z")
_DOTS = re.compile("[.\u3002\uff0e\uff61]")
_LABEL = re.compile(r"[a-z0-9_-]{1,63}")
_MOST_HOST_CHARACTERS = 253
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LOCAL = frozenset((
    "alt", "arpa", "corp", "home", "i2p", "internal", "intranet", "invalid", "lan", "local", "localdomain", "localhost",
    "onion", "private", "test",
))  # fmt: skip
"""Last labels of names that are not public (RFC 6761, 6762, 7686, 9476), or that local networks use."""
_UNFIT = re.compile("[\0-,./:-`{-\x7f\u1806\u180e\u200c\u200d]")
"""What no label has beside other letters than ASCII; browsers differ in the invisible ones."""
_RIGHT_TO_LEFT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
_ANY_RIGHT, _ALL_RIGHT = re.compile(_RIGHT_TO_LEFT), re.compile(f"{_RIGHT_TO_LEFT}+")
_HIDING = re.compile("%(?:2f|3f|23|5c)", re.IGNORECASE)
"""The encoded characters / ? # and \\, which servers read in different ways."""
_DOT, _DOT_DOT = re.compile(r"(?:\.|%2e)", re.IGNORECASE), re.compile(r"(?:\.|%2e){2}", re.IGNORECASE)
_KEPT = "!$&'()*+,:~"
_ESCAPE = re.compile("%[0-9a-fA-F]{2}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]{16}", re.IGNORECASE)
_DIGITS = 8
_MARKS = re.compile("[@=]")
"""A mail address, or a parameter with its value."""
_RUN, _URL_RUN = re.compile(r"[A-Za-z0-9+]{16,}"), re.compile(r"[A-Za-z0-9+_-]{16,}")
_TOKEN = re.compile(r"[A-Za-z0-9]{8,}")
_CHANGES = re.compile(r"[0-9][A-Za-z]+[0-9]+[A-Za-z]|[A-Za-z][0-9]+[A-Za-z]+[0-9]")
_KINDS = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))
_WORD = re.compile(r"[A-Za-z]?[a-z]+|[A-Z]+")


@dataclass(frozen=True)
class Suffixes:
    """The public suffixes, under which people register domains.

    Args:
        rules: lines of the public suffix list, in lower case, with Punycode for other letters than ASCII.

    Reference: publicsuffix.org/list, "Algorithm".
    """

    rules: Set[str]

    def site(self, host: str) -> str:
        """Return the domain that somebody registered: the public suffix and one more label; OTHER: there is none."""
        labels = host.split(".")
        length = self._length(labels)
        return ".".join(labels[-1 - length :]) if length < len(labels) else OTHER

    def _length(self, labels: Sequence[str]) -> int:
        """Return the number of labels of the public suffix of a host; a host without a rule has its last label."""
        for first in range(len(labels)):
            name, above = ".".join(labels[first:]), ".".join(labels[first + 1 :])
            if f"!{name}" in self.rules:
                return len(labels) - first - 1
            if name in self.rules or f"*.{above}" in self.rules:
                return len(labels) - first
        return 1


@dataclass(frozen=True)
class Address:
    """A part of a URL that is reported.

    Attributes:
        host: in lower case and Punycode, without a dot at its end.
        segments: the first MOST_SEGMENTS segments of the path that are not empty, percent-encoded.
    """

    host: str
    segments: tuple[str, ...]


def item_of_url(
    url: str,
    segments: int | None,
    suffixes: Suffixes | None,
    most: int = MOST_ITEM_BYTES,
    hosts: Collection[str] | None = None,
) -> str:
    """Return the text that stands for a URL: its site, its host, or its host and segments; OTHER: it is no address.

    Args:
        segments: the most segments of the path; None: no path.
        suffixes: the public suffixes, for a site; None: the whole host.
        most: the most bytes of the text; segments that do not fit are left out.
        hosts: the only hosts whose addresses are told; None: all.
    """
    address = address_of(url)
    if address is None or (hosts is not None and address.host not in hosts):
        return OTHER
    host = address.host if suffixes is None else suffixes.site(address.host)
    if segments is None:
        return host if len(host) <= most else OTHER
    for number in range(min(segments, len(address.segments)), -1, -1):
        if len(text := f"{host}/{'/'.join(address.segments[:number])}") <= most:
            return text
    return OTHER


def address_of(url: str) -> Address | None:
    """Return the host and the path of a URL as browsers read it (WHATWG); None: it is no public address of the web."""
    if len(url) > MOST_URL_CHARACTERS or any("\ud800" <= letter <= "\udfff" for letter in url):
        return None
    found = _PARTS.match(url.strip(_ENDS).translate(_DROPPED))
    if found is None:
        return None
    secure, authority, path = found.groups()
    host = _host_of(authority, "443" if secure else "80")
    segments = None if host is None else _segments_of(path)
    return None if host is None or segments is None else Address(host, segments)


def _host_of(authority: str, usual_port: str) -> str | None:
    """Return the host of an authority; None: it is no public name, or there is a port or user info."""
    port = _PORT.search(authority)
    if port is not None and port[1] and port[1].lstrip("0") != usual_port:
        return None
    name = _decoded(authority if port is None else authority[: port.start()])
    if name is None or "@" in authority:
        return None
    *given, last = _DOTS.split(name, _MOST_HOST_CHARACTERS)
    labels = [label_of(label) for label in ([*given, last] if last else given)]
    host = ".".join(label or "" for label in labels)
    is_public = len(labels) > 1 and labels[-1] not in _LOCAL and _NUMBER.fullmatch(labels[-1] or "") is None
    return host if all(labels) and is_public and len(host) <= _MOST_HOST_CHARACTERS else None


def label_of(label: str) -> str | None:
    """Return a label of a host in lower case and Punycode (UTS 46, not transitional); None: it is not valid.

    Versions of UTS 46 differ in characters that Unicode 13.0 does not assign, in invisible ones, and browsers differ in
    text of two directions. Here labels with these are not valid. A label in Punycode is taken as it is.
    """
    if label.isascii():
        return text if _LABEL.fullmatch(text := label.lower()) else None
    if len(label) > _MOST_HOST_CHARACTERS:
        return None
    # Each letter by itself, because a sigma at the end of a word has another lower case.
    text = nfc("".join(letter.lower() for letter in label))
    if fault_of_text(text) is not None or not all(map(is_assigned, label)):
        return None
    compatible = normalize("NFKC", text)
    is_right = _ANY_RIGHT.search(compatible) is not None
    if is_right and (_ALL_RIGHT.fullmatch(compatible) is None or not _are_letters(compatible)):
        return None
    # Browsers differ in the capital sharp s too.
    if "\u1e9e" in label or _UNFIT.search(text + compatible) or compatible.lower().startswith("xn--"):
        return None
    return _punycode(text)


def _are_letters(text: str) -> bool:
    """Return whether a text has only letters, each with marks after it."""
    return text[0].isalpha() and all(category(letter)[0] in "LM" for letter in text)


def _punycode(text: str) -> str | None:
    import idna

    try:
        mapped = idna.uts46_remap(text, std3_rules=False, transitional=False)
        idna.check_initial_combiner(mapped)
        ascii_form = mapped if mapped.isascii() else f"xn--{mapped.encode('punycode').decode()}"
    except (idna.IDNAError, UnicodeError):
        return None
    return ascii_form if _LABEL.fullmatch(ascii_form) else None


def _segments_of(path: str) -> tuple[str, ...] | None:
    """Return the segments of a path, without dot segments and empty ones; None: a segment hides a separator."""
    if _HIDING.search(path) is not None:
        return None
    kept: list[str] = []
    for segment in re.split(r"[/\\]", path)[1:]:
        if _DOT_DOT.fullmatch(segment):
            kept[-1:] = []
        elif not _DOT.fullmatch(segment):
            kept.append(segment)
    return tuple(islice(filter(None, map(_segment_of, kept)), MOST_SEGMENTS))


def _segment_of(segment: str) -> str:
    """Return a segment in one spelling, without its parameters; ID: it looks like an id; "": nothing is left."""
    decoded = _decoded(segment)
    if decoded is None:
        return ID
    text = decoded.partition(";")[0]
    return ID if is_id(text) else "" if text in (".", "..") else quote(text, safe=_KEPT)


def _decoded(text: str) -> str | None:
    """Return a text without percent-encoding; None: its bytes are not UTF-8."""
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        return None


def is_id(segment: str) -> bool:
    """Return whether a decoded segment may be an id, a secret or a person's address; in doubt it may.

    A segment is one if it holds "@", "=", a UUID, 8 digits, 16 hexadecimal digits, or 16 letters and digits in a row
    that are no word: with a digit, or with a capital inside; or 8 letters and digits in a row with a capital, a small
    letter and a digit, or with letters and digits that change three times; or if it is still encoded.
    """
    if not all(map(is_assigned, segment)) or _MARKS.search(normalize("NFKC", segment)):
        return True
    if _ESCAPE.search(segment) or _UUID.search(segment) or _HEX.search(segment):
        return True
    if sum(letter.isdecimal() for letter in segment) >= _DIGITS:
        return True
    if any(_WORD.fullmatch(run) is None for run in _RUN.findall(segment)):
        return True
    if any(_CHANGES.search(run) or all(kind.search(run) for kind in _KINDS) for run in _TOKEN.findall(segment)):
        return True
    # Base64 for addresses has - and _, as titles of pages have; but titles seldom have digits and capitals too.
    return any(all(kind.search(run) for kind in _KINDS) for run in _URL_RUN.findall(segment))
