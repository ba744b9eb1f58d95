"""What parties elsewhere said of a campaign: statements of their hops, and receipts of what hops here wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pipelines.deployment.settings import Deployment, Party
from pipelines.handover.hops import CHAIN, HopName
from pipelines.handover.parties import keys_of, others
from pipelines.handover.statements import Kind, Statement, read


@dataclass(frozen=True)
class Heard:
    """What parties elsewhere said of a campaign, as far as it is believed.

    Attributes:
        statements, receipts: of each party, by batch and hop.
        problems: a sentence for each statement or receipt that is not believed.
    """

    statements: Mapping[Party, Mapping[tuple[str, HopName], Statement]] = field(default_factory=dict)
    receipts: Mapping[Party, Mapping[tuple[str, HopName], Statement]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def all_statements(self) -> Iterator[Statement]:
        """The statements of all parties."""
        return (one for said in self.statements.values() for one in said.values())


def heard(deployment: Deployment, campaign: str) -> Heard:
    """Return what parties elsewhere said of a campaign: each of its own hops, and of those that it reads."""
    said: dict[Kind, dict[Party, dict[tuple[str, HopName], Statement]]] = {"statement": {}, "receipt": {}}
    problems: list[str] = []
    for party in others(deployment):
        own = {hop.name for hop in CHAIN.values() if hop.party == party and hop.signer is not None}
        sources = {hop.input for hop in CHAIN.values() if hop.party == party and hop.input is not None}
        about: dict[Kind, set[HopName]] = {"statement": own, "receipt": sources}
        for kind, hops in about.items():
            found, faults = read(deployment, kind, party, campaign, keys_of(deployment, party)) if hops else ({}, [])
            problems += faults
            mine = {(batch, hop): one for (batch, hop), one in found.items() if hop in hops}
            said[kind][party] = mine
            problems += [
                f"{campaign}/{batch}: the {kind} of {party} is about {hop!a}, of which it can say nothing: it is not "
                "believed"
                for batch, hop in found.keys() - mine.keys()
            ]
    return Heard(said["statement"], said["receipt"], tuple(sorted(problems)))
