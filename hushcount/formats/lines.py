"""Lines of files that people wrote: UTF-8, with or without a byte order mark; one error names all invalid lines."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import islice

from hushcount.errors import UsageError

MOST_NAMED = 20
"""The most invalid lines that an error names; the error counts all other invalid lines."""
_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
"""UTF-32 is listed first, because its little-endian mark begins with the mark of UTF-16."""


def fault_of_encoding(text: bytes) -> str | None:
    """Return why a file's text is not UTF-8, as a predicate with the cure; None if the text may be UTF-8."""
    kind = next((kind for mark, kind in _MARKS.items() if text.startswith(mark)), None)
    if kind is not None:
        return f"is {kind}, must be UTF-8: convert it, as with iconv -f {kind} -t UTF-8"
    if b"\0" in text:
        return "holds a NUL byte, as UTF-16 does, must be text in UTF-8: convert it, as with iconv -f UTF-16LE -t UTF-8"
    return None


def bare_lines(lines: Iterable[bytes], name: str) -> Iterator[bytes]:
    """Yield lines without line ends and byte order mark; UsageError names a file that cannot be UTF-8."""
    for number, line in enumerate(lines, start=1):
        if (fault := fault_of_encoding(line)) is not None and (number == 1 or b"\0" in line):
            raise UsageError(f"{name} {fault}")
        yield (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).rstrip(b"\r\n")


def text_of(line: bytes) -> str:
    """Return the text of a line; a byte that is not UTF-8 becomes a lone surrogate, which valid UTF-8 never has."""
    return line.decode(errors="surrogateescape")


def is_utf8(text: str) -> bool:
    """Return whether `text_of` made this text from bytes in UTF-8."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def require_fit(faults: Iterable[tuple[int, str]], name: str) -> None:
    """Raise UsageError if there are faults; its message names the first lines with their faults, and counts the others.

    Args:
        faults: line number and fault; a fault is the predicate of a sentence about its line.
        name: of the file.
    """
    left = iter(faults)
    if first := [f"line {line} {fault}" for line, fault in islice(left, MOST_NAMED)]:
        more = sum(1 for _ in left)
        rest = f"; and {more:,} more" if more else ""
        raise UsageError(f"{name} has unfit lines, {'; '.join(first)}{rest}: remove or correct them")
