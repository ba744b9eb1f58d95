"""Read bytes that another party may have written: check their length first, then their depth, then their content.

All JSON and TOML files and all answers of services are read here. For any bytes, only our own exceptions leave this
module, and recursion, memory and quotations in messages have bounds.
"""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from pydantic import BaseModel, ValidationError

from hushcount.errors import FormatError, UsageError
from hushcount.formats.models import explain

RECORD_BYTES = 1 << 23
"""Longest file that a program wrote: a summary, a listing of keys."""
LISTING_BYTES = 1 << 24
"""Longest file that lists segments: a manifest, a batch, the record of a window of a stream."""
MOST_SEGMENTS = 1 << 14
"""Most segments of one stream in such a file; LISTING_BYTES hold so many, even with the longest metadata."""
TABLE_BYTES = 1 << 30
"""Longest file that has a line for each item."""
SETTINGS_BYTES = 1 << 18
"""Longest TOML file; people write TOML files by hand."""
DEEPEST = 32
"""Deepest nesting of objects and lists."""
_PIECE = 1 << 20
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_LONGEST_INTEGER = 20
_LONGEST_REASON = 200
Model = TypeVar("Model", bound=BaseModel)


def take(stream: IO[bytes], most: int, name: str) -> bytes:
    """Return the bytes of a stream; FormatError names the file if it has more than `most` bytes."""
    pieces, left = [], most + 1
    while left and (piece := stream.read(min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    if not left:
        raise FormatError(f"{name} has more than {most:,} bytes, must have at most that many")
    return b"".join(pieces)


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading; OSError for any other file, because reading it could block forever."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_file(path: Path, what: str, most: int = RECORD_BYTES) -> bytes:
    """Return the bytes of a regular file, at most `most`, or raise UsageError; errors call the file `what`."""
    try:
        with open_regular(path) as stream:
            return take(stream, most, f"{what} {path}")
    except OSError as error:
        raise UsageError(f"cannot read {what} {path}: {error.strerror}") from None


def parse_json(raw: bytes, name: str) -> Any:
    """Return the data of JSON text; errors call the file `name`.

    Raises:
        FormatError: the text is not UTF-8 or not JSON; or it is nested too deep, has a key twice, a number that is too
            long or not finite, or a lone surrogate.
    """
    return _parsed(raw, name, "JSON", _loads)


def parse_toml(raw: bytes, name: str) -> dict[str, Any]:
    """Return the data of TOML text, the operator's own settings; FormatError, with the reason, if it is not TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return _parsed(raw, name, "TOML", lambda text: tomllib.loads(text.replace("\r\n", "\n")))


def parse_object(raw: bytes, name: str) -> dict[str, Any]:
    """Return the data of JSON text like `parse_json`; FormatError also if the data is not an object."""
    data = parse_json(raw, name)
    if not isinstance(data, dict):
        raise FormatError(f"{name} holds a {type(data).__name__}, must hold an object")
    return data


def parse_model(model: type[Model], raw: bytes, name: str, fault: str = "is invalid") -> Model:
    """Return the object of JSON text as a model; FormatError as in `parse_object` and `validated`."""
    return validated(model, parse_object(raw, name), name, fault)


def validated(model: type[Model], data: Any, name: str, fault: str = "is invalid") -> Model:
    """Return data as a model; if it is invalid, FormatError says "`name` `fault`" and each error with its field."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise FormatError(f"{name} {fault}: {explain(error)}") from None


def read_mapping(path: Path, what: str) -> dict[str, Any]:
    """Read the mapping in a .json or .toml file without validation, or raise UsageError; errors call it `what`."""
    if path.suffix == ".json":
        return parse_object(read_file(path, what), f"{what} {path}")
    if path.suffix == ".toml":
        return parse_toml(read_file(path, what, SETTINGS_BYTES), f"{what} {path}")
    raise UsageError(f"{what} is {path}, must end in .json or .toml")


def _parsed(raw: bytes, name: str, kind: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(raw.decode())
    except UnicodeDecodeError:
        raise FormatError(f"{name} is not UTF-8") from None
    except RecursionError:
        raise FormatError(f"{name} is nested too deep for this program") from None
    except ValueError as error:
        reason = "".join(letter if letter.isprintable() else " " for letter in str(error)[:_LONGEST_REASON])
        raise FormatError(f"{name} is not {kind}: {reason}") from None


def _loads(text: str) -> Any:
    _require_nesting(text.encode())
    data = json.loads(
        text, parse_int=_integer, parse_float=_finite, parse_constant=_finite, object_pairs_hook=_distinct
    )
    if _SURROGATE.search(text.encode()):
        try:
            json.dumps(data, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("a lone surrogate, which is not valid text") from None
    return data


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # If a key occurs twice, one program would take the first value, another program the last.
    if len(data := dict(pairs)) != len(pairs):
        raise ValueError("an object with a key twice")
    return data


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INTEGER:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text[:_LONGEST_INTEGER]} is not finite as a float")
    return number


def _require_nesting(raw: bytes) -> None:
    brackets = b"".join(_ESCAPED.sub(b"", raw).split(b'"')[::2]).translate(None, _NO_BRACKETS)
    each = np.frombuffer(brackets, dtype=np.uint8)
    depth = np.cumsum(np.where((each == ord("[")) | (each == ord("{")), 1, -1), dtype=np.int64)
    if len(depth) and depth.max() > DEEPEST:
        raise ValueError(f"nested deeper than {DEEPEST} levels")
