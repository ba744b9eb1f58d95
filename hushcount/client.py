"""The client: a value in, a sealed report of one fixed length out."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime, timezone

import numpy as np
import numpy.typing as npt

from hushcount.allowance import Allowance
from hushcount.arrays import UInt64Array
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.delegation import CampaignSignature, read_campaign_signature
from hushcount.campaigns.dictionary import Dictionary, items_of
from hushcount.campaigns.log import CampaignLog
from hushcount.campaigns.public_keys import PublicKeyPart, valid_key
from hushcount.campaigns.signatures import signature_path
from hushcount.discovery.pairs import HASH_BYTES, DiscoveryFormat
from hushcount.errors import HushcountError, UsageError
from hushcount.items import canonical, fault_of_text
from hushcount.memory import KEY_BYTES, Memory
from hushcount.newest import Untrusted
from hushcount.policy import Policy
from hushcount.randomness import SystemWords
from hushcount.wire.sealing import SEAL_BYTES, Octets, Sealer, SealRows, seal_rows

_SALT_BYTES, _NAME_END = 16, 32
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Client:
    """Privatises and seals values of one client for one campaign. Holds no secret; threads may share it.

    Args:
        campaign: from `Campaign.read`.
        policy: what the client demands of the campaign. It is checked before anything is made, and that the keys that
            vouch have not expired, before each report.
        signature: the campaign's; by default read from beside the campaign file.
        log: the campaign's log, for a client that missed an epoch.
        dictionary: the campaign's; by default read from beside the campaign file.
        memory: where the client keeps its answers, if the campaign says that clients remember, and only then. If it is
            uncapped, it may go without: each value is then of another client, which remembers nothing yet.
        allowance: counts what this client makes, up to the campaign's cap of each stream in each window. By default
            windows are days, and the count ends with the process; `Allowance(window, path)` keeps it in a file.
        uncapped: count nothing, in a process that makes many clients' reports, such as a load test. The guarantees for
            one client then do not hold for whoever sends more.
        seal_rows: what seals, by default libsodium. Such a process may give another that makes the same boxes faster.

    Raises:
        Untrusted: the policy refuses the campaign.
        UsageError: no policy was given, a memory is missing or one too many, the dictionary is missing or another one,
            no key of the campaign is valid now, or the campaign file is one without the key of the discovery hash.

    Privacy: a frequency report is epsilon-locally private, replace-one. A discovery report hides its value only as
        long as the auxiliary server and the analyzer do not collude, and within the (epsilon, delta) of the keep rule;
        from the auxiliary server it hides only values that it cannot guess. A client that sends both pays for both.
        Without a memory, sending the same value again spends the budget again. With one, all frequency reports of a
        campaign's epoch together spend k epsilon, for k = `memory_values` different values; all values outside the
        dictionary count as one. A further value, or one that the memory has no room for, is answered as the last of
        them, because silence would tell. The price: shuffling gains nothing, and the analyzer sees which reports are
        alike, in one batch or in many, which for k above 1 tells when a value changed. The shuffler sees no link.
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
    uncapped: bool = False
    seal_rows: SealRows = seal_rows
    _vouched_until: datetime | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.campaign, Campaign):
            raise UsageError(
                f"campaign is a {type(self.campaign).__name__}, must be a Campaign: give Campaign.read(path)"
            )
        if not isinstance(self.policy, Policy):
            raise UsageError(
                f"policy is {self.policy!r}, must say what this client demands of a campaign: give policy="
                'Policy.read("policy.json", Newest("newest.json")), from the file of hushcount campaign policy'
            )
        if self.memory is not None and not (hasattr(self.memory, "get") and hasattr(self.memory, "keep")):
            raise UsageError(f"memory is a {type(self.memory).__name__}, must be a memory: give FileMemory(path)")
        if self.campaign.memory and self.memory is None and not self.uncapped:
            raise UsageError(
                f"campaign {self.campaign.id} is of clients that remember: give a memory, as in "
                "Client(campaign, policy=policy, memory=FileMemory(path))"
            )
        if self.memory is not None and not self.campaign.memory:
            raise UsageError(
                f"campaign {self.campaign.id} is of clients that do not remember: give no memory, or make the campaign "
                "with hushcount campaign new --memory"
            )
        if self.campaign.discovery is not None:
            self.campaign.require_hash_key()
        listed = self.campaign.dictionary
        if self.dictionary is None:
            object.__setattr__(self, "dictionary", self.campaign.read_dictionary())
        elif listed is None:
            raise UsageError("a dictionary was given, and the campaign has none: its domain is open")
        elif not listed.is_of(self.dictionary):
            raise UsageError("the dictionary is not the campaign's: give the one that came with it")
        object.__setattr__(self, "_vouched_until", self._accepted(self.policy))

    def _accepted(self, policy: Policy) -> datetime | None:
        """Let the policy check the campaign, and return when the keys that vouch expire."""
        if policy.trusts:
            if not self.uncapped:
                _LOG.warning(
                    "a client of campaign %s believes any campaign file: Policy.trusting() is for tests",
                    self.campaign.id,
                )
            return None
        signature = self.signature
        if signature is None and self.campaign.path is not None:
            beside = signature_path(self.campaign.path)
            signature = read_campaign_signature(beside) if beside.exists() else None
        return policy.accept(self.campaign, signature, self.log)

    def report(self, value: str) -> bytes:
        """Return one sealed frequency report; "other" for a value outside the dictionary or no item (`items`)."""
        return self.reports([value]).tobytes()

    def reports(self, values: Sequence[str], threads: int = 1) -> Octets:
        """Return uint8[n, L]: one sealed frequency report for each value, all of the same length.

        Raises:
            OverCap: they are more than this client may make in this window.
            HushcountError: the memory cannot be read, or has no answer of this epoch and cannot keep one; whatever the
                values are.
        """
        texts = [_text(value) for value in values]
        items = items_of(self.campaign.require_frequency(), self.dictionary, texts)
        recipient = self._sealer(self.campaign.keys.analyzer)
        self._take("reports", len(values))
        packed = self._drawn(items) if self.memory is None else self._remembered(items, self.memory)
        binding = np.frombuffer(self.campaign.binding("reports"), dtype=np.uint8)
        head = np.broadcast_to(binding, (len(packed), len(binding)))
        return recipient.seal_many(np.concatenate([head, packed], axis=1), threads)

    def discovery_report(self, value: str | None) -> bytes:
        """Return one sealed discovery report; None stands for "nothing to discover"; raises as `discovery_reports`."""
        return self.discovery_reports([value]).tobytes()

    def discovery_reports(self, values: Sequence[str | None], threads: int = 1) -> Octets:
        """Return uint8[n, L]: one sealed discovery report for each value, all of the same length.

        There is nothing to discover in a value that the dictionary lists, or that is no item, such as the empty string
        or one with a control character (`items.fault_of_text`). Such a report carries a random hash and no value:
        every client sends one, so that sending tells nothing.

        Raises:
            OverCap: they are more than this client may make in this window.
            UsageError: a value is longer than the campaign allows; its length is named, never the value. An app that
                then sends nothing tells the shuffler so; one that sends `discovery_report(None)` does not.
        """
        texts = [None if value is None else _text(value) for value in values]
        form, recipient = self.campaign.discovery_format, self._sealer(self.campaign.keys.analyzer)
        wanted, rows = _each_once([text if self._is_new(text) else None for text in texts])
        plain = _pairs(form, recipient, wanted, threads)
        outer = self._sealer(self.campaign.keys.aux_server)
        self._take("discovery", len(values))
        return outer.seal_many(plain[rows], threads)

    def _sealer(self, keys: tuple[PublicKeyPart, ...]) -> Sealer:
        until, now = self._vouched_until, datetime.now(timezone.utc)
        if until is not None and now >= until:
            raise Untrusted(
                f"the keys that vouch for campaign {self.campaign.id} were valid until {until.isoformat()}, and it is "
                f"{now.isoformat()}: fetch the newest campaign and its signature"
            )
        return Sealer(bytes.fromhex(valid_key(keys).key), self.seal_rows)

    def _take(self, stream: Stream, number: int) -> None:
        if not self.uncapped:
            self.allowance.take(self.campaign, stream, number)

    def _drawn(self, items: UInt64Array) -> Octets:
        mechanism = self.campaign.require_frequency()
        return mechanism.pack(mechanism.encode(items, SystemWords()))

    def _remembered(self, items: UInt64Array, memory: Memory) -> Octets:
        """Return uint8[n, report_bytes]: the one answer to each item in this campaign."""
        distinct, place = np.unique(items, return_inverse=True)
        answers = np.zeros((len(distinct), self.campaign.require_frequency().report_bytes), dtype=np.uint8)
        for row, item in zip(answers, distinct, strict=True):
            answer = self._answer(int(item), memory)
            if len(answer) != len(row):
                raise UsageError(f"the memory holds an answer of {len(answer)} bytes, the campaign's have {len(row)}")
            row[:] = np.frombuffer(answer, dtype=np.uint8)
        return answers[place.reshape(-1)]

    def _answer(self, item: int, memory: Memory) -> bytes:
        """Return the one answer to an item, drawn if a place is free for it; else that of the last place.

        A place that cannot be kept is no place: to raise only for an item without an answer would tell.
        """
        last = b""
        for place in range(self.campaign.memory_values):
            key = _place_key(self.campaign, place)
            found = memory.get(key)
            if found is None:
                salt = SystemWords().words(_SALT_BYTES // 8).tobytes()
                drawn = self._drawn(np.array([item], dtype=np.uint64)).tobytes()
                # Two threads that draw at the same time both take what was kept first.
                try:
                    found = memory.keep(key, salt + _name(item, salt) + drawn)
                except HushcountError:
                    if not last:
                        raise
                    break
            last = found
            if last[_SALT_BYTES:_NAME_END] == _name(item, last[:_SALT_BYTES]):
                break
        return last[_NAME_END:]

    def _is_new(self, value: str | None) -> bool:
        """Return whether there is something to discover; a value that is too long is refused later."""
        if value is None or (self.dictionary is not None and value in self.dictionary):
            return False
        return fault_of_text(value) is None


def _place_key(campaign: Campaign, place: int) -> bytes:
    """Return the key of a place for an answer, which only this campaign and epoch has."""
    named = campaign.fingerprint + place.to_bytes(8, "little")
    return hashlib.blake2b(named, digest_size=KEY_BYTES, person=b"reports").digest()


def _name(item: int, salt: bytes) -> bytes:
    """Return the salted name of the item of an answer: no two memories name an item alike."""
    return hashlib.blake2b(item.to_bytes(8, "little"), digest_size=_NAME_END - _SALT_BYTES, salt=salt).digest()


def _pairs(form: DiscoveryFormat, recipient: Sealer, values: list[str | None], threads: int) -> Octets:
    """Return uint8[n, L]: the binding, hash and inner box of each value."""
    named = [_hash_and_key(form, value) for value in values]
    heads = _rows((form.binding + bin_hash for bin_hash, _ in named), len(form.binding) + HASH_BYTES)
    inner = _rows((form.binding + form.pad(value) for value in values), form.sealed_value_bytes - SEAL_BYTES)
    return np.concatenate([heads, recipient.seal_many_alike(inner, [key for _, key in named], threads)], axis=1)


def _hash_and_key(form: DiscoveryFormat, value: str | None) -> tuple[bytes, bytes]:
    """Return a value's hash and the key of its inner box; of None, random ones that no other report has."""
    if value is None:
        fresh = SystemWords().words(8).tobytes()
        return fresh[:HASH_BYTES], fresh[HASH_BYTES:]
    return form.hash(value), form.hash_key


def _rows(parts: Iterable[bytes], length: int) -> Octets:
    return np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, length)


def _each_once(values: Sequence[str | None]) -> tuple[list[str | None], npt.NDArray[np.intp]]:
    """Return the different values, and the index of each; every None counts as another value."""
    places: dict[str, int] = {}
    wanted: list[str | None] = []
    rows = np.empty(len(values), dtype=np.intp)
    for row, value in enumerate(values):
        rows[row] = len(wanted) if value is None else places.setdefault(value, len(wanted))
        if rows[row] == len(wanted):
            wanted.append(value)
    return wanted, rows


def _text(value: str) -> str:
    """Return the canonical spelling of a value."""
    if not isinstance(value, str):
        raise UsageError(f"a value is a {type(value).__name__}, must be a str")
    return canonical(value)
