"""The campaign: one collection's public parameters in one validated, immutable file with a fingerprint."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr, field_validator, model_validator

from hushcount.arrays import UInt64Array
from hushcount.campaigns.axes import AxesPart
from hushcount.campaigns.dictionary import MOST_ITEMS, Dictionary, in_random_order, other_item, read_dictionary
from hushcount.campaigns.parts import (
    COLLECTOR,
    DAY_SECONDS,
    MOST_COLLECTORS,
    MOST_PASSES_A_DAY,
    DictionaryPart,
    DiscoveryPart,
    Identifier,
    MechanismPart,
    NoisePart,
    NumberPart,
    PassesPart,
    SamplePart,
    ShufflePart,
    UrlPart,
    WindowsPart,
)
from hushcount.campaigns.public_keys import KeysPart, valid_key
from hushcount.discovery.keep_rules import KeepRule
from hushcount.discovery.pairs import DiscoveryFormat, released_bytes
from hushcount.errors import UsageError
from hushcount.formats.canonical_json import canonical_json
from hushcount.formats.models import Hex32, Part
from hushcount.formats.reading import parse_model, read_file
from hushcount.formats.unicode13 import VERSION, Version
from hushcount.formats.whole_files import write_once
from hushcount.items import MOST_ITEM_BYTES, canonical
from hushcount.oracles.catalogue import MEANS, build, frequency_oracle
from hushcount.oracles.encoders.line import Line
from hushcount.oracles.mechanism import Mechanism
from hushcount.strata import STRATUM_BYTES, Cells, Where
from hushcount.window_starts import USUAL, WINDOW_BYTES, Starts
from hushcount.wire.sealing import SEAL_BYTES

BINDING_BYTES = 16
GREATEST_EPOCH = (1 << 31) - 1  # what a database holds
_NO_DISCOVERY = "campaign {} carries no discovery reports; set --discovery-epsilon for a new one"
Stream = Literal["reports", "discovery"]
"""The names of the two streams of a campaign, which are also the names of the streams' folders."""


def head_of(previous: bytes | None, fingerprint: bytes) -> bytes:
    """Return the head of a log after an epoch; `previous` is the head before this epoch, None for the first epoch."""
    return hashlib.blake2b((previous or bytes(32)) + fingerprint, digest_size=32, person=b"campaign log").digest()


def bound_bytes(content: int) -> int:
    """Return the length of a box of so many bytes and the binding before them."""
    return BINDING_BYTES + content + SEAL_BYTES


class Campaign(Part):
    """One collection: frequency reports, discovery reports, or both as two separate streams."""

    format: Literal[2] = 2
    id: Identifier
    epoch: int = Field(default=1, ge=1, le=GREATEST_EPOCH)
    previous: Hex32 | None = Field(
        default=None, description="head of the campaign's log before this epoch; absent in the first"
    )
    mechanism: MechanismPart | None = Field(default=None, description="how clients randomise their values")
    noise: NoisePart | None = Field(default=None, description="noise of the mixes, in place of a mechanism")
    dictionary: DictionaryPart | None = Field(default=None, description="absent: with a mechanism, the open domain")
    number: NumberPart | None = Field(default=None, description="values are numbers; absent: texts")
    url: UrlPart | None = Field(default=None, description="values are addresses; absent: texts or numbers")
    memory: bool = Field(default=False, description="whether clients keep their answer to a value for the epoch")
    memory_values: int = Field(
        default=1, ge=1, le=1000, description="how many values a client remembers; further ones get the last answer"
    )
    shuffle: ShufflePart = Field(default_factory=ShufflePart)
    discovery: DiscoveryPart | None = None
    sample: SamplePart | None = Field(default=None, description="which clients are asked; absent: all")
    passes: PassesPart | None = Field(
        default=None, description="tokens that an issuer signs; absent: each client makes its own"
    )
    axes: AxesPart | None = Field(default=None, description="what clients are broken down by; absent: nothing")
    windows: WindowsPart | None = Field(
        default=None, description="when windows begin; absent: windows have the length that the app states"
    )
    collectors: tuple[Identifier, ...] = Field(
        default=(COLLECTOR,),
        min_length=1,
        max_length=MOST_COLLECTORS,
        description="names of the collectors that take reports; a client derives its token from the name of its own",
    )
    keys: KeysPart
    unicode: Version = Field(default=VERSION, description="version of Unicode that defines the NFC of values")

    _path: Path | None = PrivateAttr(default=None)

    @field_validator("collectors")
    @classmethod
    def _different(cls, named: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(named)) < len(named):
            raise ValueError(f"are {', '.join(named)}, must be different names")
        return named

    @model_validator(mode="after")
    def _check(self) -> Campaign:
        wrong = []
        if not self.streams:
            wrong.append("mechanism, noise, discovery: at least one of them must be given")
        if not self.streams and self.dictionary is not None:
            wrong.append("dictionary: is of no use without a mechanism, noise or discovery")
        wrong += [*self._wrong_of_numbers(), *self._wrong_of_urls(), *self._wrong_of_axes(), *self._wrong_of_noise()]
        if self.memory and self.mechanism is None and self.noise is None:
            wrong.append("memory: is of no use without a mechanism, because discovery reports hold no noise")
        if self.memory_values > 1 and not self.memory:
            wrong.append(f"memory_values: is {self.memory_values}, must be 1 if memory is false")
        if self.discovery is not None and not self.keys.aux_server:
            wrong.append("keys.aux_server: discovery needs the auxiliary server's key")
        if bool(self.keys.evaluator) != self.is_oblivious:
            needed = "one key with an oblivious hash" if self.is_oblivious else "no key without an oblivious hash"
            wrong.append(f"keys.evaluator: holds {len(self.keys.evaluator)} keys, must hold {needed}")
        if self.passes is not None and self.windows is not None:
            wrong.append("passes: a pass is good for whole windows, which calendar windows are not: leave one out")
        if self.passes is not None and (number := self.passes_a_day) > MOST_PASSES_A_DAY:
            wrong.append(f"passes: a client would need {number} a day, must be at most {MOST_PASSES_A_DAY}")
        wrong += [
            f"keys.{role}: {len(listed)} keys, must be one; put a new key into the next epoch's file"
            for role, listed in self.keys
            if len(listed) > 1
        ]
        shared = {key.id for key in self.keys.analyzer} & {key.id for key in self.keys.aux_server}
        if shared:
            wrong.append(f"keys: {', '.join(sorted(shared))} is of both roles, so one party could open both layers")
        for name in ("frequency", "keep_rule"):
            try:
                getattr(self, name)
            except ValueError as error:
                wrong.append(str(error))
            # Delete the cached value, because a copy with changed fields would keep the mechanism and the rule of this
            # campaign.
            self.__dict__.pop(name, None)
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    def _wrong_of_numbers(self) -> Iterator[str]:
        number, is_line = self.number, self.mechanism is not None and self.mechanism.name in MEANS
        if self.noise is not None and number is not None and number.mean:
            yield "noise: number.mean must be false, because mixes add dummies to items: give bins"
        elif is_line != (number is not None and number.mean):
            yield f"mechanism: must be {' or '.join(MEANS)} for a mean of numbers, and only then"
        if number is None:
            return
        if "reports" not in self.streams or self.dictionary is None:
            yield "number: needs a dictionary, and a mechanism or noise"
        elif not self.dictionary.is_of(Dictionary(in_random_order(number.items))):
            yield "dictionary: must list the names of the number's bins in random order, or of the upper end for a mean"
        if self.discovery is not None:
            yield "number: discovery is of no use, because all numbers are known"

    def _wrong_of_urls(self) -> Iterator[str]:
        if self.url is None:
            return
        if self.number is not None:
            yield "url: must be left out if values are numbers"
        if self.url.segments is not None and self.discovery is not None and not self.is_oblivious:
            yield 'url: paths can be guessed, so their discovery must have the hash "oblivious"'

    def _wrong_of_axes(self) -> Iterator[str]:
        if self.axes is None:
            return
        if "reports" not in self.streams or self.dictionary is None:
            yield "axes: need a dictionary, and a mechanism or noise"
        elif self.axes.private.axes and self.number is not None and self.number.mean:
            yield "axes: a mean has public ones only"
        elif (cells := (self.dictionary.items + 1) * len(self.axes.strata)) > MOST_ITEMS:
            yield (
                f"axes: {cells:,} cells of items and strata, must be at most {MOST_ITEMS:,}: list fewer items or "
                "coordinates"
            )
        elif self.mechanism is not None and frequency_oracle(self.mechanism.name).seeded:
            yield f"axes: {self.mechanism.name} adds cells up to a sketch: take another mechanism, such as ais"

    def _wrong_of_noise(self) -> Iterator[str]:
        if self.noise is None:
            return
        if self.mechanism is not None:
            yield "noise: a campaign has a mechanism or noise, not both"
        if self.dictionary is None:
            yield "noise: needs a dictionary, because mixes add dummies to every item"
        if self.public_strata > 1:
            yield "noise: public axes are not covered by dummies: make the axes private"
        if self.memory:
            yield "noise: memory must be false, because a report has no answer to remember"
        if self.shuffle.minimum_batch != 1:
            yield f"noise: shuffle.minimum_batch is {self.shuffle.minimum_batch}, must be 1, so that no batch waits"
        if not self.keys.aux_server:
            yield "keys.aux_server: noise needs the auxiliary server's key"
        if (self.noise.seconds is None) == (self.windows is None):
            yield "noise: seconds, or windows that are listed, must state the length of windows, and not both"

    def cells_of(self, groups: Sequence[UInt64Array], where: Sequence[Where] = ()) -> list[UInt64Array]:
        """Return the cells of groups of the dictionary's items, uint64[size] each; `other` is an item too.

        Args:
            where: for each group, the coordinates of the strata, on private axes; none: all strata.

        Raises:
            UsageError: the campaign lacks private axes, an axis or a coordinate.
        """
        items = 0 if self.dictionary is None else self.dictionary.items
        return self.require_axes().cells_of(items, groups, where)

    def require_axes(self) -> AxesPart:
        """Return what clients are broken down by; UsageError: nothing."""
        if self.axes is None:
            raise UsageError(f"campaign {self.id} has no axes: leave --by and --where out, or make one with --by")
        return self.axes

    @property
    def has_cells(self) -> bool:
        """Whether the mechanism counts cells of items and strata, as there are private axes; else it counts items."""
        return self.axes is not None and bool(self.axes.private.axes)

    def require_cells(self) -> Cells:
        """Return the numbers of the cells of items and private strata; UsageError: the campaign has no axes."""
        return self.require_axes().cells(0 if self.dictionary is None else self.dictionary.items)

    @property
    def public_strata(self) -> int:
        """The number of strata of the public axes."""
        return 1 if self.axes is None else len(self.axes.public)

    def stratum_bytes(self, stream: Stream) -> int:
        """Return the length of the public stratum before each sealed report of a stream; 0 without public axes."""
        return STRATUM_BYTES if stream == "reports" and self.public_strata > 1 else 0

    @property
    def other(self) -> int:
        """The reserved item "other", of all values that are not listed; in an open domain no text has its number."""
        if self.has_cells and self.dictionary is not None:
            return self.dictionary.items
        return other_item(self.require_frequency())

    @property
    def axis_names(self) -> tuple[str, ...]:
        """The names of the axes, in the order of the file; empty without axes."""
        return self.axes_that_are(public=None)

    def axes_that_are(self, *, public: bool | None) -> tuple[str, ...]:
        """Return the names of the public axes, of the private ones, or of all (None), in the order of the file."""
        return () if self.axes is None else self.axes.named(public=public)

    @property
    def cells_an_item(self) -> int:
        """The number of cells whose counts add up to that of an item: the private strata."""
        return 1 if self.axes is None else len(self.axes.private)

    @property
    def domain(self) -> int | None:
        """The number of cells that the mechanism counts, with "other"; None: the open domain."""
        if self.dictionary is None:
            return None
        return len(self.require_cells()) if self.has_cells else self.dictionary.items + 1

    def item_of(self, value: str, hosts: Collection[str] | None = None) -> str:
        """Return the item that a client reports for a value: a number's bin, a part of a URL, or the value in its NFC.

        Args:
            hosts: of URLs, the only hosts whose addresses are told; None: all.
        """
        if self.url is not None:
            most = MOST_ITEM_BYTES if self.discovery is None else self.discovery.max_value_bytes
            return self.url.item_of(value, most, hosts)
        return canonical(value) if self.number is None else self.number.bins.name_of(value)

    def is_too_long(self, value: str) -> bool:
        """Return whether the item of a value has more bytes than discovery allows; UsageError without discovery."""
        return len(self.item_of(value).encode(errors="surrogatepass")) > self.discovery_format.max_value_bytes

    @cached_property
    def frequency(self) -> Mechanism | None:
        """The mechanism of the frequency reports; None if the campaign carries only discovery reports."""
        part, domain = self.mechanism, self.domain
        if self.noise is not None and domain is not None:
            return self.noise.mechanism(domain, self.shuffle.cap)
        try:
            return None if part is None else build(part.name, part.epsilon, domain, part.parameters)
        except ValueError as error:
            raise ValueError(f"mechanism: {error}") from None

    @cached_property
    def keep_rule(self) -> KeepRule | None:
        """The rule by which the auxiliary server decides which bins to keep; None if there is no discovery."""
        part = self.discovery
        try:
            if part is None:
                return None
            return KeepRule(part.rule, part.epsilon, part.delta, part.relation, self.shuffle.cap, part.counts)
        except ValueError as error:
            raise ValueError(f"discovery: {error}") from None

    @property
    def heading(self) -> str:
        """The id, as it stands in the headings of results; with noise of the mixes it says that reports are sealed."""
        return self.id if self.noise is None else f"{self.id} (sealed, not randomised)"

    @property
    def local_epsilon(self) -> float | None:
        """The local epsilon of one frequency report; None: clients do not randomise, or make no frequency reports."""
        return None if self.mechanism is None else self.require_frequency().epsilon

    @property
    def epoch_epsilon(self) -> float | None:
        """The local epsilon of all frequency reports of a client in the epoch; None (no bound) without a memory."""
        return self.memory_values * self.require_frequency().epsilon if self.memory else None

    @cached_property
    def fingerprint(self) -> bytes:
        """BLAKE2b-256 of the campaign file without the dictionary's path, and with a commitment for the hash key."""
        return hashlib.blake2b(canonical_json(self._fixed()), digest_size=32).digest()

    @property
    def terms(self) -> bytes:
        """BLAKE2b-256 of all fields that a publisher may not change from one epoch to the next (`Delegation`).

        The publisher may change the dictionary, the mechanism's parameters and the hash key, but nothing that raises a
        client's cost. The delegation lists the evaluator's keys that the publisher may name. The publisher may list
        when more windows of the same unit begin. It may add days to the keys of passes: with keys of its own it could
        let forgers in, but not link clients, who all see one log.
        """
        data = self._fixed()
        for name in ("epoch", "previous"):
            data.pop(name, None)
        if self.dictionary is not None:
            data["dictionary"] = {}
        if self.mechanism is not None:
            del data["mechanism"]["parameters"]
        if self.discovery is not None:
            data["discovery"].pop("hash_key_commitment", None)
        if self.passes is not None:
            data["passes"] = {"seconds": self.passes.seconds}
        if self.windows is not None:
            data["windows"] = {"unit": self.windows.unit}
        del data["keys"]["evaluator"]
        return hashlib.blake2b(canonical_json(data), digest_size=32, person=b"campaign terms").digest()

    @property
    def path(self) -> Path | None:
        """The file that this campaign was read from; None if it was not read from a file."""
        return self._path

    @property
    def head(self) -> bytes:
        """The head of the campaign's log with this epoch: a hash of this campaign file and of all earlier ones."""
        return head_of(None if self.previous is None else bytes.fromhex(self.previous), self.fingerprint)

    def _fixed(self) -> dict[str, Any]:
        data = self.model_dump(mode="json", exclude_none=True)
        if self.dictionary is not None:
            del data["dictionary"]["path"]
        if self.discovery is not None:
            data["discovery"].pop("hash_key", None)
            if not self.is_oblivious:
                data["discovery"]["hash_key_commitment"] = self.discovery.commitment
        return data

    def binding(self, stream: Stream) -> bytes:
        """Return the 16 bytes that every plain report of a stream begins with."""
        return hashlib.blake2b(self.fingerprint, digest_size=BINDING_BYTES, person=stream.encode()).digest()

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams that this campaign carries."""
        counts = self.mechanism is not None or self.noise is not None
        frequency: tuple[Stream, ...] = ("reports",) if counts else ()
        return (*frequency, "discovery") if self.discovery is not None else frequency

    def reaches_minimum(self, reports: int) -> bool:
        """Return whether `reports` reports of one stream reach the minimum batch, below which no result is released.

        Args:
            reports: number of reports of one stream in one batch, without copies and reports over the cap.

        Privacy: a report hides among the other reports of its batch. The shuffler checks the minimum batch before it
            forwards reports. The shuffler cannot tell forged reports from honest ones, so each party that opens reports
            checks the minimum batch again, and counts only the reports that it accepted.
        """
        return reports >= self.shuffle.minimum_batch

    def hides_among(self, reports: int) -> int:
        """Return among how many of a batch's frequency reports each one hides: with public axes the minimum batch only.

        With public axes these are the reports of its atom, and they are honest only if senders are authenticated.
        """
        return reports if self.public_strata == 1 else min(reports, self.shuffle.minimum_batch)

    def sealed_bytes(self, stream: Stream) -> int:
        """Return the length of every report of a stream as it is sent: its public stratum or window, and its box."""
        if stream == "discovery":
            return self.discovery_format.sealed_bytes
        if self.noise is not None:
            return WINDOW_BYTES + self.layer_bytes
        return self.stratum_bytes(stream) + self.box_bytes

    @property
    def box_bytes(self) -> int:
        """The length of the box of a frequency report that only the analyzer opens."""
        return bound_bytes(self.require_frequency().report_bytes)

    @property
    def layer_bytes(self) -> int:
        """With noise, the length of the box around it that only the auxiliary server opens."""
        return bound_bytes(WINDOW_BYTES + self.box_bytes)

    def require_line(self) -> Line:
        """The line on which clients place their numbers; UsageError: the campaign asks for no mean."""
        line = self.require_frequency().encoder.line
        if line is None:
            raise UsageError(f"campaign {self.id} asks for no mean: make one with --number LOW:HIGH --mean")
        return line

    def require_frequency(self) -> Mechanism:
        """Return the mechanism; UsageError if the campaign carries no frequency reports."""
        if self.frequency is None:
            raise UsageError(f"campaign {self.id} carries no frequency reports, only discovery")
        return self.frequency

    def require_keep_rule(self) -> KeepRule:
        """Return the keep rule; UsageError if the campaign carries no discovery reports."""
        if self.keep_rule is None:
            raise UsageError(_NO_DISCOVERY.format(self.id))
        return self.keep_rule

    def require_whole(self) -> None:
        """Raise UsageError if there is no discovery, or this file withholds the key of the discovery hash."""
        if self.discovery is None:
            raise UsageError(_NO_DISCOVERY.format(self.id))
        if self.discovery.hash_key_commitment is not None:
            raise UsageError(
                f"this file of campaign {self.id} is redacted and holds no hash key: it is for the shuffler and the "
                "auxiliary server; give the file that is not redacted"
            )

    @property
    def asked(self) -> float:
        """The share of all clients that the campaign asks, in (0, 1]."""
        return 1.0 if self.sample is None else self.sample.share

    @property
    def passes_a_day(self) -> int:
        """How many passes each client asks for a day: one for each period, of its collector and of the evaluator."""
        return 0 if self.passes is None else DAY_SECONDS // self.passes.seconds * (1 + self.is_oblivious)

    @property
    def is_oblivious(self) -> bool:
        """Whether names of values are made with an evaluator; otherwise they are made with the campaign's hash key."""
        return self.discovery is not None and self.discovery.hash == "oblivious"

    def require_evaluator_key(self) -> bytes:
        """Return the evaluator's public key, 32 bytes; UsageError if the key is not valid now."""
        return bytes.fromhex(valid_key(self.keys.evaluator).key)

    def redacted(self) -> Campaign:
        """Return this campaign without the key of the discovery hash; its fingerprint is the same.

        The shuffler and the auxiliary server can do all their work with the redacted file. Without the hash key these
        two parties cannot test a guessed value against the hashes. All clients have the key, so it is not secret from a
        party that colludes with a client. A campaign with an evaluator has no hash key, so its file is returned
        unchanged.
        """
        if self.discovery is None or self.is_oblivious:
            return self
        data = self.model_dump(mode="json")
        data["discovery"] |= {"hash_key": None, "hash_key_commitment": self.discovery.commitment}
        campaign = Campaign.model_validate(data)
        campaign._path = self._path
        return campaign

    @property
    def discovery_format(self) -> DiscoveryFormat:
        """The layout of discovery reports, with an empty hash key if the file has none; UsageError: no discovery."""
        part = self.discovery
        if part is None:
            raise UsageError(_NO_DISCOVERY.format(self.id))
        return DiscoveryFormat(self.binding("discovery"), bytes.fromhex(part.hash_key or ""), part.max_value_bytes)

    @property
    def released_bytes(self) -> int:
        """The length of every record that the auxiliary server releases; UsageError without discovery."""
        return released_bytes(self.discovery_format, self.require_keep_rule().counts)

    @property
    def usual_window(self) -> timedelta | None:
        """The length of most windows, or of the shortest month; None: this file does not state it."""
        if self.windows is not None:
            return USUAL[self.windows.unit]
        return None if self.noise is None else timedelta(seconds=self.noise.seconds or 0)

    def starts(self, length: timedelta) -> Starts:
        """Return when windows begin: as this file states it, or else by the length that the app states."""
        fixed = 0 if self.noise is None else self.noise.seconds
        return Starts(fixed or int(length.total_seconds()), () if self.windows is None else self.windows.starts)

    def read_dictionary(self) -> Dictionary | None:
        """Read the dictionary beside the campaign file; None: the open domain; UsageError: it is missing or wrong."""
        if self.dictionary is None:
            return None
        path = (Path() if self._path is None else self._path.parent) / self.dictionary.path
        if not path.exists():
            raise UsageError(f"the campaign's dictionary {path} is missing: put it beside the campaign file")
        dictionary = read_dictionary(path, self.dictionary.items)
        if not self.dictionary.is_of(dictionary):
            # The error reveals nothing of the file's content, because any file may have the dictionary's name.
            raise UsageError(f"dictionary {path} is not the campaign's: replace it by the one that came with the file")
        return dictionary

    @classmethod
    def read(cls, path: Path | str) -> Campaign:
        """Read a campaign file; UsageError if it is not valid: the message names each wrong field and its error."""
        path = Path(path)
        campaign = parse_model(cls, read_file(path, "campaign file"), f"campaign file {path}")
        campaign._path = path
        return campaign

    def text(self) -> str:
        """Return the content of a campaign file."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True), indent=2) + "\n"

    def write(self, path: Path) -> None:
        """Write the campaign to a new file; UsageError if the file exists or its name does not end in .json."""
        if path.suffix != ".json":
            raise UsageError(f"campaign file is {path}, must end in .json")
        there = "exists: a campaign file never changes, give another name"
        write_once(path, "campaign file", self.text(), if_there=there)
