"""The client: turns a value into a sealed report, which has the same length for all values."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol

from hushcount.allowance import Allowance
from hushcount.budget import Budget
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.delegation import CampaignSignature, read_campaign_signature
from hushcount.campaigns.dictionary import Dictionary, other_item
from hushcount.campaigns.log import CampaignLog
from hushcount.campaigns.public_keys import PublicKeyPart, valid_key
from hushcount.campaigns.signatures import signature_path
from hushcount.clock import MACHINE, Clock
from hushcount.collection.windows import duration_text
from hushcount.discovery.making import Making, PendingDiscovery
from hushcount.discovery.oblivious import Ask
from hushcount.errors import UsageError
from hushcount.memory import Memory, place_key
from hushcount.newest import Untrusted
from hushcount.policy import Policy
from hushcount.remembering import remembered
from hushcount.report_making import (
    Measurement,
    asked_by,
    checked_dictionary,
    drawn,
    in_layers,
    items_for,
    named,
    new_values,
    sealed,
    strata_for,
)
from hushcount.sampling import Installation, NotAsked
from hushcount.spent import Spent
from hushcount.wire.sealing import Octets, Sealer

_LOG = logging.getLogger(__name__)


class Queue(Protocol):
    """A queue of reports that were made and wait to be sent."""

    def forget(self) -> None:
        """Delete all waiting reports permanently."""
        ...


@dataclass(frozen=True)
class Client:
    """Privatises and seals values of one client for one campaign. A `Client` contains no secret; threads may share it.

    Args:
        campaign: the campaign, as `Campaign.read` returns it.
        policy: what the client demands of the campaign. The client checks the campaign before it makes any report.
            Before each report, the client also checks that the keys that vouch for the campaign have not expired.
        signature: the campaign's signature; by default it is read from the file beside the campaign file.
        log: the campaign's log, for a client that missed an epoch.
        dictionary: the campaign's dictionary; by default it is read from the file beside the campaign file.
        memory: where the client keeps its answers. A memory is needed if the campaign says that clients remember
            answers, and is refused otherwise.
        allowance: counts the reports that this client makes, up to the campaign's cap of each stream in each window. By
            default windows are days, and the counts are lost when the process ends; `Allowance(window, path)` keeps the
            counts in a file.
        budget: bounds the total cost of this client's reports; by default there are no limits, and the charges are lost
            when the process ends. `Budget(path, per_day, lifetime)` sets limits, and keeps the charges in a file. All
            clients of one person must share one budget, also in several campaigns.
        installation: the random id that decides whether a campaign with a sample asks this client; by default the id is
            lost when the process ends. `Installation(path)` keeps it in a file.
        queue: where the app keeps reports that wait to be sent; `forget` deletes the waiting reports.
        ask: function that asks the evaluator, if the campaign has an evaluator. An app that asks the evaluator later
            may omit `ask`, and make each discovery report by `pending_discovery`.
        clock: decides in which window and on which day a report is counted, and whether keys are valid.

    Raises:
        Untrusted: the policy refuses the campaign.
        UsageError: the policy is missing; a memory is missing, or given although clients of the campaign do not
            remember answers; the dictionary is missing or not the campaign's dictionary; no key of the campaign is
            valid now; or the campaign file is a redacted one, without the key of the discovery hash.

    Privacy: the client counts and charges reports before it draws their answers. Neither the charge nor whether a
        report carries its value depends on values. A frequency report is epsilon-locally private, replace-one. With
        noise of the mixes it is sealed, not randomised: shuffler, auxiliary server and analyzer together read its
        value, and the (epsilon, delta) of a window holds as long as shuffler or auxiliary server keeps to its role. A
        discovery report hides its value only as long as the auxiliary server and the analyzer do not collude, and
        within the (epsilon, delta) of the keep rule. If the campaign's names are keyed, a discovery report hides from
        the auxiliary server only values that the auxiliary server cannot guess. If the names are oblivious, a discovery
        report hides its value from the auxiliary server as long as nobody asks the evaluator about that value for the
        auxiliary server, and the auxiliary server and the evaluator do not test guesses together. A client that sends
        reports of both streams is charged for both streams. Without a memory, a client that sends the same value again
        spends budget again. With a memory, all frequency reports of a campaign's epoch together spend k epsilon, where
        k = `memory_values` is the number of different values that the client remembers; all values outside the
        dictionary count as one value. A value after the first k values, or a value that the memory cannot store, gets
        the answer to the last remembered value, because sending no report would reveal that the value is new. A memory
        has disadvantages: there is no amplification by shuffling, and the analyzer sees which reports are equal, in one
        batch and in different batches. If k is above 1, equal reports reveal when a client's value changed. The
        shuffler cannot see which reports are equal, because each report is sealed anew.
    Randomness: the operating system's cryptographic generator.
    """

    campaign: Campaign
    _: KW_ONLY
    policy: Policy | None = None
    signature: CampaignSignature | None = None
    log: CampaignLog | None = field(default=None, repr=False)
    dictionary: Dictionary | None = None
    memory: Memory | None = None
    allowance: Allowance = field(default_factory=Allowance)
    budget: Budget = field(default_factory=Budget)
    installation: Installation = field(default_factory=Installation)
    queue: Queue | None = None
    ask: Ask | None = None
    clock: Clock = MACHINE
    is_asked: bool = field(default=True, init=False)
    """Whether the campaign asks this client; otherwise every report raises NotAsked."""
    _vouched_until: datetime | None = field(default=None, init=False, repr=False)
    _hosts: frozenset[str] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.campaign, Campaign):
            raise UsageError(
                f"campaign is a {type(self.campaign).__name__}, must be a Campaign: give Campaign.read(path)"
            )
        if not isinstance(self.policy, Policy):
            raise UsageError(
                f"policy is a {type(self.policy).__name__}, must be a Policy: write the file with hushcount campaign "
                'policy, and give policy=Policy.read("policy.json", Newest(Path("newest.json")))'
            )
        object.__setattr__(self, "_vouched_until", self._accepted(self.policy))
        object.__setattr__(self, "_hosts", self.policy.hosts_for(self.campaign))
        shortest = self.campaign.usual_window
        if shortest is not None and shortest < self.allowance.window:
            listed = self.campaign.windows
            of = f"of {duration_text(shortest)}" if listed is None else f"{listed.unit}s"
            raise Untrusted(
                f"windows of campaign {self.campaign.id} are {of}, the app allows none below "
                f"{duration_text(self.allowance.window)}: do not report to it, or give a shorter window"
            )
        if self.memory is not None and not all(hasattr(self.memory, name) for name in ("get", "keep", "forget")):
            raise UsageError(f"memory is a {type(self.memory).__name__}, must be a memory: give ClientMemory(path)")
        if self.campaign.memory and self.memory is None:
            raise UsageError(
                f"clients of campaign {self.campaign.id} remember their answers: give a memory, as in "
                "Client(campaign, policy=policy, memory=ClientMemory(path))"
            )
        if self.memory is not None and not self.campaign.memory:
            raise UsageError(
                f"clients of campaign {self.campaign.id} do not remember their answers: give no memory, or make the "
                "campaign with hushcount campaign new --memory"
            )
        object.__setattr__(self, "dictionary", checked_dictionary(self.campaign, self.dictionary))
        object.__setattr__(self, "is_asked", self.installation.is_asked(self.campaign, self.clock.now()))

    def _accepted(self, policy: Policy) -> datetime | None:
        """Check the campaign by the policy, and return when the first key that vouches for the campaign expires."""
        if policy.trusts:
            _LOG.warning(
                "a client of campaign %s believes any campaign file: Policy.trusting() is for tests", self.campaign.id
            )
            return None
        signature = self.signature
        if signature is None and self.campaign.path is not None:
            beside = signature_path(self.campaign.path)
            signature = read_campaign_signature(beside) if beside.exists() else None
        return policy.accept(self.campaign, signature, self.log, self.clock.now())

    def report(
        self, value: str | float, by: Mapping[str, str | float] | None = None, due: datetime | None = None
    ) -> bytes:
        """Return one sealed frequency report; a value not in the dictionary or not a valid item counts as "other".

        A number counts as its bin if the campaign has bins, and otherwise as its text, like "2.5". A URL counts as the
        part of it that the campaign takes, and as "other" if it is no public address, or of a host of which the policy
        allows no paths.

        Args:
            by: the client's coordinate on each axis of the campaign; a missing or unlisted one is "other".
            due: when the app will send the report; None: at once. If the campaign has noise, a report names and counts
                in the window of this moment, and counts nowhere if it arrives in another window.
        """
        measurement = Measurement.of(value, by)
        return self.reports([measurement.value], by=[dict(measurement.by)], due=due).tobytes()

    def reports(
        self,
        values: Sequence[str | float],
        threads: int = 1,
        by: Sequence[Mapping[str, str | float]] = (),
        due: datetime | None = None,
    ) -> Octets:
        """Return uint8[n, L]: one sealed frequency report for each value, all of the same length.

        Args:
            by: the coordinates of each value; none are "other" on all axes.
            due: as in `report`.

        Once the budget is spent, reports encode "other", and the memory is not used. Exception: if the memory has an
        answer of this epoch, the whole epoch was already charged, so reports still use the memory.

        Raises:
            NotAsked: the campaign's sample does not contain this client.
            OverCap: this client may not make so many more reports in this window.
            BudgetSpent: the budget is spent, and `when_spent` of the budget is "nothing".
            OptedOut: the person opted out.
            HushcountError: the memory cannot be read, or it has no answer of this epoch and cannot store an answer.
                Whether the memory causes an error does not depend on the values.
        """
        self.require_asked()
        mechanism = self.campaign.require_frequency()
        items = items_for(self.campaign, self.dictionary, values, self._hosts, by)
        keys, noise = self.campaign.keys, self.campaign.noise
        recipient, layer = self._sealer(keys.analyzer), None if noise is None else self._sealer(keys.aux_server)
        moment = self.clock.now() if due is None or noise is None else due
        telling = self._charged("reports", len(values), moment)
        items[telling:] = other_item(mechanism)
        # If reports repeat answers, either all of these reports carry their value or no report does.
        draw = partial(drawn, self.campaign)
        if self.memory is not None and telling:
            answers = remembered(self.campaign, items, self.memory, draw)
        else:
            answers = draw(items)
        boxes = sealed(self.campaign, answers, strata_for(self.campaign, len(values), by), recipient, threads)
        if layer is None:
            return boxes
        begins = self.campaign.starts(self.allowance.window).at(moment.timestamp())
        return in_layers(self.campaign, boxes, begins, layer, threads)

    def discovery_report(self, value: str | float | None) -> bytes:
        """Return one sealed discovery report; None means "nothing to discover". Errors: see `discovery_reports`."""
        return self.discovery_reports([value]).tobytes()

    def discovery_reports(self, values: Sequence[str | float | None], threads: int = 1) -> Octets:
        """Return uint8[n, L]: one sealed discovery report for each value, all of the same length.

        There is nothing to discover if the dictionary lists the value, or if the value cannot be an item, such as the
        empty string or a text with a control character (`items.fault_of_text`). Then the report is a blank, which has a
        random hash and no value. Every client sends a report, so that sending reveals nothing. A report is also a blank
        if the budget is spent or the evaluator does not answer.

        Raises:
            NotAsked, OverCap, BudgetSpent, OptedOut: as in `reports`.
            UsageError: a value is longer than the campaign allows; the message has the value's length, but never the
                value. An app that sends no report after this error reveals to the shuffler that the value is too long,
                so it should send `discovery_report(None)` instead.
        """
        self.require_asked()
        new, making = new_values(self.campaign, self.dictionary, values, self._hosts), self._making()
        ask = asked_by(self.campaign, self.ask)
        return named(self.campaign, making, self._told(new), ask, threads)

    def pending_discovery(self, value: str | float | None) -> PendingDiscovery:
        """Count and charge a discovery report, and return it unfinished; the caller asks for its evaluation later.

        The request for the evaluation reveals nothing of the value if the app sends it at a time that does not depend
        on the value, and only once. If no answer comes, the app sends the blank. Errors are those of
        `discovery_reports`, and UsageError if the campaign has no evaluator.
        """
        if not self.campaign.is_oblivious:
            raise UsageError(f"campaign {self.campaign.id} has no evaluator: use discovery_report")
        self.require_asked()
        new, making = new_values(self.campaign, self.dictionary, [value], self._hosts), self._making()
        return making.pending(self._told(new)[0], self.campaign.require_evaluator_key())

    def require_asked(self) -> None:
        """Raise NotAsked if the campaign's sample does not contain this client."""
        if not self.is_asked:
            raise NotAsked(
                f"campaign {self.campaign.id} asks a sample of its clients, and not this one: make no report"
            )

    def spent(self) -> Spent:
        """Return what all reports under this client's budget cost; an app can show the sentences of `Spent.words`."""
        return self.budget.spent(self.clock.now())

    def forget(self) -> None:
        """Opt out: make no more reports, and delete what was made from values: remembered answers and queued reports.

        The budget's numbers are kept, so that `budget.opt_in()` does not renew the budget. The opt-out is stored first:
        if a later step raises an error or the process is killed, no more reports are made, and a second call of
        `forget` deletes what is left. Another thread may still return a report that it was making, so an app must check
        `budget.opted_out` before it sends a report.
        """
        self.budget.opt_out()
        for kept in (self.queue, self.memory):
            if kept is not None:
                kept.forget()

    def _sealer(self, keys: tuple[PublicKeyPart, ...]) -> Sealer:
        until, now = self._vouched_until, self.clock.now()
        if until is not None and now >= until:
            raise Untrusted(
                f"the keys that vouch for campaign {self.campaign.id} were valid until {until.isoformat()}, and it is "
                f"{now.isoformat()}: fetch the newest campaign and its signature"
            )
        return Sealer(bytes.fromhex(valid_key(keys, now).key))

    def _charged(self, stream: Stream, number: int, due: datetime | None = None) -> int:
        """Count and charge reports permanently, before answers are drawn; return how many reports carry values.

        They count in the window in which they are due.
        """
        repeats = stream == "reports" and self.memory is not None and self.memory.get(place_key(self.campaign, 0))
        now = self.clock.now()
        take = partial(self.allowance.take, self.campaign, stream, number, due or now)
        return self.budget.charge(self.campaign, stream, number, repeats=bool(repeats), also=take, now=now)

    def _told(self, new: list[str | None]) -> list[str | None]:
        """Count and charge discovery reports; return their values, with None for values that must not be told."""
        telling = self._charged("discovery", len(new))
        return [*new[:telling], *[None] * (len(new) - telling)]

    def _making(self) -> Making:
        keys = self.campaign.keys
        return Making(self.campaign.discovery_format, self._sealer(keys.analyzer), self._sealer(keys.aux_server))
