"""What a check of a deployment says, and the checks of each key, file and collector that its file names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import select

from pipelines.deployment import Deployment
from pipelines.state import MANIFESTS, opened

Verdict = Literal["good", "warning", "bad"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what.
        verdict: good; warning, it will be bad soon; bad.
        says: what was found, and what to do where it is not good.
    """

    name: str
    verdict: Verdict
    says: str


def named_checks(deployment: Deployment) -> dict[str, Callable[[], Iterator[Check]]]:
    """Return a check of each key, file and collector that the deployment file names beside the campaigns' keys."""
    checks: dict[str, Callable[[], Iterator[Check]]] = {}
    shuffles = "shuffler" in deployment.file.parties
    # Packages of other parties are not everywhere, so that they are imported when they are needed.
    if shuffles and (directory := deployment.sign_with) is not None:

        def signs() -> Iterator[Check]:
            from keys.store import active_key

            yield Check("sign_with", "good", f"key {active_key(directory, 'shuffler').id} signs")

        checks["sign_with"] = signs
    if (file := deployment.shuffler_keys) is not None:

        def trusts() -> Iterator[Check]:
            from keys.store import verify_keys

            trusted = ", ".join(key.id for key in verify_keys(file, "shuffler"))
            yield Check("shuffler_keys", "good", f"{trusted} may sign")

        checks["shuffler_keys"] = trusts
    if (ledger := deployment.ledger) is not None:

        def charges() -> Iterator[Check]:
            from pipelines.ledger_report import check

            if ledger.exists():
                check(ledger)
            found = "is whole" if ledger.exists() else "comes with the first release"
            yield Check("ledger", "good", f"{ledger} {found}")

        checks["ledger"] = charges
    if (collector := deployment.collector) is not None:

        def authenticates() -> Iterator[Check]:
            from shuffler.collector.authentication import authentication

            authentication(collector, deployment.base)
            yield Check("authentication", "good", collector.authentication)

        checks["authentication"] = authenticates
    if shuffles and deployment.file.collectors:
        checks["collectors"] = lambda: _report(deployment)
    return checks


def _report(deployment: Deployment) -> Iterator[Check]:
    """Whether each of the collectors that are waited for was ever heard of."""
    with opened(deployment.state) as state, state.begin() as connection:
        heard = set(connection.execute(select(MANIFESTS.c.collector).distinct()).scalars())
    for name in sorted(set(deployment.file.collectors) - heard) if heard else ():
        yield Check(f"collector {name}", "warning", "closed no window yet: start it, or take it out of collectors")
