"""Run the real command line in this process, and make its inputs: keys, campaigns, values, whole chains of jobs."""

from __future__ import annotations

import csv
import json
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from typer import testing
from typer.testing import CliRunner

from hushcount.campaigns.campaign import Campaign
from pipelines.cli import app
from pipelines.jobs.table_files import read_csv_rows
from pipelines.outputs.received_summary import folder_of

# typer makes all commands anew for each call, which takes longer than many a test.
testing._get_command = cache(testing._get_command)

ALPHA = 1e-6
"""The failure probability that every statistical test of these folders states."""

BEAM = ("--runner", "apache_beam.runners.portability.fn_api_runner.FnApiRunner")
"""Options of a job that Beam's own engine runs, whatever --engine says."""


@dataclass(frozen=True)
class Run:
    """What a command did: its exit status and what it printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def cli(*arguments: object) -> Run:
    """Run a command in this process; an exception that it does not turn into a sentence fails the test."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(
            f"{arguments[0]} let an exception escape:\n" + "".join(traceback.format_exception(*result.exc_info))  # type: ignore[misc]
        )
    return Run(result.exit_code, result.stdout, result.stderr)


def done(*arguments: object) -> Run:
    """Run a command that must end with status 0."""
    run = cli(*arguments)
    assert run.status == 0, f"{arguments}: status {run.status}\n{run.out}\n{run.err}"
    return run


def refused(*arguments: object, status: int = 2, says: Iterable[str] = ()) -> Run:
    """Run a command that must end with `status` and one sentence that contains every string of `says`."""
    run = cli(*arguments)
    assert run.status == status, f"{arguments}: status {run.status}, expected {status}\n{run.out}\n{run.err}"
    assert "Traceback" not in run.out + run.err, run.out + run.err
    for text in says:
        assert text in run.err, f"{text!r} is not in {run.err!r}"
    return run


def write_lines(path: Path, lines: Iterable[str | bytes]) -> Path:
    """Write one value a line."""
    path.write_bytes(b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines))
    return path


def values_of(counts: Mapping[str, int]) -> list[str]:
    """Return every value as often as it is counted, in a fixed mixed order."""
    values = [value for value, count in counts.items() for _ in range(count)]
    Random(5).shuffle(values)
    return values


def new_keys(directory: Path) -> Path:
    """Make key files."""
    done("keys", "new", "--out", directory)
    return directory


def new_campaign(
    path: Path,
    keys: Path,
    *options: object,
    mechanism: str | None = "grr",
    epsilon: float = 2.0,
    dictionary: Path | None = None,
    discovery: float | None = None,
    min_batch: int = 50,
) -> Path:
    """Write a campaign file and return its path; without a dictionary or numbers its domain is open."""
    arguments: list[object] = ["--id", path.stem.lower(), "--keys", keys, "--out", path, "--min-batch", min_batch]
    if mechanism is not None:
        arguments += ["--mechanism", mechanism]
    if mechanism is not None or "--mean" in options:
        arguments += ["--epsilon", epsilon]
    if dictionary is not None:
        arguments += ["--dictionary", dictionary]
    elif mechanism is not None and not {"--number", "--bins", "--count", "--flag"} & {*options}:
        arguments += ["--open-domain"]
    if discovery is not None:
        arguments += ["--discovery-epsilon", discovery, "--discovery-delta", "1e-9"]
    done("campaign", "new", *arguments, *options)
    return path


def each_a_client(values: Path, named: Path) -> Path:
    """Write each line of a file as one of a client of its own, for encode --clients, and return the new file."""
    lines = enumerate(values.read_bytes().splitlines())
    # Those of another file are other clients.
    return write_lines(named, (b"%s %d\t%s" % (values.stem.encode(), number, line) for number, line in lines))


@dataclass(frozen=True)
class Chain:
    """Where the files of one collection are: every job writes beside the campaign file."""

    campaign_path: Path
    keys: Path

    @property
    def campaign(self) -> Campaign:
        return Campaign.read(self.campaign_path)

    @property
    def dictionary(self) -> Path:
        """The campaign's own file of its items."""
        part = self.campaign.dictionary
        assert part is not None
        return self.campaign_path.with_name(part.path)

    def path(self, name: str) -> Path:
        return self.campaign_path.parent / f"{self.campaign_path.stem}-{name}"

    def encode(self, values: Path, *options: object, out: str = "encoded") -> Path:
        """Encode lines; each is another client's where they do not name their clients."""
        if "--clients" not in options:
            values, options = each_a_client(values, self.path("clients.txt")), (*options, "--clients")
        done("job", "encode", "--campaign", self.campaign_path, "--values", values, "--out", self.path(out), *options)
        return self.path(out)

    def shuffle_arguments(self, out: Path, source: str = "encoded") -> tuple[object, ...]:
        return ("job", "shuffle", "--campaign", self.campaign_path, "--input", self.path(source), "--out", out)

    def shuffle(self, *options: object, source: str = "encoded", out: str = "shuffled") -> Path:
        done(*self.shuffle_arguments(self.path(out), source), *options)
        return self.path(out)

    def analyze_arguments(self, source: str = "shuffled", out: str = "results") -> tuple[object, ...]:
        paths = ("--input", self.path(source), "--keys", self.keys, "--out", self.path(out))
        return ("job", "analyze", "--campaign", self.campaign_path, *paths)

    def analyze(self, *options: object, source: str = "shuffled", out: str = "results") -> Path:
        done(*self.analyze_arguments(source, out), *options)
        return self.path(out)

    def discover_arguments(self, source: str = "shuffled", out: str = "found") -> tuple[object, ...]:
        return ("job", "discover", *self.analyze_arguments(source, out)[2:])

    def discover(self, *options: object, source: str = "shuffled", out: str = "found") -> Path:
        done(*self.discover_arguments(source, out), *options)
        return self.path(out)


def summary(directory: Path) -> dict[str, Any]:
    """Read summary.json."""
    data: dict[str, Any] = json.loads((directory / "summary.json").read_text(encoding="utf-8"))
    return data


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read a CSV file as rows."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def files_of(directory: Path) -> Path:
    """Return where the files of an output are: beside its summary, or in the folder that it names."""
    return Path(folder_of(str(directory)))


def number(cell: str) -> float:
    """Return a cell of estimates.csv; true and false as they are."""
    return cell == "true" if cell in ("true", "false") else float(cell)


def estimates(directory: Path) -> dict[str, dict[str, float]]:
    """Read estimates.csv: columns by item, at full precision."""
    rows = read_csv_rows(str(files_of(directory) / "estimates.csv"), ("item",))
    return {row.pop("item"): {name: number(cell) for name, cell in row.items()} for row in rows}


def found(directory: Path) -> list[str]:
    """Read the items of found.csv."""
    return [row["item"] for row in read_csv(files_of(directory) / "found.csv")]


def files_under(directory: Path) -> dict[str, bytes]:
    """Return every file below a directory, hidden ones too, by its relative path."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
