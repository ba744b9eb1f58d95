"""What a privacy statement says: each guarantee with its figures, its unit and its neighbouring relation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from hushcount.discovery.keep_rules import Relation
from hushcount.privacy.odds import Odds
from hushcount.senders import KEY, Authentication


@dataclass(frozen=True)
class Local:
    """What whoever sees a frequency report can tell from it, all parties together included.

    Attributes:
        epsilon_per_report, epsilon: of one report, and of those of a unit.
        epoch_epsilon: of all reports of an epoch, where clients repeat their answers; None elsewhere.
        values: how many values a client remembers; None where it does not.
    """

    epsilon_per_report: float
    epsilon: float
    epoch_epsilon: float | None
    values: int | None
    delta: float
    relation: Relation
    unit: str
    against: str


@dataclass(frozen=True)
class Shuffled:
    """What the analyzer can tell from `reports` mixed reports; `closed_form` is another bound, for comparison."""

    epsilon_per_report: float
    epsilon: float
    delta: float
    odds: Odds
    relation: Relation
    unit: str
    reports: int
    bound: str | None
    closed_form: float | None
    against: str


@dataclass(frozen=True)
class Discovery:
    """What the revealed values tell, by the keep rule, and how many clients it takes to reveal one."""

    epsilon: float
    delta: float
    odds: Odds
    relation: Relation
    unit: str
    rule: str
    clients_for_even_chance: int
    clients_for_95_percent: int
    against: str


@dataclass(frozen=True)
class Total:
    """What the analyzer learns from both streams of one client."""

    epsilon: float
    delta: float
    odds: Odds
    relation: Relation
    unit: str
    against: str


@dataclass(frozen=True)
class Statement:
    """A privacy statement.

    Attributes:
        unit: whom it speaks of, in words; `per` says whether that is a client or a report.
        authentication: by which senders were told apart.
        local, shuffled, discovery, total: the guarantees; None where there is none to state.
        plain: sentences for people who decide about a product.
        sentences: exact ones, for engineers.
    """

    unit: str
    per: Literal["client", "report"]
    authentication: Authentication
    local: Local | None = None
    shuffled: Shuffled | None = None
    discovery: Discovery | None = None
    total: Total | None = None
    plain: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """Return it as it stands in summaries."""
        head = {"unit": self.unit, "per": self.per, KEY: self.authentication, "relation": "replace-one"}
        counts = {} if self.local is None else {"local": asdict(self.local), "shuffled": _data(self.shuffled)}
        found = {"discovery": self.discovery, "total": self.total}
        rest = {name: _data(part) for name, part in found.items() if part is not None}
        return {**head, "sentences": [*self.sentences], **counts, **rest, "plain": [*self.plain]}


def _data(part: Shuffled | Discovery | Total | None) -> dict[str, Any] | None:
    return None if part is None else asdict(part)
