"""Describe files as JSON data: all that is fixed stands in it, what is drawn or tells the time is masked.

Block files, databases and arrays are read here by their documented bytes and not by the product's readers, so that
writer and reader cannot change together unnoticed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

_HEADER = struct.Struct("<8sIIIQ32s68sI")
_TIME = re.compile(r"(20[0-9]{2})(-?)[0-9]{2}\2[0-9]{2}T[0-9]{2}(:?)[0-9]{2}\3[0-9]{2}(\.[0-9]+)?(\+00:00|Z)")
_NOW = 2022
"""What is stored is of earlier years, so that a later moment is the clock's."""
_DIGITS = 9
_LINE = 120


@dataclass(frozen=True)
class Mask:
    """What of a description is not fixed.

    Attributes:
        root: directory of the run, which stands as ROOT.
        keys: patterns of JSON places, as in "files.*.*.digest", of which only the form is told.
        shuffled: patterns of paths of block files whose records come in a random order.
        drawn: patterns of paths of block files whose records are drawn anew.
        prose: patterns of JSON places where sentences for people stand, of which only the place is told.
        names: what stands for names that are drawn, by their regular expression.
        since: moments of this year and later are the clock's; None: none is.
    """

    root: Path
    keys: tuple[str, ...] = ()
    shuffled: tuple[str, ...] = ()
    drawn: tuple[str, ...] = ()
    prose: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    since: int | None = _NOW

    def text(self, text: str) -> str:
        """Return a text without the run's directory, the clock's moments, and names that are drawn."""
        text = text.replace(str(self.root), "ROOT")
        if (since := self.since) is not None:
            text = _TIME.sub(lambda match: "TIME" if int(match[1]) >= since else match[0], text)
        for pattern, name in self.names.items():
            text = re.sub(pattern, name, text)
        return text

    def data(self, data: Any, place: str = "") -> Any:
        """Return JSON data, its keys in their order, with what is not fixed masked."""
        if not isinstance(data, (Mapping, list, tuple)) and any(fnmatchcase(place, one) for one in self.keys):
            return form(data)
        if isinstance(data, str) and any(fnmatchcase(place, pattern) for pattern in self.prose):
            return "<prose>"
        if isinstance(data, Mapping):
            return {self.text(key): self.data(value, f"{place}.{key}".lstrip(".")) for key, value in data.items()}
        if isinstance(data, (list, tuple)):
            return [self.data(value, f"{place}.{index}".lstrip(".")) for index, value in enumerate(data)]
        if isinstance(data, (str, datetime)):
            return self.text(data if isinstance(data, str) else data.isoformat())
        return rounded(data)


def form(data: Any) -> Any:
    """Return what kind of value stands somewhere: its type, and the length of hexadecimal digits."""
    if isinstance(data, str) and re.fullmatch(r"[0-9a-f]{16,}", data):
        return f"<{len(data)} hexadecimal digits>"
    return f"<{type(data).__name__}>"


def rounded(value: Any) -> Any:
    """Return a number to nine digits: mathematical libraries differ in the last ones."""
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def described_tree(root: Path, mask: Mask, before: Mapping[str, bytes]) -> dict[str, Any]:
    """Return every file below a directory, hidden ones too and the ledger not, by its path.

    Args:
        root: the directory.
        mask: what is not fixed.
        before: files that were there: only a change of them, or that they are gone, is described.
    """
    there = {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file() and path.suffix != ".db"}
    changed = [name for name, path in there.items() if before.get(name) != path.read_bytes()]
    described = {mask.text(name): described_file(there[name], root, mask) for name in changed}
    described |= {mask.text(name): "gone" for name in before.keys() - there.keys() if not name.endswith(".db")}
    return dict(sorted(described.items()))


def described_file(path: Path, root: Path, mask: Mask) -> Any:
    """Return what is in a file, by its ending."""
    ending = path.suffix
    if ending in (".json", ".sig"):
        return mask.data(json.loads(path.read_text(encoding="utf-8")))
    if ending == ".blocks":
        return described_blocks(path.read_bytes(), str(path.relative_to(root)), mask)
    if ending == ".parquet":
        return described_parquet(path, mask)
    if ending == ".npz":
        return described_arrays(path)
    if ending in (".csv", ".txt", ".gz"):
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if ending == ".gz" else raw).decode()
        return re.sub(r"-?\d+\.\d+(?:e-?\d+)?", lambda number: str(rounded(float(number[0]))), text).splitlines()
    return "a file"


def described_blocks(raw: bytes, name: str, mask: Mask) -> dict[str, Any]:
    """Return the header of a block file and the digest of its records, in their order or sorted."""
    header, records = parsed_blocks(raw)
    magic, kind, record_bytes, per_block, number, fingerprint, campaign, _ = header
    data = {
        "magic": magic.decode(),
        "kind": kind,
        "record_bytes": record_bytes,
        "records_per_block": per_block,
        "records": number,
        "fingerprint": fingerprint.hex(),
        "campaign": campaign.rstrip(b"\0").decode(),
        "bytes": len(raw),
    }
    if any(fnmatchcase(name, pattern) for pattern in mask.drawn):
        return data
    if any(fnmatchcase(name, pattern) for pattern in mask.shuffled):
        rows = sorted(records[start : start + record_bytes] for start in range(0, len(records), record_bytes))
        return {**data, "sorted_records": digest(b"".join(rows))}
    return {**data, "digest": digest(raw)}


def parsed_blocks(raw: bytes) -> tuple[tuple[Any, ...], bytes]:
    """Return the fields of a block file's header and its records; checks every checksum."""
    header = _HEADER.unpack_from(raw)
    assert header[-1] == zlib.crc32(raw[: _HEADER.size - 4])
    records, place = b"", _HEADER.size
    _, _, record_bytes, per_block, number, _, _, _ = header
    for start in range(0, number, per_block):
        length = record_bytes * min(per_block, number - start)
        (checksum,) = struct.unpack_from("<I", raw, place)
        block = raw[place + 4 : place + 4 + length]
        assert checksum == zlib.crc32(block)
        records, place = records + block, place + 4 + length
    assert place == len(raw)
    return header, records


def described_parquet(path: Path, mask: Mask) -> dict[str, Any]:
    """Return the names and types of a table's columns, and its rows."""
    table = pq.read_table(path)
    columns = {column.name: f"{column.type}{'' if column.nullable else ' not null'}" for column in table.schema}
    return {"columns": columns, "rows": mask.data(table.to_pylist())}


def described_arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of an .npz file: types, shapes and values."""
    with np.load(path, allow_pickle=False) as file:
        return {
            name: {"dtype": file[name].dtype.str, "shape": list(file[name].shape), "values": _plain(file[name])}
            for name in file.files
        }


def _plain(array: np.ndarray[Any, Any]) -> Any:
    return array.tobytes().hex() if array.dtype == np.uint8 else array.tolist()


def described_database(path: Path, mask: Mask) -> dict[str, Any]:
    """Return the schema of an SQLite file, its pragmas, and all rows of its tables."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        schema = {
            name: " ".join(text.split())
            for name, text in connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
        }
        pragmas = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
        }
        rows = {name: list(_rows(connection, name, mask)) for name in schema}
    return {"pragmas": pragmas, "schema": schema, "rows": rows}


def _rows(connection: sqlite3.Connection, table: str, mask: Mask) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(f'SELECT * FROM "{table}"')  # noqa: S608  # a name from the schema
    names = [column[0] for column in cursor.description]
    # A column may hold a JSON object as text.
    read = ([json.loads(one) if str(one).startswith("{") else one for one in row] for row in cursor)
    rows = [mask.data(dict(zip(names, row, strict=True)), table) for row in read]
    # Masked first, for some keys are drawn.
    yield from sorted(rows, key=json.dumps)


def digest(raw: bytes) -> str:
    """Return the BLAKE2b-128 of bytes, in hexadecimal digits."""
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def as_text(data: Any, indent: str = "") -> str:
    """Return JSON text, in which the order of keys counts, what is short on one line."""
    line = json.dumps(data, ensure_ascii=False)
    if len(line) <= _LINE or not isinstance(data, (dict, list)):
        return line
    inner = indent + " "
    if isinstance(data, list):
        parts = [as_text(value, inner) for value in data]
    else:
        parts = [f"{json.dumps(key, ensure_ascii=False)}: {as_text(value, inner)}" for key, value in data.items()]
    left, right = "[]" if isinstance(data, list) else "{}"
    return f"{left}\n{inner}" + f",\n{inner}".join(parts) + f"\n{indent}{right}"


def digest_of_json(data: Any) -> str:
    """Return the BLAKE2b-256 of JSON data with sorted keys, which a summary names as what it was made from."""
    return hashlib.blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=32).hexdigest()
