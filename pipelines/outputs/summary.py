"""summary.json: what a hop received, accepted and rejected, by reason, with the privacy statement."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

from pydantic import ConfigDict, Field, StringConstraints

from hushcount.campaigns.campaign import GREATEST_EPOCH, Campaign, Stream
from hushcount.campaigns.parts import Identifier
from hushcount.errors import HushcountError
from hushcount.formats.models import FileName, Hex32
from hushcount.oracles.influence import Influence, influence, influence_sentence
from hushcount.privacy.guarantees import Statement
from hushcount.privacy.statement import statement
from hushcount.senders import UNBOUND, Senders
from hushcount.wire.tags import MOST_PLACES
from pipelines.outputs.account import Charged, NoLedger
from pipelines.outputs.counts import BinCounts, Count, HopCounts, Opening, StreamCounts

RUN_FOLDER = r"[0-9a-f]{16}"
"""Name of the folder of an attempt in an output: random digits."""


@dataclass(frozen=True)
class ListedFile:
    """A file for the next party, with its length and the BLAKE2b-256 of its bytes."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: FileName
    bytes: Annotated[int, Field(ge=0, le=1 << 62)]
    digest: Hex32


@dataclass(frozen=True)
class Largest:
    """A count of users, its share of the reports, and its two errors added in squares."""

    item: str
    count: float
    share: float
    error: float


@dataclass(frozen=True)
class TableFacts:
    """Rows of a table of estimates, levels of its intervals and of detection, and detected rows: each alone, or all."""

    items: int
    confidence: float
    false_positive_rate: float
    detected: int
    detected_all: int


@dataclass(frozen=True)
class CountFacts:
    """How far the counts of discovered values can be trusted; `pipelines.jobs.found` makes it.

    Attributes:
        standard_error: of every count.
        confidence: of the intervals, which reach from `below` under the count to `above` over it.
        threshold: the least count that was shown.
        unbiased_from: from this count on a count is too large by less than a tenth of the standard error on average.
        unit: "clients" or "reports"; in an oblivious campaign "reports whose evaluation came".
        says: all this in sentences.
    """

    standard_error: float
    confidence: float
    below: float
    above: float
    threshold: float
    unbiased_from: int
    unit: str
    says: str


@dataclass(frozen=True)
class Explained:
    """How much of "other" the discovered values are that the dictionary lacks.

    Attributes:
        values: how many they are.
        count: their counts together, with the standard error; `bias` of it is expected because they were kept, more if
            values of far fewer clients than their counts say are among them.
        rest, rest_error: what is left of "other", and its standard and collision error together.
        lower_bound: whether count is of reports whose evaluation came only: others of the values are in rest.
    """

    values: int
    count: float
    standard_error: float
    bias: float
    rest: float
    rest_error: float
    lower_bound: bool = False


@dataclass(frozen=True)
class Estimates:
    """The estimates of one tally.

    Attributes:
        table: None: no items were asked for.
        largest: counts of detected items, largest first.
        other: columns of the row of all items outside the dictionary; None without a dictionary.
        explained: how much of "other" was discovered; None without a dictionary or counts of discovered values.
        apart: why discovered values are shown beside the estimates only; None if they are not, or nothing keeps them.
        whole_dictionary: whether the rows are the dictionary; None without one.
    """

    table: TableFacts | None
    largest: tuple[Largest, ...]
    other: Mapping[str, float] | None = None
    whole_dictionary: bool | None = None
    explained: Explained | None = None
    apart: str | None = None

    def data(self) -> dict[str, Any]:
        """Return its part of summary.json."""
        outside = {"other": self.other, "whole_dictionary": self.whole_dictionary}
        return {
            **(asdict(self.table) if self.table is not None else {}),
            "largest": [asdict(row) for row in self.largest],
            **(outside if self.other is not None else {}),
            **({"other_explained": asdict(self.explained)} if self.explained is not None else {}),
            **({"found_apart": self.apart} if self.apart is not None else {}),
        }


Listed = Annotated[tuple[ListedFile, ...], Field(max_length=4 * MOST_PLACES)]
"""A hop writes one file for each place at most."""


@dataclass(frozen=True)
class HopSummary(HopCounts):
    """The summary of a hop: made by a job, or those fields of a file that the next hop uses.

    Attributes:
        campaign, epoch, fingerprint: of the campaign file.
        upstream: counts of the hops before, first to last.
        made_from: digest of the summary of the hop before: two outputs with one name have different ones.
        shuffled: digest of the summary of the shuffle whose release a discovery opened: made_from of that release.
        senders: whose reports these are.
        privacy: the statement. It, the cap and the five fields after it are None in a summary that was read.
        influence: how far one forged report can move a count, if frequency reports were accepted.
        dead_letters: how many sealed reports were kept, and not kept, by stream and reason.
        replayed: reason of the dead letters that became this output.
        ledger: the charge and what is left; None for a hop that charges nothing.
        left_out: streams below the minimum batch: nothing of them was released.
        released: how many bins the auxiliary server released.
        counts_of_values: how far the counts of discovered values can be trusted; None in a summary that was read.
        batch, window: name of the batch, and its window if `hushcount run` names it.
        folder: of the run, if the files are in one.
        files: files for the next party by folder, if they are signed.
        charged: manifest under which the auxiliary server charged its release, if its summary has one.
        read_as: digest of the JSON that was read; None: it was not read.
    """

    campaign: Identifier
    fingerprint: Hex32
    upstream: Annotated[tuple[HopCounts, ...], Field(max_length=8)]
    epoch: Annotated[int, Field(ge=1, le=GREATEST_EPOCH)] = 1
    made_from: Hex32 | None = None
    shuffled: Hex32 | None = None
    senders: Senders = UNBOUND
    cap: int | None = None
    privacy: Statement | None = None
    influence: Influence | None = None
    dead_letters: Mapping[str, Mapping[str, Mapping[str, int]]] | None = None
    replayed: str | None = None
    estimates: Estimates | None = None
    ledger: Charged | NoLedger | None = None
    left_out: Mapping[Stream, StreamCounts] = field(default_factory=dict)
    released: Count | None = None
    bins: BinCounts | None = None
    counts_of_values: CountFacts | None = None
    batch: str | None = None
    window: str | None = None
    folder: Annotated[str, StringConstraints(pattern=rf"^{RUN_FOLDER}$")] | None = None
    files: Annotated[Mapping[str, Listed], Field(max_length=8)] | None = None
    charged: str | None = None
    read_as: str | None = None

    def data(self) -> dict[str, Any]:
        """Return it as summary.json holds it."""
        head = {
            "hop": self.hop,
            "campaign": self.campaign,
            "epoch": self.epoch,
            "fingerprint": self.fingerprint,
            "received": self.received,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "streams": {name: asdict(counts) for name, counts in self.streams.items()},
            **self.senders.data(),
            "cap": self.cap,
            "privacy": self.privacy and self.privacy.data(),
            "upstream": [hop.data() for hop in self.upstream],
            "made_from": self.made_from,
        }
        bound = self.influence
        said = {
            "shuffled": self.shuffled,
            "influence": bound and {"users_per_forged_report_up": bound.up, "users_per_forged_report_down": bound.down},
            "opening": self.opening and asdict(self.opening),
            "dead_letters": self.dead_letters,
            "left_out": {name: asdict(counts) for name, counts in self.left_out.items()} or None,
            "replayed": self.replayed,
            **(self.estimates.data() if self.estimates is not None else {}),
            "released": self.released,
            "bins": self.bins and asdict(self.bins),
            "counts_of_values": self.counts_of_values and asdict(self.counts_of_values),
        }
        data = head | {name: part for name, part in said.items() if part is not None}
        if self.ledger is not None:
            data["ledger"] = self.ledger.data() if isinstance(self.ledger, Charged) else None
        if self.batch is not None:
            data |= {"batch": self.batch, "window": self.window}
        if self.folder is not None:
            data["folder"] = self.folder
        if self.files is not None:
            data["files"] = {name: [asdict(file) for file in listed] for name, listed in self.files.items()}
        return data

    @property
    def stated(self) -> Statement:
        """The privacy statement of a summary that a job made."""
        if self.privacy is None:
            raise HushcountError(f"the summary of {self.hop} was read without its statement: report this bug")
        return self.privacy

    def digest(self) -> str:
        """Return the digest of its JSON, as read if it was read."""
        return self.read_as or digest_of_json(self.data())


def make_summary(
    hop: str,
    campaign: Campaign,
    streams: Mapping[Stream, StreamCounts],
    reports: int | None,
    upstream: HopSummary | None = None,
    senders: Senders | None = None,
    opening: Opening | None = None,
) -> HopSummary:
    """Return a hop's summary: totals over its streams, each stream, the statement, and the hops before it.

    Args:
        reports: how many frequency reports the result is made of; None for a hop without estimates.
        senders: whose reports these are; None: as the hop before says, or UNBOUND if there is none.
        opening: which engine opened how many boxes; None for a hop that opens none.
    """
    whose = senders or (UNBOUND if upstream is None else upstream.senders)
    # A reader of counts sees both streams: a client that sends both pays for both.
    privacy = statement(campaign, reports, whose, streams if reports is None else None)
    bound = None
    if reports is not None and campaign.frequency is not None:
        bound = influence(campaign.frequency)
        # Every reader must see it: the statement assumes honest reports.
        privacy = replace(privacy, sentences=(*privacy.sentences, influence_sentence(bound)))
    total = HopCounts.of(hop, streams, opening)
    return HopSummary(
        **vars(total),
        campaign=campaign.id,
        epoch=campaign.epoch,
        fingerprint=campaign.fingerprint.hex(),
        senders=whose,
        cap=campaign.shuffle.cap,
        privacy=privacy,
        influence=bound,
        upstream=() if upstream is None else (*upstream.upstream, upstream.counts),
        made_from=None if upstream is None else upstream.digest(),
        shuffled=upstream.made_from if upstream is not None and upstream.hop == "release" else None,
    )


def digest_of_json(data: Mapping[str, Any]) -> str:
    """Return the BLAKE2b-256 of a JSON object, whatever its layout and order, in hexadecimal digits."""
    return hashlib.blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=32).hexdigest()
