"""The logo of a page, as a data address: a PNG or SVG file that was checked, in an element that runs no script."""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from xml.parsers.expat import ExpatError, ParserCreate

from hushcount.errors import UsageError

MOST_BYTES = 64 << 10
_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_PIXELS = 4096
_SVG = "http://www.w3.org/2000/svg svg"


def read_logo(path: Path) -> str:
    """Return the picture as a data address for the `src` of an image, where a browser runs no script of an SVG.

    Raises:
        UsageError: the file cannot be read, is larger than 64 KiB, or is no PNG or SVG picture.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"logo {path} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise UsageError(f"logo {path} is larger than {MOST_BYTES >> 10} KiB: give a smaller picture")
    kind = "png" if _is_png(data) else "svg+xml" if _is_svg(data) else None
    if kind is None:
        raise UsageError(f"logo {path} is no PNG or SVG picture: give one")
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _is_png(data: bytes) -> bool:
    """Return whether all chunks are whole, the first has a size of 1 to 4096 pixels a side, and the last is the end."""
    if not data.startswith(_PNG):
        return False
    at, kind = len(_PNG), b""
    while len(data) - at >= 12 and kind != b"IEND":
        (length,), first = struct.unpack_from(">I", data, at), kind == b""
        kind, end = data[at + 4 : at + 8], at + 8 + length
        if end + 4 > len(data) or zlib.crc32(data[at + 4 : end]) != int.from_bytes(data[end : end + 4], "big"):
            return False
        if first and (kind != b"IHDR" or length != 13 or not _fits(data[at + 8 : at + 16])):
            return False
        at = end + 4
    return kind == b"IEND" and at == len(data)


def _fits(size: bytes) -> bool:
    return all(1 <= side <= _MOST_PIXELS for side in struct.unpack(">II", size))


def _is_svg(data: bytes) -> bool:
    """Return whether it is well-formed XML with an SVG element at its root, and without a document type's entities."""
    names: list[str] = []

    def refuse(*_: object) -> None:
        raise ExpatError("a document type may have entities that grow without bound")

    parser = ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = lambda name, _: names.append(name)
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except ExpatError:
        return False
    return names[0] == _SVG
