"""summary.json: how many reports a hop received, accepted and, by reason, rejected; and the privacy statement."""

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
from hushcount.oracles.flags import Flags
from hushcount.oracles.influence import FORGERS, Influence, forged_part, influence, influence_sentence
from hushcount.privacy.guarantees import Statement
from hushcount.privacy.statement import statement
from hushcount.senders import UNBOUND, Senders
from hushcount.strata import MOST_STRATA
from hushcount.wire.tags import MOST_PLACES
from pipelines.outputs.account import Charged, NoLedger
from pipelines.outputs.counts import BinCounts, Count, HopCounts, Opening, StreamCounts

RUN_FOLDER = r"[0-9a-f]{16}"
"""Pattern for the name of the folder of one run in an output, which consists of random digits."""


@dataclass(frozen=True)
class ListedFile:
    """A file for the next party, with its length and the BLAKE2b-256 of its bytes."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: FileName
    bytes: Annotated[int, Field(ge=0, le=1 << 62)]
    digest: Hex32


@dataclass(frozen=True)
class Largest:
    """An item's count of users, its share of the reports, and its error, combined from standard and collision error."""

    item: str
    count: float
    share: float
    error: float


@dataclass(frozen=True)
class TableFacts:
    """What a summary says about a table of estimates.

    Attributes:
        items: number of rows.
        confidence: confidence level of the intervals.
        false_positive_rate: the greatest probability with which an item that nobody has is detected.
        detected, detected_all: number of detected rows, if each row is tested alone, and if all rows are tested
            together.
    """

    items: int
    confidence: float
    false_positive_rate: float
    detected: int
    detected_all: int


@dataclass(frozen=True)
class CountFacts:
    """How exact the counts of discovered values are; `pipelines.jobs.found` computes these facts.

    Attributes:
        standard_error: standard error of every count.
        confidence: confidence level of the intervals, which reach from count - `below` to count + `above`.
        threshold: the least count that was shown.
        unbiased_from: the least true count such that this and all larger counts are shown too large by less than a
            tenth of the standard error, on average.
        unit: what is counted: "clients" or "reports"; in an oblivious campaign "reports whose evaluation came".
        says: the facts of this class in sentences.
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
    """The part of "other" that comes from discovered values which the dictionary lacks.

    Attributes:
        values: number of discovered values that the dictionary lacks.
        count: sum of the counts of these values; `standard_error` is the error of this sum. On average `count` is too
            large by `bias`, because mainly values with large counts are kept. If values have far fewer clients than
            their counts say, `count` is too large by more.
        rest, rest_error: the count of "other" minus `count`, and the standard and collision error of `rest` together.
        lower_bound: whether `count` lacks reports of these values, because they got no evaluation. Reports without an
            evaluation are in `rest`.
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
    """What a summary says about the estimates from one tally.

    Attributes:
        table: what the summary says about the table; None: no items were asked for.
        largest: counts of detected items, largest first.
        other: the columns of the row "other", for all values outside the dictionary; None without a dictionary.
        explained: the part of "other" that comes from discovered values; None without a dictionary or counts of such
            values.
        apart: why discovered values are shown apart from the estimates; None: they are not shown apart.
        whole_dictionary: whether the rows of the table are the whole dictionary; None without a dictionary.
    """

    table: TableFacts | None
    largest: tuple[Largest, ...]
    other: Mapping[str, float] | None = None
    whole_dictionary: bool | None = None
    explained: Explained | None = None
    apart: str | None = None

    def data(self) -> dict[str, Any]:
        """Return the part of summary.json about the estimates."""
        outside = {"other": self.other, "whole_dictionary": self.whole_dictionary}
        return {
            **(asdict(self.table) if self.table is not None else {}),
            "largest": [asdict(row) for row in self.largest],
            **(outside if self.other is not None else {}),
            **({"other_explained": asdict(self.explained)} if self.explained is not None else {}),
            **({"found_apart": self.apart} if self.apart is not None else {}),
        }


_Stratum = Annotated[int, Field(ge=0, lt=MOST_STRATA)]


@dataclass(frozen=True)
class Atom:
    """Public strata whose reports are counted together, and how many these are (`shuffler.atoms`)."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    strata: Annotated[tuple[_Stratum, ...], Field(min_length=1, max_length=MOST_STRATA)]
    reports: Count


Listed = Annotated[tuple[ListedFile, ...], Field(max_length=4 * MOST_PLACES)]
"""The files in one folder of an output.

Their number is limited, because a hop writes at most one file for each place.
"""


@dataclass(frozen=True)
class HopSummary(HopCounts):
    """The summary of a hop, made by a job, or read from a file with only those fields that the next hop uses.

    Attributes:
        campaign, epoch, fingerprint: as in the campaign file.
        upstream: counts of the hops before, first to last.
        made_from: digest of the summary of the hop before, which tells two outputs with the same name apart.
        shuffled: for the hop discover, digest of the summary of the shuffle, which is made_from of the release that was
            opened.
        senders: how the senders of the reports were told apart.
        privacy: the privacy statement. `privacy`, `cap`, and the fields from `influence` to `ledger` are None in a
            summary that was read.
        influence: by how much one forged report can change a count; None for a hop without estimates.
        forged: share of the reports that `FORGERS` of all clients send; None for a hop without estimates.
        flags: what in the batch honest clients do not explain; None for a hop without estimates.
        dead_letters: how many refused sealed reports were kept in files, and how many were not, by stream and reason.
        replayed: reason of the dead letters that were replayed into this output.
        ledger: the charge and the remaining budget; None for a hop that charges nothing.
        atoms: the atoms of frequency reports, by their numbers; empty without public axes.
        left_out: counts of streams that are below the minimum batch, and of which nothing was released.
        released: number of bins that the auxiliary server released.
        counts_of_values: how exact the counts of discovered values are; None in a summary that was read.
        batch, window: name of the batch, and its window if `hushcount run` named the batch.
        folder: name of the run's folder with the files; None: the files are beside the summary.
        files: files for the next party, by folder; None: the output is not signed.
        charged: the manifest in the auxiliary server's charge of its release; None: the summary has no such charge.
        read_as: digest of the JSON that was read; None: the summary was not read.
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
    forged: float | None = None
    flags: Flags | None = None
    dead_letters: Mapping[str, Mapping[str, Mapping[str, int]]] | None = None
    replayed: str | None = None
    estimates: Estimates | None = None
    ledger: Charged | NoLedger | None = None
    atoms: Annotated[tuple[Atom, ...], Field(max_length=MOST_STRATA)] = ()
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
        """Return the summary as JSON data."""
        head = {
            "hop": self.hop,
            "campaign": self.campaign,
            "epoch": self.epoch,
            "fingerprint": self.fingerprint,
            "received": self.received,
            "accepted": self.accepted,
            "rejected": self.rejected,
            "streams": {name: asdict(counts) for name, counts in self.streams.items()},
            **({} if self.dummies is None else {"dummies": self.dummies}),
            **self.senders.data(),
            "cap": self.cap,
            "privacy": self.privacy and self.privacy.data(),
            "upstream": [hop.data() for hop in self.upstream],
            "made_from": self.made_from,
        }
        said = {
            "shuffled": self.shuffled,
            "influence": self._influence(),
            "flags": self.flags and self.flags.model_dump(),
            "opening": self.opening and asdict(self.opening),
            "dead_letters": self.dead_letters,
            "atoms": [asdict(atom) for atom in self.atoms] or None,
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

    def _influence(self) -> dict[str, Any] | None:
        bound, part = self.influence, self.forged
        if bound is None or part is None:
            return None
        moved = part * self.accepted
        return {
            "users_per_forged_report_up": bound.up,
            "users_per_forged_report_down": bound.down,
            "items_per_forged_report": bound.items,
            "share_of_items_per_forged_report": bound.share,
            "forgers": {
                "share_of_clients": FORGERS,
                "share_of_reports": part,
                "users_up": moved * bound.up,
                "users_down": moved * bound.down,
            },
        }

    @property
    def stated(self) -> Statement:
        """The privacy statement of a summary that a job made."""
        if self.privacy is None:
            raise HushcountError(f"the summary of {self.hop} was read without its statement: report this bug")
        return self.privacy

    def digest(self) -> str:
        """Return the digest of the summary's JSON; if the summary was read, the digest of the JSON that was read."""
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
    """Return a hop's summary: the counts of all streams and of each stream, the statement, and the hops before.

    Args:
        reports: number of frequency reports in the result; None: the hop makes no estimates.
        senders: how the senders were told apart; None: as the summary of the hop before says, or UNBOUND if no hop is
            before.
        opening: how many boxes each engine opened; None: the hop opens no boxes.
    """
    whose = senders or (UNBOUND if upstream is None else upstream.senders)
    # A reader of counts sees both streams, so if a client sends reports of both streams, the statement adds both costs.
    privacy = statement(campaign, reports, whose, streams if reports is None else None)
    bound = part = None
    if reports is not None and campaign.frequency is not None:
        bound, part = influence(campaign.frequency, campaign.cells_an_item), forged_part(campaign.asked)
        # Every reader must see how far forged reports change counts, because the statement assumes honest reports.
        privacy = replace(privacy, sentences=(*privacy.sentences, influence_sentence(bound, campaign.asked, whose.way)))
    # The analyzer's counts are beside the dummies of both mixes, whether it has a result or not.
    dummies = upstream.dummies if upstream is not None and hop == "analyze" else None
    total = replace(HopCounts.of(hop, streams, opening), dummies=dummies)
    return HopSummary(
        **vars(total),
        campaign=campaign.id,
        epoch=campaign.epoch,
        fingerprint=campaign.fingerprint.hex(),
        senders=whose,
        cap=campaign.shuffle.cap,
        privacy=privacy,
        influence=bound,
        forged=part,
        upstream=() if upstream is None else (*upstream.upstream, upstream.counts),
        made_from=None if upstream is None else upstream.digest(),
        shuffled=upstream.made_from if upstream is not None and upstream.hop == "release" else None,
    )


def digest_of_json(data: Mapping[str, Any]) -> str:
    """Return the BLAKE2b-256 of a JSON object in hexadecimal digits; layout and order do not change the digest."""
    return hashlib.blake2b(json.dumps(data, sort_keys=True).encode(), digest_size=32).hexdigest()
