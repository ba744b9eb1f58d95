"""The input of measured stages: a campaign, and the files that the hop before would have written."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from nacl.bindings import crypto_box_afternm, crypto_box_beforenm, crypto_box_keypair, crypto_box_NONCEBYTES

from hushcount import report_making
from hushcount.campaigns.axes import AxesPart
from hushcount.campaigns.campaign import Campaign, Stream
from hushcount.campaigns.parts import NoisePart
from hushcount.campaigns.public_keys import valid_key
from hushcount.collection.envelopes import ENVELOPES, TOKEN_BYTES, envelope_dtype, sealed_offset
from hushcount.formats.reading import validated
from hushcount.many_clients import ManyClients
from hushcount.oracles.parameters import Parameters
from hushcount.randomness import SystemWords, hex_seed, permutation, uniform
from hushcount.senders import Senders
from hushcount.strata import stratum_numbers, stratum_octets
from hushcount.threads import available_threads
from hushcount.wire.blocks import Kind
from hushcount.wire.sealing import Octets, Sealer
from keys import directories
from keys.opening_engines import sealing_for
from pipelines.files import storage
from pipelines.files.block_files import write_file
from pipelines.jobs.new_campaign import create_campaign
from pipelines.outputs.counts import SEALED, StreamCounts
from pipelines.outputs.staging import SUMMARY
from pipelines.outputs.summary import Atom, make_summary

FILE_RECORDS = 1 << 17
AXIS = "version"
"""The name of the public axis of a campaign that has one."""
NOISE = "noise"
_ZIPF_UNIT = 1 << 40


@dataclass(frozen=True)
class Setting:
    """A campaign to measure.

    Attributes:
        mechanism: a frequency oracle's name; NOISE for noise of the mixes at epsilon and a delta of 1e-8; or None for
            discovery alone.
        items: size of the dictionary, "other" included; None for the open domain.
        epsilon: local budget.
        settings: parameters of the mechanism that are fixed.
        strata: number of public strata, "other" included; 1: no public axis.
    """

    mechanism: str | None
    items: int | None
    epsilon: float = 1.0
    settings: Parameters | None = None
    strata: int = 1

    def over(self, items: int) -> Setting:
        """Return the setting with a dictionary of another size; an open domain stays open."""
        return self if self.items is None else replace(self, items=items)


@dataclass(frozen=True)
class Place:
    """A campaign on disk: `campaign.json`, `keys/`, `items.txt`, and the output of `as_shuffled` and `as_uploaded`."""

    directory: Path

    @property
    def campaign_path(self) -> Path:
        return self.directory / "campaign.json"

    @property
    def keys(self) -> Path:
        return self.directory / "keys"

    @property
    def shuffled(self) -> str:
        return str(self.directory / "shuffled")

    @property
    def uploaded(self) -> str:
        return str(self.directory / "uploaded")

    @property
    def campaign(self) -> Campaign:
        return Campaign.read(self.campaign_path)


def make_place(directory: Path, setting: Setting, cap: int = 1) -> Place:
    """Make keys and campaign in a new directory."""
    directory.mkdir(parents=True)
    place = Place(directory)
    dictionary = None
    if setting.items is not None:
        dictionary = directory / "items.txt"
        dictionary.write_text("".join(f"{item}\n" for item in names(setting.items - 1)))
    public, axes = directories.create(place.keys, days=1), None
    if setting.strata > 1:
        listed = [{"name": AXIS, "public": True, "values": coordinates(setting.strata - 1)}]
        axes = validated(AxesPart, {"listed": listed, "key": hex_seed(SystemWords())}, "the benchmark")
    has_mechanism = setting.mechanism not in (None, NOISE)
    campaign = create_campaign(
        "bench",
        public,
        directory,
        mechanism=setting.mechanism if has_mechanism else None,
        epsilon=setting.epsilon if has_mechanism else None,
        noise=NoisePart(epsilon=setting.epsilon, delta=1e-8, seconds=86_400) if setting.mechanism == NOISE else None,
        dictionary=dictionary,
        axes=axes,
        settings=setting.settings,
        shuffle={"cap": cap, "minimum_batch": 1},
        discovery={"epsilon": 1.0, "delta": 1e-8} if setting.mechanism is None else None,
    )
    campaign.write(place.campaign_path)
    return place


def names(count: int) -> list[str]:
    """Return `count` different values."""
    return [f"item{number}" for number in range(count)]


def drawn(values: list[str], count: int) -> list[str]:
    """Return `count` values, each drawn uniformly."""
    return [values[index] for index in uniform(len(values), count, SystemWords()).tolist()]


def zipf(values: int, count: int) -> npt.NDArray[np.intp]:
    """Return intp[count]: the value of each report, below `values`, by Zipf's law and in random order.

    Each value occurs at least once, as far as half of the reports allow: so there is a tail that no keep rule reveals.
    """
    words = SystemWords()
    tail = np.arange(min(values, count // 2))
    # Whole numbers in proportion to 1 / rank.
    weights = np.cumsum(_ZIPF_UNIT // np.arange(1, values + 1, dtype=np.uint64), dtype=np.uint64)
    places = uniform(int(weights[-1]), count - len(tail), words)
    held = np.concatenate([tail, np.searchsorted(weights, places, side="right")])
    return held[permutation(count, words)]


def coordinates(count: int) -> list[str]:
    """Return `count` different coordinates."""
    return [f"v{number}" for number in range(count)]


def sealed(place: Place, stream: Stream, values: list[str]) -> Octets:
    """Return uint8[n, L]: the sealed reports of clients with these values, one for each value, in any strata.

    With noise these are the boxes inside the layer for the auxiliary server.
    """
    campaign = place.campaign
    if campaign.noise is not None:
        items = report_making.items_for(campaign, campaign.read_dictionary(), values)
        sealer = Sealer(bytes.fromhex(valid_key(campaign.keys.analyzer).key), sealing_for(len(values)))
        answers = report_making.drawn(campaign, items)
        return report_making.sealed(
            campaign, answers, report_making.strata_for(campaign, len(values)), sealer, available_threads()
        )
    client = ManyClients(place.campaign, seal_rows=sealing_for(len(values)))
    if stream == "discovery":
        return client.discovery_reports(values, available_threads())
    by = [{AXIS: one} for one in drawn(coordinates(place.campaign.public_strata), len(values))]
    return client.reports(values, available_threads(), by)


def sealed_pairs(place: Place, held: npt.NDArray[np.intp]) -> Iterator[Octets]:
    """Yield uint8[n, L], the discovery reports of clients that hold these values, as many as fit into one file.

    A client draws a key pair for each report, which costs as much as opening the report. Here the first holders of all
    values share one key pair, the second holders another, and so on: no two reports are equal, and all cost the same to
    open. An attacker could see which reports share a key pair, which does not matter in a benchmark.
    """
    form, keys = place.campaign.discovery_format, place.campaign.keys
    analyzer = Sealer(bytes.fromhex(valid_key(keys.analyzer).key))
    ranks, row = np.unique(held, return_inverse=True)
    plain = [
        form.binding + form.hash(value) + analyzer.seal_alike(form.binding + form.pad(value), form.hash_key)
        for value in (f"new{rank}" for rank in ranks)
    ]
    turn = _turns(held)
    recipient = bytes.fromhex(valid_key(keys.aux_server).key)
    shared = [_shared(recipient) for _ in range(int(turn.max()) + 1)]
    for start in range(0, len(held), FILE_RECORDS):
        some = slice(start, start + FILE_RECORDS)
        made = (
            head + crypto_box_afternm(plain[number], nonce, key)
            for number, (head, nonce, key) in zip(row[some], (shared[number] for number in turn[some]), strict=True)
        )
        yield np.frombuffer(b"".join(made), dtype=np.uint8).reshape(-1, form.sealed_bytes)


def _turns(held: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return for each report the number of earlier reports with the same value."""
    order = np.argsort(held, kind="stable")
    turn = np.empty(len(held), dtype=np.intp)
    turn[order] = np.arange(len(held)) - np.searchsorted(held[order], held[order])
    return turn


def _shared(recipient: bytes) -> tuple[bytes, bytes, bytes]:
    """Return a new public key, and the nonce and key of sealed boxes that are made with it (crypto_box_seal)."""
    public, secret = crypto_box_keypair()
    nonce = hashlib.blake2b(public + recipient, digest_size=crypto_box_NONCEBYTES).digest()
    return public, nonce, crypto_box_beforenm(recipient, secret)


def counts(total: int, each: int) -> list[int]:
    """Return the number of records for each file, if a file holds at most `each` records."""
    return [min(each, total - start) for start in range(0, total, each)]


def as_shuffled(place: Place, stream: Stream, parts: Iterable[Octets]) -> str:
    """Write sealed reports as the output of the hop before, each part to a file; return the directory.

    With noise, half of the reports count as dummies.
    Each public stratum has reports, so the numbers of strata are those of atoms too.
    Opening a box costs the same each time, so parts may repeat if the stage does not search for copies.
    """
    out = place.shuffled
    campaign, in_strata = place.campaign, Counter[int]()

    def records() -> Iterator[bytes]:
        for part in parts:
            if campaign.stratum_bytes(stream):
                in_strata.update(stratum_numbers(part).tolist())
            yield part.tobytes()

    length = campaign.sealed_bytes(stream) if campaign.noise is None else campaign.box_bytes
    written = _write(place, storage.join(out, stream), SEALED[stream], records(), length)
    hop, dummies = ("shuffle", None) if campaign.noise is None else ("mix", written // 2)
    reports = written - (dummies or 0)
    counts = {stream: StreamCounts(reports, reports, {})}
    summary = make_summary(hop, campaign, counts, None, senders=Senders("client-token"))
    listed = tuple(Atom((stratum,), reports) for stratum, reports in sorted(in_strata.items()))
    storage.write_json(storage.join(out, SUMMARY), replace(summary, atoms=listed, dummies=dummies).data())
    return out


def as_uploaded(place: Place, reports: int, each: int) -> str:
    """Write random bytes in the form of envelopes, as a collector would; return the directory.

    The shuffler cannot read a report, so random bytes cost it as much as real reports.

    Args:
        place: the campaign.
        reports: number of reports.
        each: reports of one client, on average.
    """
    length, words = place.campaign.sealed_bytes("reports"), SystemWords()
    dtype, start = envelope_dtype(length), sealed_offset(length)
    clients = np.uint64(max(1, reports // each))

    def parts() -> Iterator[bytes]:
        for number, count in enumerate(counts(reports, FILE_RECORDS)):
            octets = words.words(-(-count * dtype.itemsize // 8)).view(np.uint8)[: count * dtype.itemsize]
            envelopes = octets.view(dtype)
            tokens = np.zeros((count, 2), dtype="<u8")
            tokens[:, 0] = np.arange(number * FILE_RECORDS, number * FILE_RECORDS + count, dtype=np.uint64) % clients
            envelopes["client_token"] = tokens.view(f"S{TOKEN_BYTES}").reshape(-1)
            if told := place.campaign.stratum_bytes("reports"):
                strata = uniform(place.campaign.public_strata, count, words)
                octets.reshape(count, -1)[:, start : start + told] = stratum_octets(strata)
            yield envelopes.tobytes()

    _write(place, storage.join(place.uploaded, "reports"), ENVELOPES["reports"], parts(), dtype.itemsize)
    return place.uploaded


def _write(place: Place, directory: str, kind: Kind, parts: Iterable[bytes], record_bytes: int) -> int:
    """Write each part to a file, and return the number of records."""
    campaign, written = place.campaign, 0
    for number, records in enumerate(parts):
        path = storage.join(directory, f"part-{number:05d}.blocks")
        write_file(path, kind, record_bytes, records, campaign.fingerprint, campaign.id)
        written += len(records) // record_bytes
    return written
