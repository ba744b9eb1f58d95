"""Copies of one discovery report count once, however they come; and what is drawn is drawn before a checkpoint."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aux_server.bins import Bins, bins_of, counted_dtype, in_runs, united
from aux_server.count_bins import CountBins, CountOnce
from aux_server.keep import Keep
from aux_server.open_pairs import OpenPairs
from hushcount.campaigns.campaign import Campaign
from hushcount.draws import Draw
from hushcount.many_clients import ManyClients
from hushcount.randomness import SystemWords
from hushcount.wire.sealing import Octets
from hushcount.wire.tags import TAG_BYTES, tag_keys, tags
from keys.directories import KeyReference
from pipelines.engine.group_through_files import GroupThroughFiles
from pipelines.engine.runner import Engine
from tests.hushcount.campaigns.test_campaign_file import WORDS, data

PAIR = 12
VICTIM = "victim's value"


@pytest.fixture
def campaign() -> Campaign:
    return Campaign.model_validate(data())


# The whole way, by the real transforms: boxes in, counts and kept pairs out.


class Write(beam.DoFn):
    """Write every element to a file of its own."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = str(directory), name

    def process(self, element: object) -> None:
        number = len(list(Path(self._directory).glob(f"{self._name}-*")))
        Path(self._directory, f"{self._name}-{number}").write_text(repr(element))


def release(
    campaign: Campaign, key: KeyReference, blocks: list[Octets], places: int = 3, spill: str | None = None
) -> tuple[dict[str, int], list[bytes]]:
    """Return the summed counts and the kept pairs of one run over these blocks."""
    out = Path(key.source) / "out"
    out.mkdir()
    form = campaign.discovery_format
    with Engine().pipeline("release") as pipeline:
        opened = (
            pipeline
            | beam.Create([block.tobytes() for block in blocks])
            | beam.ParDo(OpenPairs(key, form, places, tag_keys(form.sealed_bytes, SystemWords()))).with_outputs(
                "counts", "dead", main="pairs"
            )
        )
        counted = opened.pairs | CountBins(form.pair_bytes, places, GroupThroughFiles(spill))
        (
            (opened.counts, counted["counts"])
            | beam.Flatten()
            | beam.CombinePerKey(sum)
            | beam.combiners.ToDict()
            | "w" >> beam.ParDo(Write(out, "counts"))
        )
        keep = Keep(campaign.require_keep_rule(), Draw(key, b"any"))
        counted["bins"] | beam.ParDo(keep) | "v" >> beam.ParDo(Write(out, "kept"))
    (counts,) = (eval(path.read_text()) for path in out.glob("counts-*"))  # noqa: S307
    return counts, [eval(path.read_text()) for path in out.glob("kept-*")]  # noqa: S307


def certain(campaign: Campaign) -> int:
    """Return the least count that is kept without a draw."""
    return len(campaign.require_keep_rule().optimal_thresholds) - 1


@pytest.mark.parametrize("by_files", [False, True], ids=["through the engine", "through files"])
def test_one_report_copied_a_thousand_times_reveals_nothing(
    campaign: Campaign, key: KeyReference, by_files: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Kept with the probability of a single report, delta/2 = 5e-7 at most: fails no more often."""
    single = ManyClients(campaign, dictionary=WORDS).discovery_reports([VICTIM])
    assert campaign.require_keep_rule().keep_probability(1) <= 5e-7
    assert certain(campaign) < 1000
    # In one block and over many, because a copy may come anywhere.
    blocks = [np.repeat(single, 400, axis=0), *[single] * 100, np.repeat(single, 500, axis=0)]
    spill = str(tmp_path_factory.mktemp("spill")) if by_files else None
    counts, kept = release(campaign, key, blocks, spill=spill)
    assert counts == {"accepted": 1, "duplicate": 999}
    assert kept == []


def test_as_many_reports_of_clients_of_their_own_do_reveal(campaign: Campaign, key: KeyReference) -> None:
    """So that the test above fails for copies alone, and copies among honest reports cost these nothing."""
    enough = certain(campaign)
    honest = ManyClients(campaign, dictionary=WORDS).discovery_reports([VICTIM] * enough)
    foreign = np.zeros((7, honest.shape[1]), dtype=np.uint8)
    counts, kept = release(campaign, key, [honest[:10], np.concatenate([honest, foreign]), honest[5:]])
    assert counts == {"accepted": enough, "duplicate": 10 + enough - 5, "not_opened": 7}
    form = campaign.discovery_format
    assert [pair[:32] for pair in kept] == [form.hash(VICTIM)]


def test_honest_reports_of_one_value_are_never_equal(campaign: Campaign) -> None:
    """300 boxes of the same pair have 300 tags: equal ones would be a broken generator."""
    sealed = ManyClients(campaign, dictionary=WORDS).discovery_reports([VICTIM] * 300)
    assert len({row.tobytes() for row in tags(sealed, tag_keys(sealed.shape[1], SystemWords()))}) == 300


def test_a_box_that_differs_in_one_bit_has_another_tag_and_does_not_open(campaign: Campaign, key: KeyReference) -> None:
    """A box cannot be altered so that it counts again: of all its bits, each one flipped."""
    (sealed,) = ManyClients(campaign, dictionary=WORDS).discovery_reports([VICTIM])
    bits = np.unpackbits(sealed)
    altered = np.packbits(bits ^ np.eye(len(bits), dtype=np.uint8), axis=1)
    counts, _ = release(campaign, key, [np.concatenate([sealed[None], altered])])
    assert counts == {"accepted": 1, "not_opened": len(bits)}
    tagged = tags(np.concatenate([sealed[None], altered]), tag_keys(len(sealed), SystemWords()))
    assert len({row.tobytes() for row in tagged}) == len(bits) + 1


# Bins of tagged pairs, whatever the order and the blocks.


def record(number: int) -> bytes:
    """A tag and its pair: what is tagged alike holds one pair. Some end in zeros, which byte strings like to drop.

    Pairs of one number modulo 3 share their first eight bytes, as a forger's might with an honest one's.
    """
    name = bytes([number % 3 * 127]).ljust(8, b"\7") + bytes([number % 4])
    return bytes([number, 0]).ljust(TAG_BYTES, b"\0" if number % 2 else b"\xff") + name.ljust(PAIR, b"\0")


def block(numbers: list[int]) -> bytes:
    return b"".join(map(record, numbers))


def counted(bins: Bins) -> dict[bytes, int]:
    rows = np.ascontiguousarray(bins.pairs).view(np.uint8).reshape(-1, PAIR)
    assert len({row.tobytes() for row in rows}) == len(rows)
    return {row.tobytes(): int(count) for row, count in zip(rows, bins.counts, strict=True)}


@given(blocks=st.lists(st.lists(st.integers(0, 40), max_size=25), max_size=8))
@settings(deadline=None)
def test_bins_are_a_set_of_boxes_counted_by_pair(blocks: list[list[int]]) -> None:
    bins = bins_of(b"".join(map(block, blocks)), PAIR)
    distinct = {record(number) for numbers in blocks for number in numbers}
    assert counted(bins) == Counter(each[TAG_BYTES:] for each in distinct)
    assert bins.copies == sum(map(len, blocks)) - len(distinct)
    assert bins.counts.dtype == np.int64


@given(blocks=st.lists(st.lists(st.integers(0, 40), max_size=25), max_size=6), places=st.integers(1, 3))
@settings(deadline=None)
def test_counting_in_two_steps_is_counting_at_once(blocks: list[list[int]], places: int) -> None:
    """Blocks here are places of reports, which share none, so that each is sent there whole."""
    length, parts = 40, CountOnce(40, places, tag_keys(40, SystemWords()))
    rows = [[(place, number) for number in numbers] for place, numbers in enumerate(blocks)]

    def tagged(rows: list[tuple[int, int]]) -> bytes:
        return b"".join(
            bytes([place, number]).ljust(TAG_BYTES) + bytes([number % 5]) * length for place, number in rows
        )

    met: dict[int, bytes] = {}
    copies = 0
    for each in rows:
        for result in parts.process((0, [tagged(each)])):
            if isinstance(result, beam.pvalue.TaggedOutput):
                copies += result.value[1] if result.value[0] == "duplicate" else 0
            else:
                met[result[0]] = met.get(result[0], b"") + result[1]
    whole = bins_of(tagged([row for each in rows for row in each]), length)
    found = [united(block, length) for block in met.values()]
    pairs = Counter({pair: int(count) for bins in found for pair, count in zip(bins.pairs, bins.counts, strict=True)})
    assert pairs == dict(zip(whole.pairs, whole.counts.tolist(), strict=True))
    assert sum(len(bins.pairs) for bins in found) == len(whole.pairs)
    assert copies == whole.copies


def test_half_of_all_reports_of_one_value_make_no_place_heavy() -> None:
    """What meets: reports evenly, by their own tags, and of the value one record from each place."""
    count, places, pair_bytes = 20_000, 8, 60
    generator = np.random.default_rng(5)
    rows = generator.integers(0, 256, (count, TAG_BYTES + pair_bytes), dtype=np.uint8)
    rows[: count // 2, TAG_BYTES:] = 7
    received: Counter[int] = Counter()
    for place in range(places):
        mine = rows[place::places]
        parts = CountOnce(pair_bytes, places, tag_keys(pair_bytes, SystemWords()))
        for where, block in parts.process((0, [mine.tobytes()])):
            received[where] += len(block) // counted_dtype(pair_bytes).itemsize
    # Half of the reports, which all differ, and eight records of the value.
    assert sum(received.values()) == count // 2 + places
    assert max(received.values()) < 2 * count / 2 / places


def test_forged_pairs_under_one_hash_make_no_place_heavy() -> None:
    """A forger chooses the hash of its pairs, and whatever else it chooses does not tell where they meet."""
    count, places, pair_bytes = 20_000, 8, 60
    rows = np.random.default_rng(6).integers(0, 256, (count, TAG_BYTES + pair_bytes), dtype=np.uint8)
    rows[:, TAG_BYTES:-8] = 7
    parts = CountOnce(pair_bytes, places, tag_keys(pair_bytes, SystemWords()))
    received = Counter[int]()
    for where, block in parts.process((0, [rows.tobytes()])):
        received[where] += len(block) // counted_dtype(pair_bytes).itemsize
    assert sum(received.values()) == count
    assert max(received.values()) < 2 * count / places


def test_forged_pairs_that_share_eight_bytes_are_kept_apart_among_honest_ones() -> None:
    """The order by eight bytes alone would mix them; every run of equal pairs is whole, and in one piece."""
    generator = np.random.default_rng(3)
    honest = generator.integers(0, 256, (200, 40), dtype=np.uint8)
    forged = honest[generator.integers(0, 200, 400)]
    forged[:, 8:] = generator.integers(0, 2, (400, 1), dtype=np.uint8)
    rows = np.concatenate([honest, honest, forged])[generator.permutation(800)]
    pairs = np.ascontiguousarray(rows).view("S40").reshape(-1)
    ordered = in_runs(pairs)[1]
    runs = 1 + int((ordered[1:] != ordered[:-1]).sum())
    assert runs == len({row.tobytes() for row in rows})
    assert sorted(ordered.tolist()) == sorted(pairs.tolist())
