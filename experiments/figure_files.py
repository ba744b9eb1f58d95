"""A figure's files, which appear whole or not at all, and the finished points of an unfinished figure."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.rows import Row
from hushcount.formats.whole_files import write_over

FILE_MODE = 0o644
SAME = ("figure", "version", "runs", "seed", "quick", "data")
"""The fields of a record that determine a result: if all of them agree, a figure need not run again."""


@dataclass(frozen=True)
class Folder:
    """Where results go.

    Attributes:
        files: directory of the figures' files.
        readme: the overview of all figures.
    """

    files: Path
    readme: Path

    @classmethod
    def of(cls, out: Path) -> Folder:
        """Return the folder of --out; if that is a Python package, as this one, the files go into its plots/."""
        return cls(out / "plots" if (out / "__init__.py").exists() else out, out / "README.md")

    def record(self, name: str) -> dict[str, Any] | None:
        """Return the record of a finished figure, or None."""
        try:
            found = json.loads((self.files / f"{name}.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        whole = all((self.files / f"{name}.{kind}").is_file() for kind in ("csv", "png"))
        return found if whole and isinstance(found, dict) else None

    def write(self, record: dict[str, Any], table: str, plot: bytes) -> None:
        """Write a figure's three files; the record is last, because a figure without a record counts as not run."""
        name = record["figure"]
        (self.files / f"{name}.json").unlink(missing_ok=True)
        write_over(self.files / f"{name}.csv", table, FILE_MODE)
        write_over(self.files / f"{name}.png", plot, FILE_MODE)
        write_over(self.files / f"{name}.json", as_json(record), FILE_MODE)


@dataclass(frozen=True)
class Unfinished:
    """The finished points of an unfinished figure.

    Attributes:
        directory: hidden, beside the figure's files; its name has a hash of the settings of the measurement.
    """

    directory: Path

    @classmethod
    def of(cls, folder: Folder, wanted: dict[str, Any]) -> Unfinished:
        """Return the place for the points of a figure, measured with the settings `wanted`."""
        key = hashlib.sha256(json.dumps({name: wanted[name] for name in SAME}, sort_keys=True).encode()).hexdigest()
        return cls(folder.files / f".{wanted['figure']}.{key[:16]}.tmp")

    def read(self, point: str) -> list[Row] | None:
        """Return a finished point's rows, or None."""
        path = self.directory / f"{point}.json"
        return [Row(**row) for row in json.loads(path.read_text(encoding="utf-8"))] if path.is_file() else None

    def keep(self, point: str, rows: list[Row]) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        write_over(self.directory / f"{point}.json", json.dumps([asdict(row) for row in rows]), FILE_MODE)

    def drop(self) -> None:
        """Forget the points: the figure is finished."""
        shutil.rmtree(self.directory, ignore_errors=True)


def as_json(data: Any) -> str:
    """Return JSON for a file."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
