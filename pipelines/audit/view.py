"""The state that the audit looks at: a deployment, one of its campaigns, its logs and the store, at one moment.

What parties elsewhere did is known from the statements on their hops, and their receipts for outputs of hops here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Literal

from hushcount.campaigns.campaign import Stream
from hushcount.clock import Clock
from hushcount.collection.windows import Window
from hushcount.errors import HushcountError
from pipelines.deployment.campaigns import Epochs
from pipelines.deployment.settings import Deployment, Party
from pipelines.files.storage_errors import told
from pipelines.handover.hops import CHAIN, HopName, input_of
from pipelines.handover.paths import SegmentPath
from pipelines.handover.statements import Kind, Statement, keys_of, others, read
from pipelines.ledger.own_time import LedgerClock
from pipelines.log.fold import Fold
from pipelines.log.log import Log, Logs
from pipelines.schedule.stating import HandOver, hand_overs
from pipelines.windows.calendar import Calendar
from pipelines.windows.closing import Rule
from pipelines.windows.collecting import Collecting, collecting
from pipelines.windows.intake import Intake, intake_of
from pipelines.windows.rules import calendar_of, rule_of
from pipelines.windows.stored import Stored, StoredFile, segments_in, stored_files


@dataclass(frozen=True)
class Heard:
    """The valid statements and receipts of parties elsewhere about one campaign.

    Attributes:
        statements, receipts: the statements and the receipts of each party, by batch and hop.
        problems: a sentence for each statement or receipt that is ignored.
    """

    statements: Mapping[Party, Mapping[tuple[str, HopName], Statement]] = field(default_factory=dict)
    receipts: Mapping[Party, Mapping[tuple[str, HopName], Statement]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def all_statements(self) -> Iterator[Statement]:
        """The statements of all parties."""
        return (one for said in self.statements.values() for one in said.values())


def heard(deployment: Deployment, campaign: str) -> Heard:
    """Return what parties elsewhere wrote: statements on their own hops, and receipts for outputs that they read."""
    said: dict[Kind, dict[Party, dict[tuple[str, HopName], Statement]]] = {"statement": {}, "receipt": {}}
    problems: list[str] = []
    for party in others(deployment):
        own = {hop.name for hop in CHAIN.values() if hop.party == party and hop.signer is not None}
        sources = {
            source
            for hop in CHAIN.values()
            for noise in (False, True)
            if hop.party == party and (source := input_of(hop.name, noise)) is not None
        }
        about: dict[Kind, set[HopName]] = {"statement": own, "receipt": sources}
        for kind, hops in about.items():
            found, faults = read(deployment, kind, party, campaign, keys_of(deployment, party)) if hops else ({}, [])
            problems += faults
            mine = {(batch, hop): one for (batch, hop), one in found.items() if hop in hops}
            said[kind][party] = mine
            problems += [
                f"{campaign}/{batch}: the {kind} of {party} is about {hop!a}, a hop of which this party can know "
                "nothing: it is ignored"
                for batch, hop in found.keys() - mine.keys()
            ]
    return Heard(said["statement"], said["receipt"], tuple(sorted(problems)))


LAST = 7
"""The number of latest windows from which checks compute the usual volume, and in which checks look at every file."""
Verdict = Literal["good", "warning", "bad"]


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        name: the name of the checked thing.
        verdict: good, bad, or warning: the checked thing will be bad soon.
        sentence: the state of the checked thing.
        cure: what to do if the verdict is not good; empty if `sentence` is an error message that contains the cure.
    """

    name: str
    verdict: Verdict
    sentence: str
    cure: str = ""

    @property
    def says(self) -> str:
        """The sentence, followed by the cure if the verdict is not good."""
        return f"{self.sentence}: {self.cure}" if self.cure and self.verdict != "good" else self.sentence


@dataclass(frozen=True)
class StreamRow:
    """The counts of one job for one stream of a batch; `rejected`: number of reports by reason."""

    batch: str
    hop: str
    stream: Stream
    received: int
    accepted: int
    rejected: Mapping[str, int]


@dataclass(frozen=True)
class View:
    """A deployment at one moment. Each part of a deployment is read once, by the first check that needs the part.

    Attributes:
        deployment: settings and store of the deployment.
        now: the present.
        campaigns: the deployment's valid campaigns, with their files.
        faults: the fault of each campaign that cannot be read, by name of the campaign.
        one: the campaign that is looked at; None: the deployment as a whole.
        logs: the logs as far as this process has read them; None: this process has read no log yet.
        listed: the files of segments, listed after the logs were read; None: each campaign's files are listed when a
            check needs them.
        recent: whether `listed` lacks windows that are finished.
    """

    deployment: Deployment
    now: datetime
    campaigns: Sequence[Epochs] = ()
    faults: Mapping[str, str] = field(default_factory=dict)
    one: Epochs | None = None
    logs: Logs | None = None
    listed: Stored | None = None
    recent: bool = False

    def each(self) -> Iterator[View]:
        """Yield a view of each campaign; each call yields the same view objects."""
        return iter(self._views)

    @property
    def clock(self) -> LedgerClock:
        """The clock from which the ledger takes the present."""
        return LedgerClock(Clock(self.now.timestamp))

    @cached_property
    def _views(self) -> list[View]:
        return [replace(self, one=epochs) for epochs in self.campaigns]

    def readable(self) -> View:
        """Return a view without the campaigns that have an unreadable log; the view's faults name these campaigns."""
        unread = {}
        for one in self.each():
            try:
                _ = one.fold
            except (HushcountError, OSError) as error:
                unread[one.campaign] = told(error)
        if not unread:
            return self
        read = [epochs for epochs in self.campaigns if epochs.campaign not in unread]
        return replace(self, campaigns=read, faults={**self.faults, **unread})

    @property
    def epochs(self) -> Epochs:
        """The epochs of the campaign that is looked at."""
        if self.one is None:
            raise HushcountError("a check of one campaign was called without a campaign: report this bug")
        return self.one

    @property
    def campaign(self) -> str:
        """Id of the campaign."""
        return self.epochs.campaign

    @cached_property
    def fold(self) -> Fold:
        """The state of the campaign according to the logs of the parties here."""
        return self._logs.known(self.campaign)

    @cached_property
    def _logs(self) -> Logs:
        return Logs(self.deployment) if self.logs is None else self.logs

    def log_of(self, party: Party) -> Log:
        """Return a party's log of the campaign, as far as it was read; to read more entries does not change `fold`."""
        return self._logs.of(party, self.campaign)

    @cached_property
    def counts(self) -> dict[str, dict[str, dict[Stream, StreamRow]]]:
        """The counts of each hop, by batch, hop and stream; oldest batch first."""
        return {
            batch: {
                name: {
                    stream: StreamRow(batch, name, stream, part.received, part.accepted, part.rejected)
                    for stream, part in hop.counts.streams.items()
                }
                for name, hop in hops.items()
            }
            for batch, hops in sorted(self.fold.done.items())
        }

    @cached_property
    def heard(self) -> Heard:
        """The statements and receipts of parties elsewhere about the campaign."""
        # Read the fold before the receipts, or a new receipt could be for an output that the fold lacks.
        _ = self.fold
        return heard(self.deployment, self.campaign)

    @cached_property
    def handed(self) -> list[HandOver]:
        """The outputs for parties elsewhere that are still in the store, each with the parties that sent no receipt."""
        return hand_overs(self.deployment, self.fold)[0]

    @cached_property
    def stated(self) -> dict[str, dict[str, dict[Stream, StreamRow]]]:
        """The counts that parties elsewhere stated for their hops, keyed as in `counts`."""
        found: dict[str, dict[str, dict[Stream, StreamRow]]] = {}
        for one in sorted(self.heard.all_statements, key=lambda one: one.batch):
            rows = found.setdefault(one.batch, {}).setdefault(one.hop, {})
            for stream, part in one.streams.items():
                rows[stream] = StreamRow(one.batch, one.hop, stream, part.received, part.accepted, part.rejected)
        return found

    @cached_property
    def rescued(self) -> list[tuple[str, str, int]]:
        """Batch, hop and number of reports that libsodium opened and the lanes could not, in each hop's newest batch.

        Older batches are left out, because another machine may have opened them.
        """
        newest = {name: (batch, hop) for batch, hops in sorted(self.fold.done.items()) for name, hop in hops.items()}
        return [
            (batch, name, opening.rescued)
            for name, (batch, hop) in newest.items()
            if (opening := hop.counts.opening) is not None and opening.rescued
        ]

    @cached_property
    def intake(self) -> Intake:
        """The manifests that no closed window has taken in; no manifest if the shuffler does not run here."""
        # Read the fold before the files: then a manifest that a run takes in at this moment is seen at least once.
        fold = self.fold
        return intake_of(self.deployment, fold, self.files) if self.deployment.shuffles else Intake((), ())

    @cached_property
    def calendar(self) -> Calendar:
        """The calendar of the windows in the log and the windows to come."""
        return calendar_of(self.deployment, self.fold)

    @cached_property
    def collecting(self) -> Collecting:
        """The open window, and what the next result needs."""
        return collecting(self.deployment, self.epochs, self.fold, self.intake.listed, self.now)

    @cached_property
    def rule(self) -> Rule:
        """The rule by which windows close."""
        return rule_of(self.deployment, self.epochs, self.fold)

    @cached_property
    def windows(self) -> dict[str, Window]:
        """The windows of all manifests, old and new, by name; if windows of two lengths have one name, the longest."""
        found = self.fold.known_windows
        for one in self.intake.listed:
            found[one.window.name] = max(one.window, found.get(one.window.name, one.window))
        return found

    @cached_property
    def latest(self) -> list[str]:
        """The names of the latest windows, oldest first."""
        names = {batch.partition("-")[0] for batch in self.fold.done}
        return sorted(names | self.windows.keys())[-LAST:]

    @cached_property
    def stored(self) -> dict[SegmentPath, int]:
        """The size in bytes of every segment that was listed in the store, by path; old windows may be left out."""
        return segments_in(self.files)

    @cached_property
    def files(self) -> Sequence[StoredFile]:
        """The campaign's files in the folder of segments."""
        _ = self.fold
        listed = stored_files(self.deployment, campaign=self.campaign) if self.listed is None else self.listed
        return listed.get(self.campaign, ())

    @cached_property
    def unlisted(self) -> dict[SegmentPath, int]:
        """The size in bytes of every stored segment that no manifest lists."""
        known = self.fold.files | {segment.path for one in self.intake.listed for segment in one.segments}
        return {segment: size for segment, size in self.stored.items() if str(segment) not in known}

    def is_over(self, window: str) -> bool:
        """Return whether manifests are expected for the window `window`; ValueError: it is not a window's name."""
        closed, known = self.fold.closed, self.windows.get(window)
        end = (known or self.calendar.named(window)).end
        return (closed is not None and end <= closed) or end + self.deployment.windows.patience < self.now
