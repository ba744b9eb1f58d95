"""One operator's deployment, whose clock the tests set."""

from __future__ import annotations

import json
import shutil
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hushcount.campaigns.campaign import Campaign
from keys.listing import read_listing
from keys.rotation import retire, rotate
from pipelines.audit.reconcile import Account, account_of
from pipelines.audit.view import View
from pipelines.deployment.campaigns import read_campaign
from pipelines.deployment.settings import Deployment
from pipelines.outputs.received_summary import folder_of
from pipelines.schedule.done import Done
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from tests.support.clocks import stopped
from tests.support.collecting import DAY, START, window_name
from tests.support.jobs import done, new_campaign, new_keys, summary, write_lines
from tests.support.stub_store import StubStore

FLOOR = 50
"""Minimum batch of its campaigns."""
OBJECTS = "stub://bucket/store"
"""A store of objects for it."""


class Site:
    """One operator's files, in a directory of their own."""

    mechanism: str | None = "grr"
    open_domain = False
    floor = FLOOR
    options: tuple[object, ...] = ()

    def __init__(
        self, root: Path, *, discovery: bool = False, evaluator_keys: int = 0, settings: str = "", tail: str = ""
    ) -> None:
        self.root = root
        self.evaluator = root / "evaluator"
        self.oblivious = evaluator_keys > 0
        if evaluator_keys:
            done("keys", "new", "--role", "evaluator", "--number", evaluator_keys, "--out", self.evaluator)
            tail = f'[analyzer]\nevaluator = "evaluator"\n{tail}'
        self.keys = new_keys(root / "keys")
        self.words = write_lines(root / "words.txt", ["alpha", "beta", "gamma"])
        self.discovery = discovery
        self.config = root / "deployment.toml"
        self.config.write_text(
            f'store = "store"\nledger = "ledger.db"\n{settings}\n'
            f'[windows]\nlength = "1d"\ngrace = "2d"\npatience = "1h"\n{tail}'
        )
        self.store = root / "store"
        self.store.mkdir()
        self.epochs: list[dict[str, object]] = []
        self.campaign = self.publish(1)

    def publish(self, epoch: int) -> Path:
        folder = self.root / "campaigns" / "words"
        folder.mkdir(parents=True, exist_ok=True)
        # The id of a campaign follows from the file's name.
        after = ["--after", folder / str(self.epochs[-1]["file"])] if self.epochs else []
        hashed = ["--hash", "oblivious", "--keys", self.evaluator] if self.oblivious else []
        path = new_campaign(
            folder / "words.json", self.keys, "--epoch", epoch, *after, *hashed, *self.options, min_batch=self.floor,
            dictionary=None if self.open_domain else self.words,
            mechanism=self.mechanism, discovery=1.0 if self.discovery else None,
        )  # fmt: skip
        path = path.rename(folder / f"epoch-{epoch:06d}.json")
        begins = (START + (epoch - 1) * DAY).isoformat()
        if self.epochs:
            self.epochs[-1]["ends"] = begins
        self.epochs.append({"epoch": epoch, "file": path.name, "begins": begins, "ends": None, "grace_ends": None})
        (folder / "collection.json").write_text(json.dumps({"epochs": self.epochs}))
        return path

    def add(self, name: str, *options: object, **more: Any) -> Path:
        """Put another campaign beside its own, whose first epoch begins with START; return the campaign file."""
        folder = self.root / "campaigns" / name
        folder.mkdir()
        path = new_campaign(folder / f"{name}.json", self.keys, *options, **more)
        epochs = [{"epoch": 1, "file": path.name, "begins": START.isoformat()}]
        (folder / "collection.json").write_text(json.dumps({"epochs": epochs}))
        return path

    def destroy(self, role: str) -> None:
        """Retire a party's private key before its time, as after a theft."""
        (key,) = self.keys.glob(f"{role}-*.key")
        id = key.stem.removeprefix(f"{role}-")
        (listed,) = (one for one in read_listing(self.keys).keys if one.id == id)
        # Whatever the day is by now: no key is pending any more a second after it began.
        later = listed.not_before + timedelta(seconds=1)
        rotate(self.keys, overlap=DAY, now=later)
        retire(self.keys, id, early=True, now=later)

    def move_to_objects(self) -> None:
        """Let its store be one of objects from now on, with what is in the folder."""
        self.config.write_text(self.config.read_text().replace('store = "store"', f'store = "{OBJECTS}"'))
        for path in sorted(path for path in self.store.rglob("*") if path.is_file()):
            StubStore.put(f"{OBJECTS}/{path.relative_to(self.store)}", path.read_bytes())

    @property
    def deployment(self) -> Deployment:
        return Deployment.read(self.config)

    def of(self, *parties: str) -> Deployment:
        """Return the deployment of some parties alone."""
        whole = self.deployment
        return replace(whole, file=whole.file.model_copy(update={"parties": parties}))

    def run(self, day: float, *, sure: bool = False) -> Done:
        """Run on a day; `sure`: the operator says that the clock is right, as after many days on which none ran."""
        return run(self.deployment, clock=stopped(at(day)), vouched=Vouched(clock_is_right=sure))

    def copied(self, root: Path) -> Site:
        """Return the same in another directory, as it is now."""
        twin = copy(self)
        twin.root = Path(shutil.copytree(self.root, root))
        twin.config, twin.store, twin.keys = (root / name for name in (self.config.name, "store", "keys"))
        twin.evaluator = root / "evaluator"
        twin.campaign = root / self.campaign.relative_to(self.root)
        return twin

    def batch(self, day: float, epoch: int = 1) -> str:
        folder = self.root / "campaigns" / "words" / f"epoch-{epoch:06d}.json"
        return f"{window_name(day)}-{epoch:06d}-{Campaign.read(folder).fingerprint.hex()[:16]}"

    def result(self, day: float, epoch: int = 1) -> dict[str, object]:
        return summary(self.store / "results" / "words" / self.batch(day, epoch))

    def files(self, folder: str, day: float, epoch: int = 1) -> Path:
        """Return the directory of the files that a run wrote of a batch."""
        return Path(folder_of(str(self.store / folder / "words" / self.batch(day, epoch))))


def site_of(root: Path, *, discovery: bool = False) -> Site:
    """Return a site whose grace is long enough for the windows of a week to close together."""
    site = Site(root, discovery=discovery)
    site.config.write_text(site.config.read_text().replace('grace = "2d"', 'grace = "9d"'))
    return site


def account_at(site: Site, day: float, *, past: bool = False, digests: bool = False) -> Account:
    """Return the account of a site's campaign on a day."""
    return account_of(view_of(site.deployment, at(day)), past=past, digests=digests)


def view_of(deployment: Deployment, now: datetime) -> View:
    """Return what the audit sees of the campaign."""
    return View(deployment, now, one=read_campaign(deployment.campaigns / "words"))


def at(day: float) -> datetime:
    """Return a moment, in days from START on."""
    return START + day * DAY


def values(number: int) -> list[str]:
    """Return values of clients, one third of them in no dictionary."""
    return [["alpha", "beta", "nobody"][index % 3] for index in range(number)]
