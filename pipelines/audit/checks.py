"""What a check of a deployment says, and the checks of each key, file and collector that its file names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sqlalchemy import select

from hushcount.senders import Authentication, tells_clients_apart
from pipelines.batches.state import MANIFESTS, opened
from pipelines.deployment.campaigns import read_epochs
from pipelines.deployment.settings import Deployment

if TYPE_CHECKING:
    from keys.roles import SigningRole

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
    signers = signing_roles(deployment)
    # Packages of other parties are not everywhere, so that they are imported when they are needed.
    if signers and (directory := deployment.sign_with) is not None:

        def signs() -> Iterator[Check]:
            from keys.store import active_key

            # Opened, as the party will: a listing may outlive its key.
            ids = ", ".join(f"{active_key(directory, role).read_signing().id} of the {role}" for role in signers)
            yield Check("sign_with", "good", f"key {ids} signs")

        checks["sign_with"] = signs
    given: dict[str, tuple[SigningRole, Path | None]] = {
        "shuffler_keys": ("shuffler", deployment.shuffler_keys),
        "aux_server_keys": ("aux_signer", deployment.aux_server_keys),
    }
    for name, (role, file) in given.items():
        if file is not None:
            checks[name] = partial(_trusts, name, role, file)
    if (ledger := deployment.ledger) is not None:

        def charges() -> Iterator[Check]:
            from pipelines.ledger.report import check

            said = check(ledger)["warnings"] if ledger.exists() else []
            found = "is whole" if ledger.exists() else "comes with the first release"
            yield Check("ledger", "warning" if said else "good", "; ".join([f"{ledger} {found}", *said]))

        checks["ledger"] = charges
    if (collector := deployment.collector) is not None:

        def authenticates() -> Iterator[Check]:
            from shuffler.collector.admission.authentication import authenticator

            authenticator(collector, deployment.base)
            yield told_apart("authentication", collector.authentication)

        checks["authentication"] = authenticates
    if shuffles and deployment.file.collectors:
        checks["collectors"] = lambda: _report(deployment)
    return checks


def signing_roles(deployment: Deployment) -> list[SigningRole]:
    """Return the roles whose keys sign what the parties that run here hand on, of the campaigns that there are."""
    roles: list[SigningRole] = ["shuffler"] if "shuffler" in deployment.file.parties else []
    if "aux-server" in deployment.file.parties:
        campaigns, _ = read_epochs(deployment.campaigns)
        if any(campaign.discovery is not None for epochs in campaigns for _, campaign in epochs.files.values()):
            roles.append("aux_signer")
    return roles


def _trusts(name: str, role: SigningRole, file: Path) -> Iterator[Check]:
    from keys.store import verify_keys

    trusted = ", ".join(key.id for key in verify_keys(file, role))
    yield Check(name, "good", f"{trusted} may sign")


def told_apart(name: str, way: Authentication) -> Check:
    """Whether the cap binds clients, by how they are told apart."""
    if tells_clients_apart(way):
        return Check(name, "good", way)
    cure = 'set authentication = "client-token" under [collector]'
    return Check(
        name,
        "bad",
        f"{way} tells no client from another: the cap binds nobody, and results speak of one report, "
        f"never of one client; {cure}",
    )


def _report(deployment: Deployment) -> Iterator[Check]:
    """Whether each of the collectors that are waited for was ever heard of."""
    with opened(deployment.state) as state, state.begin() as connection:
        heard = set(connection.execute(select(MANIFESTS.c.collector).distinct()).scalars())
    for name in sorted(set(deployment.file.collectors) - heard) if heard else ():
        yield Check(f"collector {name}", "warning", "closed no window yet: start it, or take it out of collectors")
