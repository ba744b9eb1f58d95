"""What a client demands of a campaign before it makes a report: the app's limits and the keys that the app trusts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, PlainValidator, PrivateAttr

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.delegation import CampaignSignature, verify_campaign
from hushcount.campaigns.dictionary import MOST_BYTES, USUAL_BYTES, Dictionary
from hushcount.campaigns.log import CampaignLog
from hushcount.campaigns.parts import MOST_LAYERS, Host, Identifier, SamplePart
from hushcount.campaigns.public_keys import VerifyKeyPart
from hushcount.campaigns.signatures import SignatureError
from hushcount.errors import UsageError
from hushcount.formats.models import Part
from hushcount.formats.reading import SETTINGS_BYTES, parse_model, read_file, validated
from hushcount.newest import Newest, Untrusted
from hushcount.strata import MOST_AXES, MOST_STRATA, USUAL_STRATA
from hushcount.urls import Take

LEAST_SHARE = 0.01
"""The least share of clients that a policy may allow a sample to ask."""
_REPORT_BYTES = 16384
_MOST_HOSTS = 1000
_TAKEN = (*get_args(Take), "text")


class PolicyTerms(Part):
    """The content of policy.json, which an app ships; clients in all languages read this format."""

    format: Literal[1] = 1
    campaign_id: Identifier
    operator_keys: tuple[VerifyKeyPart, ...] = Field(
        min_length=1, max_length=100, description="keys that may sign the campaign or delegate it"
    )
    max_epsilon: float = Field(
        ge=0.0,
        description="greatest local epsilon of a client's frequency reports in a window, or with a memory in an epoch",
    )
    max_discovery_epsilon: float = Field(
        default=0.0, ge=0.0, description="greatest epsilon of the keep rule, replace-one; 0: no discovery"
    )
    max_noise_epsilon: float = Field(
        default=0.0,
        ge=0.0,
        description="greatest epsilon of a client's reports in a window with noise of the mixes; 0: no such campaign, "
        "whose reports are sealed, not randomised",
    )
    oblivious: bool = Field(
        default=False, description="whether discovery must use oblivious names: testing a guess needs the evaluator"
    )
    max_delta: float = Field(
        default=1e-6, ge=0.0, lt=1.0, description="greatest delta of discovery, replace-one, and of shuffling"
    )
    min_batch: int = Field(default=1000, ge=1, le=10**12, description="least minimum batch")
    layers: tuple[Identifier, ...] = Field(
        default=(),
        max_length=MOST_LAYERS,
        description="layers in which a campaign may ask a sample",
    )
    least_share: float = Field(default=0.01, ge=0.01, le=1.0, description="least share of clients that a sample asks")
    take: Literal[Take, "text"] = Field(
        default="text",
        description="the most that a campaign may learn of an address: its site, host or path, or any text",
    )
    hosts: tuple[Host, ...] = Field(
        default=(),
        max_length=_MOST_HOSTS,
        description="the only hosts of which a campaign may learn paths; needed for paths of several segments",
    )
    axes: tuple[Identifier, ...] = Field(
        default=(), max_length=MOST_AXES, description="private axes by which a campaign may break reports down"
    )
    public_axes: tuple[Identifier, ...] = Field(
        default=(), max_length=MOST_AXES, description="axes of which a campaign may learn the coordinates openly"
    )
    public_strata: int = Field(
        default=USUAL_STRATA, ge=1, le=MOST_STRATA, description="most combinations of coordinates that are told openly"
    )
    max_report_bytes: int = Field(default=_REPORT_BYTES, ge=1, le=1 << 30, description="longest sealed report")
    max_dictionary_bytes: int = Field(
        default=USUAL_BYTES, ge=1, le=MOST_BYTES, description="longest dictionary, as fetched and unpacked"
    )

    def text(self) -> str:
        """Return the content of a policy file."""
        return self.model_dump_json(indent=2) + "\n"


def _newest(value: object) -> Newest:
    if not isinstance(value, Newest):
        raise ValueError(f"is a {type(value).__name__}, must be a Newest: give Newest(path)")
    return value


class Policy(PolicyTerms):
    """To which campaign a client reports, who must sign the campaign, and the most that the client's reports may cost.

    Args:
        campaign_id: the only campaign that the client accepts.
        operator_keys: the keys that may sign the campaign, or delegate it to a publisher (`Delegation`).
        max_epsilon: bounds the total cost of a client's frequency reports: cap times epsilon in a window, or
            memory_values times epsilon in an epoch if clients remember.
        max_discovery_epsilon: bounds the keep rule's replace-one epsilon, which is twice its epsilon if the campaign
            calibrates discovery to add-remove.
        max_noise_epsilon: the app's consent to reports that are sealed, not randomised. It bounds epsilon of a client's
            reports in a window with noise of the mixes. No other field allows such a campaign.
        oblivious: whether to refuse discovery with keyed names. With keyed names, the auxiliary server can test guesses
            with any client's campaign file.
        max_delta: bounds discovery's replace-one delta, and the delta at which the shuffled epsilon is stated.
        min_batch: the least minimum batch that the client accepts.
        layers: the names of the app's layers, at most 3. Which campaigns ask somebody is a pseudonym, so the client
            accepts a sample in these layers only.
        least_share: the least share of all clients that a sample may ask.
        take: the most that a campaign may learn of a value, "site", "host", "path" or "text". An app that reports URLs
            must not report them to a campaign that takes texts, because this campaign would learn whole URLs.
        hosts: the only hosts of which a campaign may learn paths; another address counts as "other". A campaign that
            takes 2 segments and more needs them.
        axes: the names of the only private axes by which a campaign may break reports down.
        public_axes: the names of the only axes whose coordinates are not protected.
        public_strata: the most public strata. They link the reports of a person: 64 strata tell 6 bits of the sender.
        max_report_bytes: the most bytes of a sealed report, of either stream.
        max_dictionary_bytes: the most bytes of a dictionary that a sender fetches and keeps, both as fetched and
            unpacked.
        newest: where the client keeps the newest epoch that it accepted. Without a path, the newest epoch is forgotten
            when the process ends, and the next process may accept an older epoch.

    Privacy: a policy bounds what a signed campaign may cost. A policy cannot check whether the parties keep their
        promises.
    """

    newest: Annotated[Newest, PlainValidator(_newest)] = Field(default_factory=Newest, exclude=True, repr=False)
    _trusts: bool = PrivateAttr(default=False)

    @classmethod
    def read(cls, path: Path | str, newest: Newest) -> Policy:
        """Read a policy file; UsageError: it is missing; FormatError: it is invalid, with each wrong field."""
        terms = parse_model(PolicyTerms, read_file(Path(path), "policy", SETTINGS_BYTES), f"policy {path}")
        return cls(**dict(terms), newest=newest)

    @classmethod
    def trusting(cls) -> Policy:
        """Return a policy that accepts any campaign file, for simulations and tests without real people."""
        policy = cls.model_construct(campaign_id="", operator_keys=(), max_epsilon=math.inf)
        policy._trusts = True
        return policy

    @property
    def trusts(self) -> bool:
        """Whether this policy checks nothing."""
        return self._trusts

    def accept(
        self,
        campaign: Campaign,
        signature: CampaignSignature | None,
        log: CampaignLog | None = None,
        now: datetime | None = None,
    ) -> datetime | None:
        """Check a campaign, and keep its head as the newest; durably if `newest` has a path.

        Args:
            campaign: the file that the client was given.
            signature: the campaign's signature; if it contains a restart, the client may continue from the history that
                the operator names in the restart.
            log: the campaign's log, for a client that missed an epoch.
            now: the time of the check; by default the present.

        Returns:
            When the first of the keys that vouch for the campaign expires; None if this policy checks nothing.

        Raises:
            Untrusted: the campaign violates the policy, is unsigned, or does not continue the history that was accepted
                before.
            HushcountError: the newest epoch cannot be read or stored.
        """
        until = self.check(campaign, signature, now)
        if not self._trusts:
            self.newest.keep(campaign, log, signature)
        return until

    def check(
        self, campaign: Campaign, signature: CampaignSignature | None, now: datetime | None = None
    ) -> datetime | None:
        """Check everything except the history, and store nothing. Arguments, result and Untrusted: see `accept`."""
        if self._trusts:
            return None
        if campaign.id != self.campaign_id:
            raise Untrusted(
                f"campaign is {campaign.id}, the policy is for {self.campaign_id}: give the campaign's own policy"
            )
        if signature is None:
            raise Untrusted(
                f"campaign {campaign.id} is unsigned, must be signed by the operator: put its signature beside the "
                "file, with .sig after its name"
            )
        try:
            vouching = verify_campaign(self.operator_keys, campaign, signature, now)
        except SignatureError as error:
            raise Untrusted(str(error)) from None
        for name, value, field, limit in self._compared(campaign):
            if value > limit:
                raise Untrusted(
                    f"{name} of campaign {campaign.id} is {value:g}, the policy allows at most {limit:g}: do not "
                    f"report to it, or raise {field} in the policy if that is what you promise your users"
                )
        if campaign.shuffle.minimum_batch < self.min_batch:
            raise Untrusted(
                f"minimum batch of campaign {campaign.id} is {campaign.shuffle.minimum_batch}, the policy demands at "
                f"least {self.min_batch}: do not report to it, or lower min_batch in the policy"
            )
        if self.oblivious and campaign.discovery is not None and not campaign.is_oblivious:
            raise Untrusted(
                f"names of campaign {campaign.id} are keyed, the policy demands oblivious ones: do not report to it, "
                "or set oblivious to false in the policy"
            )
        if _TAKEN.index(taken := taken_of(campaign)) > _TAKEN.index(self.take):
            raise Untrusted(
                f"campaign {campaign.id} takes the {taken} of a value, the policy allows at most the {self.take}: do "
                "not report to it, or change take in the policy if that is what you promise your users"
            )
        if campaign.url is not None and campaign.url.needs_hosts and not self.hosts:
            raise Untrusted(
                f"campaign {campaign.id} takes {campaign.url.segments} segments of the path of addresses, the policy "
                "names no hosts: do not report to it, or add to hosts those of which it may learn paths"
            )
        self._require_axes(campaign)
        if campaign.sample is not None:
            self._require_sample(campaign.id, campaign.sample)
        return min(key.not_after for key in vouching)

    def hosts_for(self, campaign: Campaign) -> frozenset[str] | None:
        """Return the only hosts of which a campaign learns addresses; None: it learns those of all."""
        takes = campaign.url is not None and campaign.url.take == "path" and not self._trusts
        return frozenset(self.hosts) if takes and self.hosts else None

    def _require_sample(self, name: str, sample: SamplePart) -> None:
        if sample.layer not in self.layers:
            raise Untrusted(
                f"campaign {name} asks a sample in layer {sample.layer}, the policy allows "
                f"{' and '.join(self.layers) or 'no sample'}: do not report to it, or add the layer to the policy"
            )
        if sample.share < self.least_share:
            raise Untrusted(
                f"campaign {name} asks {sample.share:g} of all clients, the policy demands at least "
                f"{self.least_share:g}: do not report to it, or lower least_share in the policy"
            )

    def _require_axes(self, campaign: Campaign) -> None:
        for public, field, allowed in ((False, "axes", self.axes), (True, "public_axes", self.public_axes)):
            if strange := [name for name in campaign.axes_that_are(public=public) if name not in allowed]:
                told = "openly by" if public else "by"
                raise Untrusted(
                    f"campaign {campaign.id} breaks reports down {told} {' and '.join(strange)}, the policy allows "
                    f"{' and '.join(allowed) or 'no axis'}: do not report to it, or add the axis to {field} in the "
                    "policy"
                )

    def _compared(self, campaign: Campaign) -> Iterator[tuple[str, float, str, float]]:
        span = "an epoch" if campaign.memory else "a window"
        epsilon, discovery_epsilon, delta = costs(campaign)
        yield f"epsilon of a client's frequency reports in {span}", epsilon, "max_epsilon", self.max_epsilon
        noise = 0.0 if campaign.noise is None else campaign.noise.epsilon
        yield "epsilon of noise of the mixes", noise, "max_noise_epsilon", self.max_noise_epsilon
        yield "epsilon of discovery", discovery_epsilon, "max_discovery_epsilon", self.max_discovery_epsilon
        yield "delta", delta, "max_delta", self.max_delta
        longest = max(map(campaign.sealed_bytes, campaign.streams))
        yield "length of a report in bytes", longest, "max_report_bytes", self.max_report_bytes
        yield "number of public strata", campaign.public_strata, "public_strata", self.public_strata


def taken_of(campaign: Campaign) -> Literal[Take, "text"]:
    """Return what a campaign learns of a value that is a URL; of numbers it learns no more than of a site."""
    return campaign.url.take if campaign.url is not None else "text" if campaign.number is None else "site"


def costs(campaign: Campaign) -> tuple[float, float, float]:
    """Return what a policy bounds: local epsilon of frequency reports, epsilon of discovery, and the greater delta."""
    local, rule, noise = campaign.local_epsilon, campaign.keep_rule, campaign.noise
    epsilon = 0.0 if local is None else campaign.epoch_epsilon or campaign.shuffle.cap * local
    found = (0.0, 0.0) if rule is None else rule.replaced
    return epsilon, found[0], max(found[1], campaign.shuffle.delta, 0.0 if noise is None else noise.delta)


def terms_of(
    campaign: Campaign,
    operator_keys: Sequence[VerifyKeyPart],
    dictionary: Dictionary | None = None,
    hosts: Sequence[str] = (),
) -> PolicyTerms:
    """Return a policy that allows exactly the cost of this campaign, for the app's developer to review."""
    epsilon, discovery_epsilon, delta = costs(campaign)
    longest = max(map(campaign.sealed_bytes, campaign.streams))
    if not operator_keys:
        raise UsageError("operator_keys is empty, must hold the key that signs the campaign")
    if taken_of(campaign) != "path" and hosts:
        raise UsageError(f"hosts of the policy for campaign {campaign.id} must be left out: it takes no paths")
    if campaign.url is not None and campaign.url.needs_hosts and not hosts:
        raise UsageError(f"hosts of the policy for campaign {campaign.id} must name those of which it may learn paths")
    terms = {
        "campaign_id": campaign.id,
        "operator_keys": tuple(operator_keys),
        "max_epsilon": epsilon,
        "max_discovery_epsilon": discovery_epsilon,
        "max_noise_epsilon": 0.0 if campaign.noise is None else campaign.noise.epsilon,
        "oblivious": campaign.is_oblivious,
        "max_delta": delta,
        "min_batch": campaign.shuffle.minimum_batch,
        "layers": () if campaign.sample is None else (campaign.sample.layer,),
        "take": taken_of(campaign),
        "hosts": tuple(hosts),
        "axes": campaign.axes_that_are(public=False),
        "public_axes": campaign.axes_that_are(public=True),
        # Nor is this bound the present number, because the next version of an app is one more coordinate.
        "public_strata": max(campaign.public_strata, USUAL_STRATA),
        # The bound is not the present length of reports, because a larger dictionary makes reports longer.
        "max_report_bytes": max(longest, _REPORT_BYTES),
        "max_dictionary_bytes": max(0 if dictionary is None else len(dictionary.text), USUAL_BYTES),
    }
    return validated(PolicyTerms, terms, "the policy")


def checked_policy(policy: Policy | Path | str, folder: Path | None) -> Policy:
    """Return a sender's policy, read from its file if a path is given; UsageError if it names no campaign.

    If the policy names no file for the newest epoch, the epoch is kept in the folder, if there is one.
    """
    read = Policy.read(policy, Newest()) if isinstance(policy, str | Path) else policy
    if not isinstance(read, Policy) or read.trusts:
        raise UsageError("policy must be a Policy that names its campaign, or the path of its file, policy.json")
    if folder is None or read.newest.path is not None:
        return read
    return read.model_copy(update={"newest": Newest(folder / "newest.json")})
