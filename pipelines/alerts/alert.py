"""What an alert is: one fact that an operator should know, in numbers and a sentence, with an id of its own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Kind = Literal["change", "dropped", "waiting", "differences", "budget", "volume", "test"]
KINDS: tuple[Kind, ...] = ("change", "dropped", "waiting", "differences", "budget", "volume")
"""Of the alerts that a look can find."""
Number = int | float | str | None
_TYPE = "hushcount.alert"


@dataclass(frozen=True)
class Alert:
    """One fact.

    Attributes:
        kind: the condition that found it.
        campaign: id.
        about: what of the campaign it is about, as an item or a window: of one kind and campaign at most one alert
            stands about one thing.
        fact: what it says, so far as another would be news: while this stays the same, nobody is told again.
        says: a sentence for people.
        numbers: names and values of the same for machines.
    """

    kind: Kind
    campaign: str
    about: str
    fact: str
    says: str
    numbers: tuple[tuple[str, Number], ...] = ()

    @property
    def subject(self) -> str:
        """What it is about, as 32 hexadecimal digits."""
        return _digest(self.kind, self.campaign, self.about)

    def id(self, number: int) -> str:
        """Return the id of the fact, the `number`-th about its subject: the same in every run."""
        return f"alert_{_digest(self.kind, self.campaign, self.about, self.fact, str(number))}"

    def body(self, id: str, began: datetime) -> str:
        """Return the JSON that is sent, in ASCII."""
        data = {"id": id, "kind": self.kind, "campaign": self.campaign, "about": self.about, "says": self.says}
        message = {
            "type": f"{_TYPE}.{self.kind}",
            "timestamp": began.isoformat(timespec="seconds"),
            "data": {**data, "numbers": dict(self.numbers)},
        }
        return json.dumps(message, allow_nan=False)


def _digest(*texts: str) -> str:
    return hashlib.blake2b(json.dumps(texts).encode(), digest_size=16, person=b"hushcount.alert").hexdigest()
