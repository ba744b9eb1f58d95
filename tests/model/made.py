"""What all worlds begin with, made once: keys, campaign files, and the sealed reports of clients."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cache
from pathlib import Path

from hushcount.campaigns.campaign import Campaign
from hushcount.collection.windows import window_at
from hushcount.many_clients import ManyClients
from hushcount.wire.sealing import Octets
from tests.support.collecting import DAY
from tests.support.jobs import new_campaign, new_keys, write_lines
from tests.support.records import rows_of

BEGIN = window_at(datetime.now(timezone.utc) + DAY, 2 * DAY).start
"""The first day of every world: a window of two days begins with it. Keys that are made now are active at its end."""
FLOOR = 8
"""Minimum batch."""
SEGMENT = 10
"""Reports of a segment, each of another client."""
FEW = 5
"""Of one that is too few for a batch."""
_MOST_SEGMENTS = 60
DEPLOYMENT = """
store = "{store}"
ledger = "ledger.db"
collectors = {collectors}
[windows]
length = "{length}h"
grace = "{grace}h"
patience = "{patience}h"
{tail}
"""


@dataclass(frozen=True)
class Settings:
    """What a deployment file says of windows, in hours, and who its collectors are."""

    length: int = 24
    grace: int = 24
    patience: int = 1
    collectors: tuple[str, ...] = ()

    def deployment(self, store: str, tail: str) -> str:
        """Return the text of the deployment file."""
        return DEPLOYMENT.format(
            store=store, collectors=[*self.collectors], length=self.length, grace=self.grace, patience=self.patience,
            tail=tail,
        )  # fmt: skip


@dataclass(frozen=True)
class Made:
    """What every world copies.

    Attributes:
        folder: with keys/ and campaigns/.
        sealed: reports and discovery reports of clients, by stream.
    """

    folder: Path
    sealed: dict[str, Octets]

    @property
    def campaign_path(self) -> Path:
        return self.folder / "campaigns" / "words" / "epoch-000001.json"


@cache
def made() -> Made:
    """Return it."""
    folder = Path(tempfile.mkdtemp(prefix="hushcount-model-"))
    keys, home = new_keys(folder / "keys"), folder / "campaigns" / "words"
    home.mkdir(parents=True)
    words = write_lines(folder / "words.txt", ["alpha", "beta", "gamma"])
    path = new_campaign(
        home / "words.json", keys, "--discovery-delta", 0.1, "--delta", 0.001, dictionary=words, discovery=2.0,
        min_batch=FLOOR,
    ).rename(home / "epoch-000001.json")  # fmt: skip
    epoch = {"epoch": 1, "file": path.name, "begins": BEGIN.isoformat(), "ends": None, "grace_ends": None}
    (home / "collection.json").write_text(json.dumps({"epochs": [epoch]}))
    client = ManyClients(Campaign.read(path))
    number = _MOST_SEGMENTS * SEGMENT
    return Made(
        folder,
        {
            "reports": rows_of([client.report(("alpha", "beta", "nobody")[index % 3]) for index in range(number)]),
            # Values that are kept about as often as not, so that two draws differ.
            "discovery": rows_of([client.discovery_report(f"value {index % 4}") for index in range(number)]),
        },
    )
