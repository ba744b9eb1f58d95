"""The parties of a site, each with a deployment of its own on one store."""

from __future__ import annotations

import json
from pathlib import Path

from keys.directories import active_key
from pipelines.audit.reconcile import Account, account_of
from pipelines.deployment.settings import Party
from pipelines.handover.hops import CHAIN, HopName
from pipelines.handover.statements import SIGNERS, NamedEntry, Statement, put
from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from pipelines.outputs.summary import digest_of_json
from pipelines.schedule.done import Done
from pipelines.schedule.run import run
from pipelines.schedule.work import Vouched
from tests.support.clocks import stopped
from tests.support.site import Site, at, view_of

SIGNED = """sign_with = "signing"
shuffler_keys = "signing/public.json"
aux_server_keys = "signing/public.json"
analyzer_keys = "signing/public.json"
"""
LATE = " has left no receipt of "


class Apart:
    """The parties of a site, each with a deployment of its own on one store."""

    late: set[str]

    def __init__(self, site: Site, *, trusted: bool = True) -> None:
        self.site = site
        self.batch = site.batch(0)
        if not trusted:
            site.config.write_text(site.config.read_text().replace(SIGNED, ""))

    def run(self, *parties: Party, day: float = 1.2) -> Done:
        """Run on a day; `late` says which recipients it lacks receipts of, and `problems` the rest."""
        done = run(self.site.of(*parties), clock=stopped(at(day)), vouched=Vouched(clock_is_right=True))
        self.late = {one.split(": ")[1].split()[0] for one in done.problems if LATE in one}
        done.problems = [one for one in done.problems if LATE not in one]
        return done

    def fold(self, party: Party) -> Fold:
        return Logs(self.site.of(party)).read("words")

    def files(self, folder: str, party: Party) -> list[Path]:
        return sorted((self.site.store / folder / party).rglob("*.json"))

    def leave_receipt(
        self,
        party: Party,
        hop: HopName,
        *,
        keys: str | None = "signing",
        digest: str | None = None,
        campaign: str = "words",
    ) -> None:
        """Leave a party's receipt of what a hop here wrote, as the party does when it has read it."""
        raw = json.loads((self.site.store / CHAIN[hop].folder / "words" / self.batch / "summary.json").read_text())
        entry = NamedEntry(generation=1, number=2, entry="c" * 64)
        said = Statement(
            kind="receipt", party=party, campaign=campaign, batch=self.batch, hop=hop, at=at(1.3),
            summary=digest or digest_of_json(raw), taken=200, after=entry,
        )  # fmt: skip
        signer = None if keys is None else active_key(self.site.root / keys, SIGNERS[party])
        put(self.site.of(party), said, signer)

    def account(self, party: Party, day: float = 1.3) -> Account:
        """Return the account of a party with a deployment of its own, from the files of all windows."""
        return account_of(view_of(self.site.of(party), at(day)), past=True, digests=True)
