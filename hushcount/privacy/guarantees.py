"""What a privacy statement says: each guarantee with its figures, its unit and its neighbouring relation."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from hushcount.discovery.keep_rules import Relation
from hushcount.maths.odds import Odds
from hushcount.senders import KEY, Authentication

_ORDER = (
    "epsilon_per_report", "epsilon", "epoch_epsilon", "values", "delta", "odds", "relation", "unit", "rule", "reports",
    "bound", "closed_form", "clients_for_even_chance", "clients_for_95_percent", "count_deviation", "local", "against",
)  # fmt: skip
"""The fields of a guarantee in the order of summaries."""


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """(epsilon, delta)-privacy of all that one unit sends.

    Attributes:
        relation: which data sets are neighbours.
        unit: who or what is protected, in words.
        against: who learns no more than this, and under which assumption.
    """

    epsilon: float
    delta: float
    relation: Relation = "replace-one"
    unit: str
    against: str


@dataclass(frozen=True, kw_only=True)
class Local(Guarantee):
    """What all parties together can learn from frequency reports.

    Attributes:
        epsilon_per_report: epsilon of one report.
        epoch_epsilon: epsilon of all reports of an epoch, if clients repeat their answers; else None.
        values: how many values a client remembers; None without a memory.
    """

    epsilon_per_report: float
    epoch_epsilon: float | None
    values: int | None


@dataclass(frozen=True, kw_only=True)
class Released(Guarantee):
    """What the analyzer can learn from the reports or values that it receives; `odds` states it for people."""

    odds: Odds


@dataclass(frozen=True, kw_only=True)
class Shuffled(Released):
    """What the analyzer can learn from `reports` mixed reports; `closed_form` is another bound, for comparison."""

    epsilon_per_report: float
    reports: int
    bound: str | None
    closed_form: float | None


@dataclass(frozen=True, kw_only=True)
class Noisy(Released):
    """What is learned from counts with noise of the mixes, by everyone who knows the dummies of one mix at most.

    Attributes:
        count_deviation: standard deviation of each count.
        local: the local guarantee, in words.
    """

    count_deviation: float
    local: str = "none: sealed, not randomised"


@dataclass(frozen=True, kw_only=True)
class Discovery(Released):
    """What the revealed values tell under the keep rule, and how many clients it takes to reveal a value.

    Attributes:
        names: how clients name values, which decides who can test a guess.
        count_deviation: standard deviation of the noise of revealed counts; None if values have no counts.
    """

    rule: str
    clients_for_even_chance: int
    clients_for_95_percent: int
    names: Literal["keyed", "oblivious"] = "keyed"
    count_deviation: float | None = None


@dataclass(frozen=True)
class Statement:
    """A privacy statement; a guarantee is None if it cannot be stated.

    Attributes:
        unit: who or what is protected, in words; `per` says whether that is a client or a report.
        authentication: how senders were told apart.
        total: what the analyzer learns from both streams of one client.
        noisy: of counts with noise of the mixes; `local` and `shuffled` are None then.
        plain: sentences for people who decide about a product.
        sentences: exact sentences, for engineers.
    """

    unit: str
    per: Literal["client", "report"]
    authentication: Authentication
    local: Local | None = None
    shuffled: Shuffled | None = None
    discovery: Discovery | None = None
    total: Released | None = None
    noisy: Noisy | None = None
    plain: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """Return the statement as JSON data, as summaries contain it."""
        head = {"unit": self.unit, "per": self.per, KEY: self.authentication, "relation": "replace-one"}
        counts = {} if self.local is None else {"local": _data(self.local), "shuffled": _data(self.shuffled)}
        found = {"noisy": self.noisy, "discovery": self.discovery, "total": self.total}
        rest = {name: _data(part) for name, part in found.items() if part is not None}
        return {**head, "sentences": [*self.sentences], **counts, **rest, "plain": [*self.plain]}


def _data(part: Guarantee | None) -> dict[str, Any] | None:
    facts = {} if part is None else asdict(part)
    return {name: facts[name] for name in _ORDER if name in facts} or None
