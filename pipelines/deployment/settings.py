"""The deployment file, TOML or JSON: the settings that one operator's collector, schedule and checks share."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from evaluator.settings import EvaluatorPart
from hushcount.campaigns.parts import Identifier
from hushcount.collection.manifests import CollectorName
from hushcount.collection.tilings import Tiling, Weekday, zone_of
from hushcount.collection.windows import LONGEST, duration_text
from hushcount.errors import UsageError
from hushcount.formats.models import Part
from hushcount.formats.reading import read_mapping, validated
from issuer.settings import IssuerPart
from pipelines import DEPLOYMENT
from pipelines.deployment.parts import AlertsPart, AnalyzerPart, DashboardPart, Duration, Length, NextEpochPart
from pipelines.files import storage
from shuffler.collector.settings import CollectorPart

Party = Literal["shuffler", "aux-server", "analyzer"]
PARTIES: tuple[Party, ...] = ("shuffler", "aux-server", "analyzer")
FOLDERS = (
    "segments", "evaluations", "log", "orders", "attempts", "shuffled", "released", "found", "mixed", "results",
    "estimates", "stated", "receipts",
)  # fmt: skip
"""The folders of the store; each folder can be in another place, such as another party's store."""
SAID = ("stated", "receipts")
"""Folders in which each party has its own folder; a party's folder, `stated/PARTY`, can be in another place too."""
_KEY_TEXTS = ("env:", "gcp-secret:")


def _zone(name: str) -> str:
    zone_of(name)
    return name


Zone = Annotated[str, Field(max_length=60), AfterValidator(_zone)]


class WindowsPart(Part):
    """The windows, in which reports are counted together."""

    length: Length = Field(
        description="length of a window, as in 1h or 1d; such windows are counted from Thursday, 1970-01-01, UTC, so "
        "7d begins on Thursdays; or day, week or month, which follow the calendar of `zone`; a change takes effect "
        "when the running window ends"
    )
    zone: Zone | None = Field(
        default=None, description="time zone of day, week or month, as in Europe/Berlin; by default UTC"
    )
    starts: Weekday | None = Field(default=None, description="first day of a week; by default monday")
    grace: Duration = Field(
        description="how long after the end of its window a late segment, or a report of an earlier epoch, still "
        "counts; a change applies to windows that end after the running one"
    )
    patience: Duration = Field(
        default=timedelta(minutes=10),
        description="how long after a window's end hushcount run waits for the collectors' manifests",
    )

    @model_validator(mode="after")
    def _check(self) -> WindowsPart:
        for name in ("length", "grace"):
            if isinstance(span := getattr(self, name), timedelta) and span > LONGEST:
                raise ValueError(f"{name} is {span.days}d, must be at most {LONGEST.days}d")
        if self.zone is not None and isinstance(self.length, timedelta):
            raise ValueError(f"zone is {self.zone!r}, must be left out unless length is day, week or month")
        if self.starts is not None and self.length != "week":
            raise ValueError(f"starts is {self.starts!r}, must be left out unless length is week")
        if self.patience > self.grace:
            patience, grace = duration_text(self.patience), duration_text(self.grace)
            raise ValueError(f"patience is {patience}, must be at most the grace period, {grace}")
        return self

    @cached_property
    def tiling(self) -> Tiling:
        """How time is cut into windows."""
        return Tiling(self.length, self.zone or "UTC", self.starts or "monday")


class RetentionPart(Part):
    """How long after the end of their window files stay in the store; files without a value stay for ever.

    No file is deleted before all hops that run here have used it. Numbers, tallies and estimates always stay.
    """

    segments: Duration | None = Field(default=None, description="the segments that collectors stored")
    shuffled: Duration | None = Field(
        default=None, description="the shuffler's output; its deletion waits for the receipts of parties elsewhere"
    )
    released: Duration | None = Field(
        default=None,
        description="the auxiliary server's output; its deletion waits for the receipts of parties elsewhere",
    )
    mixed: Duration | None = Field(
        default=None, description="the auxiliary server's output with noise; its deletion waits in the same way"
    )
    at_most: Duration | None = Field(
        default=None,
        description="longest time that shuffled, released and mixed wait for receipts; without it, until all have come",
    )
    dead_letters: Duration | None = Field(
        default=None,
        description="the rejected reports that hops kept; they can be replayed until they are deleted",
    )


class EnginePart(Part):
    """The engine that runs the jobs."""

    runner: str = Field(
        default="FnApiRunner",
        description="Beam runner, such as FlinkRunner; DirectRunner is the default too: the embedded engine",
    )
    options: tuple[str, ...] = Field(default=(), description="Beam options, as a job takes them after a bare --")


class MetricsPart(Part):
    """The numbers that `hushcount run` writes at the end of each look."""

    textfile: str = Field(
        description="file in Prometheus' text format, ending in .prom, that each look replaces; for a collector of "
        "text files such as node_exporter's"
    )
    run: str | None = Field(
        default=None,
        description="label `run` of each number; it must differ between files that one collector of text files reads; "
        "by default the names of the parties that run here, as in shuffler",
        pattern=r"^[A-Za-z0-9._+-]{1,64}$",
    )

    @model_validator(mode="after")
    def _check(self) -> MetricsPart:
        if not self.textfile.endswith(".prom"):
            raise ValueError(f"textfile is {self.textfile!r}, must end in .prom: node_exporter ignores other files")
        return self


class DeploymentFile(Part):
    """The deployment file as it is written, with paths unresolved."""

    format: Literal[1] = Field(default=1, description="version of this format")
    store: str = Field(description="directory of the store, relative to this file, or gs:// or s3://")
    campaigns: str = Field(default="campaigns", description="directory of campaigns, one folder each")
    keys: str = Field(
        default="keys", description="key directory of the parties that run here, env:NAME, or gcp-secret://NAME"
    )
    ledger: str | None = Field(
        default=None, description="ledger file that charges every release; without it nothing is charged"
    )
    sign_with: str | None = Field(
        default=None,
        description="key directory with the signing keys of the parties that run here (shuffler, aux-signer, "
        "analyzer-signer), which sign outputs, statements and receipts; without it these are unsigned",
    )
    shuffler_keys: str | None = Field(
        default=None, description="the shuffler's public.json: one of its keys must have signed the shuffler's output"
    )
    aux_server_keys: str | None = Field(
        default=None,
        description="public.json of aux-signer keys: one of them must have signed the auxiliary server's output",
    )
    analyzer_keys: str | None = Field(
        default=None,
        description="public.json of analyzer-signer keys: one of them must have signed the analyzer's receipts",
    )
    parties: tuple[Party, ...] = Field(default=PARTIES, min_length=1, description="the parties that run here")
    collectors: tuple[CollectorName, ...] = Field(
        default=(), description="names of all collectors; a window is due as soon as all of them have closed it"
    )
    uncapped_discovery: bool = Field(
        default=False,
        description="discover values although collectors do not tell clients apart: then any client can reveal a value",
    )
    windows: WindowsPart
    retention: RetentionPart = Field(default_factory=RetentionPart)
    engine: EnginePart = Field(default_factory=EnginePart)
    paths: dict[str, str] = Field(
        default_factory=dict,
        description="paths of store folders that lie elsewhere, by name; one party's folder is called stated/shuffler",
    )
    next_epoch: dict[Identifier, NextEpochPart] = Field(
        default_factory=dict, description="by campaign; a campaign without a table gets no new epochs by itself"
    )
    analyzer: AnalyzerPart = Field(default_factory=AnalyzerPart)
    dashboard: DashboardPart = Field(default_factory=DashboardPart)
    collector: CollectorPart | None = Field(default=None, description="the collector that runs here")
    evaluator: EvaluatorPart | None = Field(default=None, description="the evaluator that runs here")
    issuer: IssuerPart | None = Field(default=None, description="the issuer of passes that runs here")
    alerts: AlertsPart | None = Field(default=None, description="without this table nobody gets alerts")
    metrics: MetricsPart | None = Field(default=None, description="without this table no metrics are written")

    @model_validator(mode="after")
    def _check(self) -> DeploymentFile:
        unnamed = [] if self.alerts is None else [one for one in self.alerts.groups if one not in self.analyzer.groups]
        if unnamed:
            raise ValueError(f"alerts.groups names {unnamed[0]!r}, must be among the groups of [analyzer.groups]")
        if self.alerts is not None and "analyzer" not in self.parties:
            raise ValueError("alerts: only the analyzer has results: move this table into the analyzer's file")
        of_one = [f"{name}/{party}" for name in SAID for party in PARTIES]
        strange = [name for name in self.paths if name not in (*FOLDERS, *of_one)]
        if strange:
            raise ValueError(f"paths names {strange[0]!r}, must be among {', '.join((*FOLDERS, *of_one))}")
        own = None if self.collector is None else self.collector.name
        if own is not None and self.collectors and own not in self.collectors:
            raise ValueError(
                f"collectors names {', '.join(self.collectors)}, must name {own} too, the collector that runs here: "
                "otherwise windows close before this collector has stored its reports"
            )
        # Windows with copies of one report may be this far apart, because each copy may come a grace period late.
        shortest = 2 * self.windows.grace + self.windows.tiling.longest
        for name in RetentionPart.model_fields:
            kept = getattr(self.retention, name)
            if kept is not None and kept < shortest:
                raise ValueError(
                    f"retention.{name} is {duration_text(kept)}, must be at least {duration_text(shortest)}, twice "
                    "windows.grace plus windows.length: late reports are compared with files of that age to find copies"
                )
        return self


@dataclass(frozen=True)
class Deployment:
    """A deployment with its paths resolved.

    Attributes:
        sign_with: directory of the signing keys of the parties that run here, or env:NAME; None: nothing is signed.
        file: the deployment file as it is written.
    """

    path: Path
    store: str
    campaigns: Path
    keys: Path | str
    ledger: Path | None
    sign_with: Path | str | None
    shuffler_keys: Path | None
    aux_server_keys: Path | None
    analyzer_keys: Path | None
    file: DeploymentFile

    @classmethod
    def read(cls, path: Path, *, waits: bool = False) -> Deployment:
        """Read a deployment file.

        Args:
            waits: whether to accept a file in place of a directory; a collector waits until it becomes a directory.

        Raises:
            UsageError: the deployment file is unreadable or invalid, where the message names every error with its
                field; or Beam does not know an option of the engine.
        """
        if not path.exists():
            raise UsageError(
                f"deployment file {path} does not exist: give -c FILE, set HUSHCOUNT_CONFIG, or change to its directory"
            )
        file = validated(DeploymentFile, read_mapping(path, "deployment file"), f"deployment file {path}")
        base = path.absolute().parent
        if file.engine.options or any(map(storage.is_remote, (file.store, *file.paths.values()))):
            # Imported only here, because Beam takes a second to import. Commands that only read a store need Beam's
            # options too.
            from pipelines.files.beam_options import reach_with

            reach_with(file.engine.options)
        found = cls(
            path=path,
            store=_resolve(base, file.store),
            campaigns=base / file.campaigns,
            keys=_key_source(base, file.keys),
            ledger=None if file.ledger is None else base / file.ledger,
            sign_with=None if file.sign_with is None else _key_source(base, file.sign_with),
            shuffler_keys=None if file.shuffler_keys is None else base / file.shuffler_keys,
            aux_server_keys=None if file.aux_server_keys is None else base / file.aux_server_keys,
            analyzer_keys=None if file.analyzer_keys is None else base / file.analyzer_keys,
            file=file,
        )
        if not waits:
            found._require_kinds()
        return found

    def _require_kinds(self) -> None:
        """Refuse a file in place of a directory, and the reverse, in which a run would silently find no work."""
        folders = {"store": self.store, **{name: self.folder(name) for name in self.file.paths}}
        for name, where in (*folders.items(), ("campaigns", str(self.campaigns))):
            if not storage.is_remote(where) and Path(where).exists() and not Path(where).is_dir():
                raise UsageError(f"deployment file {self.path}: {name} is {where}, must be a directory")
        if self.ledger is not None and self.ledger.exists() and not self.ledger.is_file():
            raise UsageError(f"deployment file {self.path}: ledger is {self.ledger}, must be a file")

    def command(self, words: str) -> str:
        """Return a hushcount command for this deployment that can be pasted into the shell of the present command."""
        return f"hushcount {words}" + ("" if str(self.path) == DEPLOYMENT else f" -c {shlex.quote(str(self.path))}")

    @property
    def base(self) -> Path:
        """The directory of the deployment file; paths in the deployment file are relative to it."""
        return self.path.absolute().parent

    @property
    def windows(self) -> WindowsPart:
        return self.file.windows

    @property
    def collector(self) -> CollectorPart | None:
        return self.file.collector

    @property
    def shuffles(self) -> bool:
        """Whether the shuffler, the only party that reads segments and manifests, runs here."""
        return "shuffler" in self.file.parties

    def folder(self, name: str, *names: str) -> str:
        """Return the path of a folder of the store, or of `names` in this folder."""
        if names and (own := self.file.paths.get(f"{name}/{names[0]}")) is not None:
            root, names = _resolve(self.base, own), names[1:]
        else:
            given = self.file.paths.get(name)
            root = storage.join(self.store, name) if given is None else _resolve(self.base, given)
        return storage.join(root, *names) if names else root

    def key_source(self, text: str) -> Path | str:
        """Return the path of a key directory in the deployment file; env:NAME and gcp-secret://NAME are not changed."""
        return _key_source(self.base, text)


def _key_source(base: Path, text: str) -> Path | str:
    return text if text.startswith(_KEY_TEXTS) else base / text


def _resolve(base: Path, path: str) -> str:
    return path if storage.is_remote(path) else str(base / path)
