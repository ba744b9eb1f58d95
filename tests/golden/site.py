"""An operator's deployment whose keys, campaign and segments are stored: what becomes of it is nearly all fixed."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tests.golden.described import Mask, described_database, described_tree, form
from tests.support.jobs import cli, done, files_under

KEPT = Path(__file__).parent / "kept"
EXPECTED = Path(__file__).parent / "expected"
BEFORE, AFTER, COLLECTOR, CAMPAIGNS = (KEPT / name for name in ("before", "after", "collector", "campaigns"))
KEYS = KEPT / "keys.json"
LEDGER = "ledger.db"
CAME = timedelta(days=1, minutes=5)
"""A manifest is in the store so long after the beginning of its window, which is of a day."""
RETENTION = """
[retention]
shuffled = "10d"
released = "10d"
dead_letters = "10d"
"""
SEGMENTS = 'segments = "10d"\n'

_CHARGE = ("key", "manifest", "outline", "run", "host", "pid", "draw", "digest")
_DRAWN = (
    "files.*.*.digest", "signature", "made_from", "shuffled", "*ledger.charged.key", "*ledger.charged.manifest",
    *(f"charges.{name}" for name in _CHARGE), *(f"charges.*.{name}" for name in _CHARGE), "limits.digest",
    "discovery.hash_key", "epochs.1", "folder", "log.digest", "identity.id", "followed.entry",
    # Of a statement.
    "summary", "after.entry",
)  # fmt: skip
PROSE = (
    "privacy.sentences.*", "privacy.plain.*", "privacy.unit", "privacy.*.unit", "privacy.*.against", "problems.*",
    "dropped.*", "*.collecting.seen", "bias", "total_from", "domain",
)  # fmt: skip
NAMES = {
    "[0-9a-f]{32}[.]replayed[.]json": "LETTERS.replayed.json",
    "draws/[0-9a-f]{64}": "draws/KEY",
    "/[0-9a-f]{16}/": "/FOLDER/",
    "-[0-9a-f]{16}[.]json": "-ENTRY.json",
}


def mask_of(root: Path) -> Mask:
    """Return what of a run in a directory is not fixed."""
    shuffled = ("*shuffled/*", "*released/*", "*dead_letter/*")
    # An entry repeats a summary.
    keys, prose = ((*these, *(f"decision.summary.{one}" for one in these)) for these in (_DRAWN, PROSE))
    prose = (*prose, "decision.dropped.*")
    return Mask(root, keys=(*keys, "*.says", "seconds.*"), shuffled=shuffled, prose=prose, names=NAMES)


def restored(root: Path, *, over: Path | None = None, kept: Path = KEPT) -> Path:
    """Copy the stored deployment to a directory, its keys beside it.

    Args:
        root: the directory.
        kept: where the deployment is stored.
        over: further files: AFTER, for what a run leaves, whose ledger is made of its dump; or COLLECTOR.
    """
    files = files_under(kept / BEFORE.name) | (files_under(over) if over is not None else {})
    for name, data in files.items():
        _write(root / name, data)
    for path in (root / "store" / "segments").rglob("*.manifest.json"):
        came = (datetime.strptime(path.parent.name, "%Y%m%dT%H%M%S%z") + CAME).timestamp()
        os.utime(path, (came, came))
    for name, text in json.loads((kept / KEYS.name).read_text()).items():
        _write(root / name, text.encode())
        (root / name).chmod(0o600)
    dump = root / f"{LEDGER}.sql"
    if dump.exists():
        with closing(sqlite3.connect(root / LEDGER)) as connection:
            connection.executescript(dump.read_text(encoding="utf-8"))
        dump.unlink()
    return root


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def expected(name: str) -> Any:
    """Return what a test expects, by the name of its file."""
    return json.loads((EXPECTED / f"{name}.json").read_text(encoding="utf-8"))


@dataclass
class Site:
    """The deployment in a directory, and what was gathered of it.

    Attributes:
        root: the directory.
        seen: descriptions by the name of the file of expectations that they are compared with.
    """

    root: Path
    seen: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mask = mask_of(self.root)

    @property
    def config(self) -> Path:
        return self.root / "deployment.toml"

    @property
    def ledger(self) -> Path:
        return self.root / LEDGER

    def command(self, *arguments: object) -> dict[str, Any]:
        """Return the exit status of a command and what it prints with --json, masked."""
        run = cli(*arguments, "--json")
        return {"status": run.status, "printed": self.mask.data(run.json) if run.out else None}

    def _doctor(self) -> dict[str, Any]:
        """Return the verdicts of doctor, but of disks: how full they are is this machine's."""
        told = self.command("doctor", "--config", self.config)
        for check in told["printed"]:
            if check["name"].startswith("disk of "):
                del check["verdict"]
        return told

    def look(self, name: str, before: dict[str, bytes]) -> None:
        """Gather what the operator's commands show, the ledger and all files."""
        self.seen[f"{name}-looks"] = {
            "status": self.command("status", "--config", self.config),
            "doctor": self._doctor(),
            "ledger show": self.command("ledger", "show", "--ledger", self.ledger),
        }
        self.seen[f"{name}-ledger"] = described_database(self.ledger, self.mask)
        self.seen[f"{name}-files"] = told_once(described_tree(self.root, self.mask, before))


def first_run(root: Path) -> Site:
    """Let one run do all that is due in the stored deployment."""
    site = Site(restored(root))
    before = files_under(root)
    limit = ("--campaign", "words", "--epsilon", 50, "--delta", 1e-4)
    commands = {"ledger set": site.command("ledger", "set", "--ledger", site.ledger, *limit)}
    commands["run"] = site.command("run", "--config", site.config, "--clock-is-right")
    site.seen["first-commands"] = commands
    site.look("first", before)
    return site


def second_run(first: Site, root: Path) -> Site:
    """Approve what was found and set a retention; then let a run publish the next epoch and delete what is old.

    A third run deletes the segments too.

    Args:
        first: the site after its first run, which stays as it is.
        root: where a copy of it is to be.
    """
    site = Site(Path(shutil.copytree(first.root, root)))
    before = files_under(site.root)
    review = ("campaign", "review", "--config", site.config, "--campaign", "words")
    commands = {"review": site.command(*review), "approve": site.command(*review, "--approve", "all")}
    with site.config.open("a") as file:
        file.write(RETENTION)
    commands["run"] = site.command("run", "--config", site.config, "--clock-is-right")
    site.seen["second-commands"] = commands
    site.look("second", before)
    for part in ("looks", "ledger"):
        site.seen[f"second-{part}"] = differing(first.seen[f"first-{part}"], site.seen[f"second-{part}"])
    before = files_under(site.root)
    with site.config.open("a") as file:
        file.write(SEGMENTS)
    site.seen["third-commands"] = {"run": site.command("run", "--config", site.config, "--clock-is-right")}
    site.seen["third-files"] = told_once(described_tree(site.root, site.mask, before))
    return site


def told_once(files: dict[str, Any]) -> dict[str, Any]:
    """Return descriptions of files, where entries and attempts name the summary that they repeat."""
    published = {
        name: {key: value for key, value in data.items() if key != "log"}
        for name, data in files.items()
        if name.endswith("/summary.json") and isinstance(data, dict) and "log" in data
    }
    for name, data in files.items():
        if name.endswith("/FOLDER/summary.json"):
            files[name] = next((f"as {other}" for other, one in published.items() if one == data), data)
        elif "/log/" in name and isinstance(data, dict) and "decision" in data:
            files[name] = _entry(data, published)
    return files


def _entry(entry: dict[str, Any], published: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return an entry of a log without what is drawn anew, and without the summary that is published."""
    decision = dict(entry["decision"])
    for drawn in {"done": ("folder",), "charging": ("ledger",)}.get(decision["kind"], ()):
        if drawn in decision:
            decision[drawn] = form(decision[drawn])
    if summary := decision.get("summary"):
        decision["summary"] = next((f"as {name}" for name, one in published.items() if one == summary), summary)
    return entry | {"id": form(entry["id"]), "before": form(entry["before"]), "decision": decision}


def differing(before: Any, now: Any) -> Any:
    """Return JSON data without what is as it was: the lists and values that are others now."""
    if not isinstance(before, dict) or not isinstance(now, dict):
        return now
    changed = {key: differing(before.get(key), value) for key, value in now.items() if before.get(key) != value}
    return changed | dict.fromkeys(before.keys() - now.keys(), "gone")


def gathered(root: Path) -> dict[str, Any]:
    """Return all that both runs leave and say."""
    first = first_run(root / "first")
    second = second_run(first, root / "second")
    return {**first.seen, **second.seen}


def kept(root: Path) -> dict[str, Any]:
    """Return what is shown of the stored deployment in which a run has done all: every digest, and every moment."""
    site = Site(restored(root, over=AFTER))
    exact = Mask(root, prose=PROSE, since=None)
    shown = {
        "status": exact.data(done("status", "--config", site.config, "--digests", "--json").json),
        "ledger": exact.data(done("ledger", "show", "--ledger", site.ledger, "--json").json),
        "ledger check": exact.data(done("ledger", "check", "--ledger", site.ledger, "--json").json),
        "run": exact.data(done("run", "--config", site.config, "--clock-is-right", "--json").json),
    }
    # These go by the clock.
    shown["status"][0].pop("collecting")
    shown["ledger check"].pop("warnings")
    return {"kept": shown}


def emptied(path: Path) -> Path:
    """Remove a directory if it is there, and return it."""
    shutil.rmtree(path, ignore_errors=True)
    return path
