"""The issuer's keys in its directory, read again when `hushcount keys passes` has added days."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from hushcount.campaigns.parts import DAY_SECONDS
from hushcount.errors import HushcountError
from keys.issuing import IssuingKey, PrivatePassKeys, private_files, read_private_keys
from service.campaign_folders import Stamp, stamp_of

_MOST_OPENED = 4
"""Days of a campaign that are open at once: as many as are issued at one time."""


@dataclass(frozen=True, eq=False)
class CampaignKeys:
    """The keys of one campaign; its days are opened when they are first needed."""

    stamp: Stamp
    private: PrivatePassKeys
    opened: dict[date, list[IssuingKey]] = field(default_factory=dict, repr=False)

    def of_day(self, day: date) -> list[IssuingKey]:
        """Return the keys of all slots of a day, in the order of the file; empty: the day has none."""
        place = (day - self.private.first).days
        if day not in self.opened and 0 <= place < len(self.private.days):
            if len(self.opened) >= _MOST_OPENED:
                self.opened.clear()
            self.opened[day] = [IssuingKey(bytes.fromhex(primes)) for primes in self.private.days[place]]
        return self.opened.get(day, [])

    def of_client(self, day: date, collector: str) -> list[IssuingKey]:
        """Return the keys of a client's slots, of its collector and the evaluator; empty: there are none."""
        if collector not in self.private.collectors:
            return []
        periods, keys = DAY_SECONDS // self.private.seconds, self.of_day(day)
        begin = self.private.collectors.index(collector) * periods
        evaluator = keys[len(self.private.collectors) * periods :]
        return [*keys[begin : begin + periods], *evaluator]


class KeysHere:
    """All campaigns of a directory of keys."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._campaigns: dict[str, CampaignKeys] = {}
        self.faults: Mapping[str, str] = {}
        self.look()

    def __len__(self) -> int:
        return len(self._campaigns)

    def find(self, campaign: str) -> CampaignKeys | None:
        return self._campaigns.get(campaign)

    def look(self) -> None:
        """Read new and changed files; a file that cannot be read is a fault, and its keys stay as they were."""
        faults = {}
        for name, path in private_files(self._directory):
            before = self._campaigns.get(name)
            try:
                stamp = stamp_of(path)
                if before is None or before.stamp != stamp:
                    self._campaigns[name] = CampaignKeys(stamp, read_private_keys(path))
            except (HushcountError, OSError) as error:
                faults[name] = str(error)
        self.faults = faults
