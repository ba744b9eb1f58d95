"""Reports of many people from one process, for load tests, benchmarks, simulations and `hushcount job encode`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta

from hushcount.arrays import Octets, UInt64Array
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import Dictionary
from hushcount.campaigns.public_keys import PublicKeyPart, valid_key
from hushcount.clock import MACHINE, Clock
from hushcount.discovery.making import Making
from hushcount.discovery.oblivious import Ask
from hushcount.report_making import (
    asked_by,
    checked_dictionary,
    drawn,
    in_layers,
    items_for,
    measured,
    named,
    new_values,
    sealed,
    strata_for,
)
from hushcount.wire.sealing import Sealer, SealRows, seal_rows


@dataclass(frozen=True)
class ManyClients:
    """Makes reports of many people: each value is from another person, who has budget left and remembers no answer.

    An app must use `Client` instead. This class counts, charges and keeps nothing, and accepts any campaign file. So if
    one person sends more than one report of a stream through this class, no guarantee of the campaign holds for that
    person.

    Args:
        campaign: the campaign, as `Campaign.read` returns it.
        dictionary: the campaign's dictionary; by default it is read from the file beside the campaign file.
        ask: function that asks the evaluator, if the campaign has an evaluator.
        seal_rows: the function that seals, by default libsodium's. A faster function must make the same sealed boxes.
        clock: tells which window the reports of a campaign with noise are of.

    Raises:
        UsageError: the dictionary is missing or not the campaign's dictionary, or the campaign file is a redacted one,
            without the key of the discovery hash.

    Randomness: the operating system's cryptographic generator.
    """

    campaign: Campaign
    _: KW_ONLY
    dictionary: Dictionary | None = None
    ask: Ask | None = None
    seal_rows: SealRows = seal_rows
    clock: Clock = MACHINE

    def __post_init__(self) -> None:
        object.__setattr__(self, "dictionary", checked_dictionary(self.campaign, self.dictionary))

    def report(self, value: str | float) -> bytes:
        """Return one sealed frequency report; at each call it counts as a report of another person."""
        return self.reports([value]).tobytes()

    def reports(
        self, values: Sequence[str | float], threads: int = 1, by: Sequence[Mapping[str, str | float]] = ()
    ) -> Octets:
        """Return uint8[n, L]: one sealed frequency report for each value, like `Client.reports`."""
        campaign = self.campaign
        items = items_for(campaign, self.dictionary, values, by=by)
        answers, strata = self._drawn(items), strata_for(campaign, len(values), by)
        boxes = sealed(campaign, answers, strata, self._sealer(campaign.keys.analyzer), threads)
        if campaign.noise is None:
            return boxes
        begins = campaign.starts(timedelta(days=1)).at(self.clock.seconds())
        return in_layers(campaign, boxes, begins, self._sealer(campaign.keys.aux_server), threads)

    def measured(self, lines: Sequence[str], threads: int = 1) -> Octets:
        """Return the reports of lines that tell a value and the coordinates of a person (`report_making.measured`)."""
        told = [measured(self.campaign, line) for line in lines]
        return self.reports([one.value for one in told], threads, [dict(one.by) for one in told])

    def discovery_report(self, value: str | float | None) -> bytes:
        """Return one sealed discovery report; at each call it counts as a report of another person."""
        return self.discovery_reports([value]).tobytes()

    def discovery_reports(self, values: Sequence[str | float | None], threads: int = 1) -> Octets:
        """Return uint8[n, L]: one sealed discovery report for each value, like `Client.discovery_reports`."""
        new, keys = new_values(self.campaign, self.dictionary, values), self.campaign.keys
        making = Making(self.campaign.discovery_format, self._sealer(keys.analyzer), self._sealer(keys.aux_server))
        return named(self.campaign, making, new, asked_by(self.campaign, self.ask), threads)

    def _drawn(self, items: UInt64Array) -> Octets:
        return drawn(self.campaign, items)

    def _sealer(self, keys: tuple[PublicKeyPart, ...]) -> Sealer:
        return Sealer(bytes.fromhex(valid_key(keys).key), self.seal_rows)
