"""The client: a value in, a sealed report of one fixed length out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcount.campaign import Campaign
from hushcount.dictionary import Dictionary
from hushcount.domain import items_of
from hushcount.public_keys import valid_key
from hushcount.randomness import SystemWords
from hushcount.sealing import Octets, Sealer


@dataclass(frozen=True)
class Client:
    """Privatises and seals values for one campaign. Holds public parameters only; may be shared and kept.

    Args:
        campaign: from `Campaign.read`.
        dictionary: the campaign's; read from beside the campaign file when it is not given.

    Raises:
        UsageError: the dictionary is missing or another one, or no key of the campaign is valid now.

    Privacy: a frequency report is epsilon-locally private, replace-one. A discovery report hides its value only as
        long as the auxiliary server and the analyzer do not collude, and within the (epsilon, delta) of the keep rule.
        A client that sends both pays for both. Sending the same value again spends the budget again.
    Randomness: the operating system's cryptographic generator.
    """

    campaign: Campaign
    dictionary: Dictionary | None = None

    def __post_init__(self) -> None:
        if self.dictionary is None and self.campaign.dictionary is not None:
            object.__setattr__(self, "dictionary", self.campaign.read_dictionary())

    def report(self, value: str) -> bytes:
        """Return one sealed frequency report; a value outside the dictionary is reported as "other"."""
        return self.reports([value]).tobytes()

    def reports(self, values: Sequence[str], threads: int = 1) -> Octets:
        """Return uint8[n, L]: one sealed frequency report for each value, all of the same length."""
        mechanism = self.campaign.require_frequency()
        packed = mechanism.pack(mechanism.encode(items_of(mechanism, self.dictionary, values), SystemWords()))
        return self._analyzer.seal_many(_bound(self.campaign.binding("reports"), packed), threads)

    def discovery_report(self, value: str) -> bytes:
        """Return one sealed discovery report.

        Raises:
            UsageError: the value is longer than the campaign allows; its length is named, never the value.
        """
        return self.discovery_reports([value]).tobytes()

    def discovery_reports(self, values: Sequence[str], threads: int = 1) -> Octets:
        """Return uint8[n, L]: one sealed discovery report for each value, all of the same length.

        With a dictionary, a value that it lists is nothing to discover: such a report carries a random hash and no
        value, so that every client sends one and to send says nothing.
        """
        form = self.campaign.discovery_format
        unknown = [value if self.dictionary is None or value not in self.dictionary else None for value in values]
        padded = b"".join(form.pad(value) for value in unknown)
        width = form.value_bytes - len(form.binding)
        plain = np.frombuffer(padded, dtype=np.uint8).reshape(len(values), width)
        sealed_values = self._analyzer.seal_many(_bound(form.binding, plain), threads)
        blank = SystemWords().words(4 * len(values)).reshape(len(values), 4)
        hashes = b"".join(
            blank[row].tobytes() if value is None else form.hash(value) for row, value in enumerate(unknown)
        )
        bins = np.frombuffer(hashes, dtype=np.uint8).reshape(len(values), -1)
        pairs = _bound(form.binding, np.concatenate([bins, sealed_values], axis=1))
        return self._aux_server.seal_many(pairs, threads)

    @property
    def _analyzer(self) -> Sealer:
        return Sealer(bytes.fromhex(valid_key(self.campaign.keys.analyzer).key))

    @property
    def _aux_server(self) -> Sealer:
        return Sealer(bytes.fromhex(valid_key(self.campaign.keys.aux_server).key))


def _bound(binding: bytes, rows: Octets) -> Octets:
    """Put the campaign's binding before every row."""
    head = np.broadcast_to(np.frombuffer(binding, dtype=np.uint8), (len(rows), len(binding)))
    return np.concatenate([head, rows], axis=1)
