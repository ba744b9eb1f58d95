"""The sections of a campaign file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from datetime import date
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StrictBool,
    field_serializer,
    field_validator,
    model_validator,
)

from hushcount.campaigns.dictionary import MOST_ITEMS, Dictionary
from hushcount.discovery.keep_rules import KeepRule, Relation, RuleName
from hushcount.discovery.pairs import MAX_VALUE_BYTES
from hushcount.formats.canonical_json import LARGEST_INTEGER
from hushcount.formats.models import FileName, Hex32, Part, text_of
from hushcount.maths.probability import LARGEST_EPSILON, LEAST_EPSILON
from hushcount.numbers import MOST_BINS, Bins, are_rising
from hushcount.oracles.encoders.noisy import NoisyIdentity
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.noisy_counts import MixNoise
from hushcount.oracles.parameters import Parameters, Value
from hushcount.oracles.responders.truthful import Truthful
from hushcount.urls import MOST_SEGMENTS, Suffixes, Take, item_of_url
from hushcount.window_starts import LAST, SPANS, Unit

Identifier = Annotated[
    str,
    text_of(r"^[a-z0-9][a-z0-9._-]{0,63}$", "must be 1 to 64 of a-z, 0-9, '.', '_' and '-', a letter or digit first"),
]
COLLECTOR = "one"
"""The name of a campaign's only collector, unless the campaign file gives another; `hushcount init` gives this name."""
MOST_COLLECTORS = 16
BUCKETS = 10_000
"""The number of buckets of a layer."""
MOST_LAYERS = 3
"""The most layers of an app and of an installation, because the list of campaigns that ask somebody is a pseudonym."""
DAY_SECONDS = 86_400
MOST_PASS_DAYS = 100
MOST_PASSES_A_DAY = 24
MOST_STARTS = 500
MIXES = 2
"""The parties that add dummies: the shuffler and the auxiliary server."""
MOST_DUMMIES = 1 << 25
"""The most dummies that a mix adds to a batch, but for a chance of 1e-15: 2 GB of reports."""
MOST_NOISE_SECONDS = 366 * DAY_SECONDS
USUAL_VALUE_BYTES = 64
MOST_SUFFIXES = 20_000
_MOST_RANGES = 100
_Bucket = Annotated[int, Field(ge=0, le=BUCKETS)]
_Edge = Annotated[
    str,
    text_of(
        r"^(0|-?([1-9][0-9]{0,20}|[1-9][0-9]{0,14}\.[0-9]{0,19}[1-9]|0\.[0-9]{0,19}[1-9]))$",
        "must be decimal digits, such as 2.5, without a zero that adds nothing",
    ),
]
_Unit = Annotated[
    str, text_of(r"^[!-~°µΩ€]{0,16}$", "must be at most 16 visible characters of ASCII, or of °, µ, Ω and €")
]


def _number(value: object) -> object:
    if isinstance(value, bool | str):
        raise ValueError(f"is {value!r}, must be a number")
    return value


_Start = Annotated[int, Field(ge=0, le=LAST), BeforeValidator(_number)]
_Suffix = Annotated[
    str,
    text_of(r"^(!|\*\.)?[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63}){0,5}$", "must be a rule of the public suffix list"),
]
Host = Annotated[
    str,
    text_of(r"^[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63}){1,9}$", "must be a host in lower case, as news.example.com"),
]
_LARGE = re.compile(r"[1-9][0-9]{15,19}")  # a seed has 64 digits


class MechanismPart(Part):
    """The frequency oracle with all its parameters, so that every party builds the same one."""

    name: str
    epsilon: float = Field(ge=LEAST_EPSILON, le=LARGEST_EPSILON, description="local budget of one report, nats")
    parameters: dict[str, Value] = Field(
        default_factory=dict, description="an integer above 2**53 - 1 is written as text"
    )

    @field_validator("parameters", mode="before")
    @classmethod
    def _read(cls, given: object) -> object:
        return {name: _read(name, value) for name, value in given.items()} if isinstance(given, dict) else given

    @field_serializer("parameters", when_used="json")
    def _written(self, parameters: Parameters) -> dict[str, Value]:
        return portable(parameters)


def portable(parameters: Parameters) -> dict[str, Value]:
    """Return parameters as a campaign file has them: an integer that JavaScript would round is written as text."""
    return {
        name: str(value) if isinstance(value, int) and abs(value) > LARGEST_INTEGER else value
        for name, value in parameters.items()
    }


def _read(name: object, value: object) -> object:
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise ValueError(f"{name} is {value}: must be within +-(2**53 - 1), or a text of its digits")
    if isinstance(value, str) and _LARGE.fullmatch(value) and int(value) > LARGEST_INTEGER:
        return int(value)
    # JSON has one kind of numbers: 2.0 and 2 have one fingerprint.
    return int(value) if isinstance(value, float) and value.is_integer() else value


class NoisePart(Part):
    """Dummy reports that shuffler and auxiliary server each add, in place of noise of the clients (docs/adr/0061)."""

    epsilon: float = Field(
        ge=LEAST_EPSILON, le=LARGEST_EPSILON, description="budget of a client's reports in one window, nats"
    )
    delta: float = Field(gt=0.0, lt=1.0)
    seconds: int | None = Field(
        default=None, ge=1, le=MOST_NOISE_SECONDS, description="length of windows; absent: as listed under windows"
    )

    def mechanism(self, domain: int, cap: int) -> Mechanism:
        """Return the mechanism of the reports; arguments and errors are those of `dummies`."""
        return Mechanism(NoisyIdentity(domain, noise=self.dummies(domain, cap)), Truthful(domain))

    def dummies(self, domain: int, cap: int) -> MixNoise:
        """Return the law of the dummies of `domain` items, for `cap` reports of a client in a window.

        Raises:
            ValueError: epsilon or delta is too small for the cap, or the mixes would add too many dummies.
        """
        try:
            rule = KeepRule("optimal", self.epsilon, self.delta, "replace-one", cap, counts=True)
        except ValueError as error:
            raise ValueError(f"noise: {error}") from None
        noise = MixNoise(rule.count_law, MIXES)
        if (most := noise.most_dummies(domain)) > MOST_DUMMIES:
            raise ValueError(
                f"noise: {domain:,} items need up to {most:,} dummies of each mix, must be at most {MOST_DUMMIES:,}: "
                "list fewer items, or raise epsilon"
            )
        return noise


class DictionaryPart(Part):
    """The file of the known items."""

    path: FileName = Field(description="one item a line, text or .gz, in the directory of the campaign file")
    items: int = Field(ge=1, le=MOST_ITEMS)
    digest: Hex32 = Field(description="BLAKE2b-256 of the items, one a line")

    def is_of(self, dictionary: Dictionary) -> bool:
        """Return whether this section describes `dictionary`: the number of items and the digest are the same."""
        return (len(dictionary.items), dictionary.digest) == (self.items, self.digest)


class ShufflePart(Part):
    """What the shuffler promises."""

    cap: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="most reports of one client that are forwarded, of each stream, in one window at one collector",
    )
    minimum_batch: int = Field(default=1000, ge=1, le=10**12, description="a stream with fewer reports is not released")
    delta: float = Field(default=1e-8, gt=0.0, lt=1.0, description="delta at which the shuffled epsilon is stated")


class SamplePart(Part):
    """Which clients are asked: those whose bucket in the layer is in one of the ranges."""

    layer: Identifier = Field(description="campaigns of one layer have no bucket in common")
    buckets: tuple[tuple[_Bucket, _Bucket], ...] = Field(
        min_length=1,
        max_length=_MOST_RANGES,
        description=f"ranges of buckets within 0..{BUCKETS}, each from its first number to below its second; in rising "
        "order, with a gap between two of them",
    )

    @model_validator(mode="after")
    def _check(self) -> SamplePart:
        ends = [end for span in self.buckets for end in span]
        if any(end <= before for before, end in pairwise(ends)):
            raise ValueError(f"buckets: are {ends}, must rise from number to number")
        return self

    @property
    def share(self) -> float:
        """The share of all clients that are asked, in (0, 1]."""
        return sum(end - first for first, end in self.buckets) / BUCKETS

    def has(self, bucket: int) -> bool:
        """Return whether clients with this bucket are asked."""
        return any(first <= bucket < end for first, end in self.buckets)

    def meets(self, other: SamplePart) -> bool:
        """Return whether a bucket of the same layer is in both samples."""
        return self.layer == other.layer and any(
            first < their_end and their_first < end
            for first, end in self.buckets
            for their_first, their_end in other.buckets
        )

    def widens(self, other: SamplePart) -> bool:
        """Return whether this sample has the layer and all buckets of the other one."""
        return self.layer == other.layer and all(
            any(first <= their_first and their_end <= end for first, end in self.buckets)
            for their_first, their_end in other.buckets
        )


class NumberPart(Part):
    """Values are numbers. A client reports the bin of its number, or for a mean its place between two edges.

    The dictionary lists the names of the bins in random order; for a mean, only the name of the upper edge.
    """

    edges: tuple[_Edge, ...] = Field(
        min_length=1,
        max_length=MOST_BINS - 1,
        description="in rising order: bins are below the first, from each to below the next, the last and above",
    )
    unit: _Unit = Field(description="what the numbers count, such as ms; may be empty")
    mean: StrictBool = Field(description="clients report a place between the only two edges, for a mean")

    @field_validator("edges")
    @classmethod
    def _rise(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if not are_rising(given):
            raise ValueError("must rise from edge to edge")
        return given

    @model_validator(mode="after")
    def _is_a_range(self) -> NumberPart:
        if self.mean and len(self.edges) != 2:
            raise ValueError(f"mean: has {len(self.edges)} edges, must have the 2 ends of a range")
        return self

    @cached_property
    def bins(self) -> Bins:
        """The bins."""
        return Bins(self.edges, self.unit)

    @property
    def items(self) -> tuple[str, ...]:
        """The items of the dictionary, in any order."""
        return (f"{self.edges[1]} {self.unit}".rstrip(),) if self.mean else self.bins.names

    @property
    def question(self) -> str:
        """The command of `hushcount ask` that shows the numbers."""
        return "mean" if self.mean else "quantile"

    @property
    def words(self) -> str:
        """What is asked about the numbers."""
        if self.mean:
            return f"their mean, from {self.edges[0]} to {self.items[0]}"
        return f"{len(self.items):,} bins, from {self.items[0]!r} to {self.items[-1]!r}"


class UrlPart(Part):
    """Values are addresses. A client reports the site, the host, or the host and the begin of the path."""

    take: Take
    segments: Annotated[int, BeforeValidator(_number)] | None = Field(
        default=None, ge=1, le=MOST_SEGMENTS, description='the most segments of the path; only with take "path"'
    )
    suffixes: tuple[_Suffix, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=MOST_SUFFIXES,
        description='rules of the public suffix list, in rising order; only with take "site"',
    )

    @model_validator(mode="after")
    def _check(self) -> UrlPart:
        for name, given, take in (("segments", self.segments, "path"), ("suffixes", self.suffixes, "site")):
            if (given is not None) != (self.take == take):
                raise ValueError(f'{name}: must be given with take "{take}", and only then')
        if any(later <= earlier for earlier, later in pairwise(self.suffixes or ())):
            raise ValueError("suffixes: must rise from rule to rule")
        return self

    @property
    def needs_hosts(self) -> bool:
        """Whether a policy must name the hosts, because a path of several segments says much about its visitor."""
        return (self.segments or 0) > 1

    @property
    def words(self) -> str:
        """What is asked of an address."""
        if self.segments is None:
            return f"{self.take}s"
        return f"hosts, and of the path {'the first segment' if self.segments == 1 else f'{self.segments} segments'}"

    @cached_property
    def _site_rules(self) -> Suffixes | None:
        return None if self.suffixes is None else Suffixes(frozenset(self.suffixes))

    def item_of(self, url: str, most: int, hosts: Collection[str] | None) -> str:
        """Return the text that stands for a URL (`item_of_url`)."""
        return item_of_url(url, self.segments, self._site_rules, most, hosts)


class WindowsPart(Part):
    """When windows begin, for windows of calendar days, weeks or months: clients need no time zones (docs/adr/0056)."""

    unit: Unit
    starts: tuple[_Start, ...] = Field(
        min_length=2,
        max_length=MOST_STARTS,
        description="in seconds since 1970; the window that begins last ends with the epoch",
    )

    @field_validator("starts")
    @classmethod
    def _rise(cls, given: tuple[int, ...]) -> tuple[int, ...]:
        if any(later <= earlier for earlier, later in pairwise(given)):
            raise ValueError("must rise")
        return given

    @model_validator(mode="after")
    def _are_of_the_unit(self) -> WindowsPart:
        least, most = (int(span.total_seconds()) for span in SPANS[self.unit])
        for earlier, later in pairwise(self.starts):
            if not least <= later - earlier <= most:
                raise ValueError(f"starts: a {self.unit} of {later - earlier} s is listed, must be {least} to {most} s")
        return self


def _divides_day(seconds: int) -> int:
    if DAY_SECONDS % seconds:
        raise ValueError(f"is {seconds}, must divide a day, {DAY_SECONDS}")
    return seconds


PassSeconds = Annotated[
    int,
    Field(ge=3600, le=DAY_SECONDS, description="seconds in which a pass is good: they divide a day"),
    AfterValidator(_divides_day),
]


class PassesPart(Part):
    """Client tokens that an issuer signs: clients have one for each period and party (docs/adr/0053)."""

    seconds: PassSeconds
    first: date = Field(description="the first day with keys, in UTC")
    days: tuple[Hex32, ...] = Field(
        min_length=1, max_length=MOST_PASS_DAYS, description="BLAKE2b-256 of the issuer's public keys of each day"
    )


class DiscoveryPart(Part):
    """Discovery of values that the dictionary lacks."""

    epsilon: float = Field(ge=LEAST_EPSILON, le=LARGEST_EPSILON)
    delta: float = Field(gt=0.0, lt=1.0)
    relation: Relation = "replace-one"
    rule: RuleName = "optimal"
    counts: bool = Field(
        default=False,
        description='whether a revealed value shows its number of reports, with noise; only with rule "optimal"',
    )
    max_value_bytes: int = Field(
        default=USUAL_VALUE_BYTES, ge=1, le=MAX_VALUE_BYTES, description="longest value, in UTF-8 bytes"
    )
    hash: Literal["keyed", "oblivious"] = Field(
        default="keyed",
        description="who can test a guess: whoever has a client's campaign file, or nobody without the evaluator",
    )
    hash_key: Hex32 | None = Field(
        default=None, description="key of the hash by which bins are counted, drawn anew for each campaign file"
    )
    hash_key_commitment: Hex32 | None = Field(
        default=None, description="BLAKE2b-256 of hash_key, in place of it for parties that must not test values"
    )

    @model_validator(mode="after")
    def _check(self) -> DiscoveryPart:
        given = [key for key in (self.hash_key, self.hash_key_commitment) if key is not None]
        if len(given) != (wanted := 1 if self.hash == "keyed" else 0):
            raise ValueError(
                f"hash_key, hash_key_commitment: {len(given)} of them are there, must be {wanted} if hash is "
                f"{self.hash}"
            )
        return self

    @property
    def commitment(self) -> str:
        """A hash of the hash key, which does not reveal the key's 256 random bits; empty if names are not keyed."""
        if self.hash_key is None:
            return self.hash_key_commitment or ""
        return hashlib.blake2b(bytes.fromhex(self.hash_key), digest_size=32, person=b"hash key").hexdigest()
