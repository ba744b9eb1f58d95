"""results.json, the measurements so far. So a stopped benchmark can continue, and one stage can be measured again."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from benchmarks.growth import Curve
from benchmarks.machine import machine
from benchmarks.measure import Figures
from benchmarks.peers import PeerRow
from hushcount.errors import UsageError
from hushcount.formats.whole_files import write_over

_NAME = "results.json"
_FILE_MODE = 0o644


@dataclass
class Record:
    """Measurements of one machine and one set of versions.

    Attributes:
        machine: the result of `machine()` on the measuring machine.
        measured: by the names of stages.
        curves: how cost grows; empty if not measured.
        peers: empty if not measured.
    """

    machine: str = field(default_factory=machine)
    measured: dict[str, Figures] = field(default_factory=dict)
    curves: list[Curve] = field(default_factory=list)
    peers: list[PeerRow] = field(default_factory=list)


_ADAPTER = TypeAdapter(Record)


def read_record(directory: Path) -> Record:
    """Return the record in a directory's results.json, or an empty record if there is no file.

    Raises:
        UsageError: the file is damaged, or was measured elsewhere or with other versions.
    """
    path = directory / _NAME
    if not path.exists():
        return Record()
    record = stored_record(directory)
    if record.machine != machine():
        raise UsageError(
            f"{path} was measured on {record.machine}, this is {machine()}: give another --out, or --overwrite to "
            "measure everything again"
        )
    return record


def stored_record(directory: Path) -> Record:
    """Return the record in a directory's results.json, whatever machine it was measured on.

    Raises:
        UsageError: the file is damaged.
        FileNotFoundError: there is no such file.
    """
    path = directory / _NAME
    try:
        return _ADAPTER.validate_json(path.read_bytes())
    except ValidationError:
        raise UsageError(f"{path} is no record of measurements: give --overwrite to measure everything again") from None


def require_writable(directory: Path) -> None:
    """Make a directory and test that it can be written, before minutes of measuring.

    Raises:
        UsageError: the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        # Permissions are not enough to know: on some file systems nobody may write.
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise UsageError(
            f"--out is {directory}, must be a directory that can be written ({error.strerror}): give another"
        ) from None


def write_record(directory: Path, record: Record) -> None:
    """Write results.json."""
    directory.mkdir(parents=True, exist_ok=True)
    write_over(directory / _NAME, _ADAPTER.dump_json(record, indent=1) + b"\n", _FILE_MODE)
