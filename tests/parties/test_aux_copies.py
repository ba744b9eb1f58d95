"""Copies of one discovery report count once, however they come; and what is drawn is drawn before a checkpoint."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.transforms.util import Reshuffle
from hypothesis import given, settings
from hypothesis import strategies as st

from aux_server.bins import Bins
from aux_server.boxes import MARK_BYTES, Boxes, boxes_of, mark, unite
from aux_server.count_bins import CountBins, CountCopies
from aux_server.keep import Keep
from aux_server.open_pairs import OpenPairs
from hushcount.campaign import Campaign
from hushcount.client import Client
from hushcount.sealing import Octets
from keys.store import KeyReference
from pipelines.discover import _release_graph
from pipelines.runner import Engine
from tests.parties.test_campaign_file import WORDS, data

PAIR = 5
VICTIM = "victim's value"


@pytest.fixture
def campaign() -> Campaign:
    return Campaign.model_validate(data())


@pytest.fixture
def key(tmp_path: Path, campaign: Campaign) -> KeyReference:
    """The auxiliary server's key file, which is that of the campaign."""
    record = {"role": "aux_server", "id": campaign.keys.aux_server[0].id, "secret": (bytes([2]) * 32).hex()}
    path = tmp_path / "aux_server.key"
    path.write_text(json.dumps(record))
    path.chmod(0o600)
    return KeyReference(str(tmp_path), "aux_server")


# The whole way, by the real transforms: boxes in, counts and kept pairs out.


class Write(beam.DoFn):
    """Write every element to a file of its own."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = str(directory), name

    def process(self, element: object) -> None:
        number = len(list(Path(self._directory).glob(f"{self._name}-*")))
        Path(self._directory, f"{self._name}-{number}").write_text(repr(element))


def release(
    campaign: Campaign, key: KeyReference, blocks: list[Octets], partitions: int = 3
) -> tuple[dict[str, int], list[bytes]]:
    """Return the summed counts and the kept pairs of one run over these blocks."""
    out = Path(key.directory) / "out"
    out.mkdir()
    form = campaign.discovery_format
    with Engine().pipeline("release") as pipeline:
        opened = (
            pipeline
            | beam.Create([block.tobytes() for block in blocks])
            | beam.ParDo(OpenPairs(key, form, partitions)).with_outputs("counts", "dead", main="pairs")
        )
        bins = opened.pairs | beam.CombinePerKey(CountBins(form.pair_bytes))
        copies = bins | beam.ParDo(CountCopies())
        (
            (opened.counts, copies)
            | beam.Flatten()
            | beam.CombinePerKey(sum)
            | beam.combiners.ToDict()
            | "w" >> beam.ParDo(Write(out, "counts"))
        )
        bins | beam.ParDo(Keep(campaign.require_keep_rule())) | "v" >> beam.ParDo(Write(out, "kept"))
    (counts,) = (eval(path.read_text()) for path in out.glob("counts-*"))  # noqa: S307
    return counts, [eval(path.read_text()) for path in out.glob("kept-*")]  # noqa: S307


def certain(campaign: Campaign) -> int:
    """Return the least count that is kept without a draw."""
    return len(campaign.require_keep_rule().optimal_thresholds) - 1


def test_one_report_copied_a_thousand_times_reveals_nothing(campaign: Campaign, key: KeyReference) -> None:
    """Kept with the probability of a single report, delta/4 = 2.5e-7 at most: fails no more often."""
    single = Client(campaign, WORDS).discovery_reports([VICTIM])
    assert campaign.require_keep_rule().keep_probability(1) <= 2.5e-7
    assert certain(campaign) < 1000
    # In one block and over many, because a copy may come anywhere.
    blocks = [np.repeat(single, 400, axis=0), *[single] * 100, np.repeat(single, 500, axis=0)]
    counts, kept = release(campaign, key, blocks)
    assert counts == {"accepted": 1, "duplicate": 999}
    assert kept == []


def test_as_many_reports_of_clients_of_their_own_do_reveal(campaign: Campaign, key: KeyReference) -> None:
    """So that the test above fails for copies alone, and copies among honest reports cost these nothing."""
    enough = certain(campaign)
    honest = Client(campaign, WORDS).discovery_reports([VICTIM] * enough)
    foreign = np.zeros((7, honest.shape[1]), dtype=np.uint8)
    counts, kept = release(campaign, key, [honest[:10], np.concatenate([honest, foreign]), honest[5:]])
    assert counts == {"accepted": enough, "duplicate": 10 + enough - 5, "not_opened": 7}
    form = campaign.discovery_format
    assert [pair[:32] for pair in kept] == [form.hash(VICTIM)]


def test_honest_reports_of_one_value_are_never_equal(campaign: Campaign) -> None:
    """300 boxes of the same pair have 300 marks: equal ones would be a broken generator."""
    sealed = Client(campaign, WORDS).discovery_reports([VICTIM] * 300)
    assert len({row.tobytes() for row in mark(sealed)}) == 300


def test_a_box_that_differs_in_one_bit_has_another_mark_and_does_not_open(
    campaign: Campaign, key: KeyReference
) -> None:
    """A box cannot be altered so that it counts again: of all its bits, each one flipped."""
    (sealed,) = Client(campaign, WORDS).discovery_reports([VICTIM])
    bits = np.unpackbits(sealed)
    altered = np.packbits(bits ^ np.eye(len(bits), dtype=np.uint8), axis=1)
    counts, _ = release(campaign, key, [np.concatenate([sealed[None], altered])])
    assert counts == {"accepted": 1, "not_opened": len(bits)}
    assert len({row.tobytes() for row in mark(altered)} | {mark(sealed[None]).tobytes()}) == len(bits) + 1


# Boxes: sets of marks by bin, whatever the order and the grouping.


def record(number: int) -> bytes:
    """A mark and its pair: what is marked alike holds one pair. Some end in zeros, which byte strings like to drop."""
    name = bytes([number % 3 * 127, number % 4])
    return bytes([number, 0]).ljust(MARK_BYTES, b"\0" if number % 2 else b"\xff") + name.ljust(PAIR, b"\0")


def block(numbers: list[int]) -> bytes:
    return b"".join(map(record, numbers))


def counted(bins: Bins) -> dict[bytes, int]:
    rows = np.ascontiguousarray(bins.pairs).view(np.uint8).reshape(-1, PAIR)
    return {row.tobytes(): int(count) for row, count in zip(rows, bins.counts, strict=True)}


def plain(blocks: list[list[int]]) -> dict[bytes, int]:
    distinct = {record(number) for numbers in blocks for number in numbers}
    return dict(Counter(each[MARK_BYTES:] for each in distinct))


def same(one: Boxes, other: Boxes) -> bool:
    arrays = ((one.pairs, other.pairs), (one.marks, other.marks), (one.owners, other.owners))
    return one.copies == other.copies and all(np.array_equal(left, right) for left, right in arrays)


numbers = st.lists(st.lists(st.integers(0, 40), max_size=25), min_size=3, max_size=8)


@given(blocks=numbers)
@settings(deadline=None)
def test_uniting_is_a_set_of_boxes_counted_by_pair(blocks: list[list[int]]) -> None:
    parts = [boxes_of(block(each), PAIR) for each in blocks]
    total = boxes_of(b"", PAIR)
    for part in parts:
        total = unite(total, part)
    assert counted(total.bins) == plain(blocks)
    assert total.copies == sum(map(len, blocks)) - len(total.marks)
    assert total.bins.counts.dtype == np.int64
    one, two, three = parts[:3]
    assert same(unite(one, two), unite(two, one))
    assert same(unite(unite(one, two), three), unite(one, unite(two, three)))
    assert same(unite(one, boxes_of(b"", PAIR)), one)


@given(blocks=numbers, cut=st.integers(0, 8))
@settings(deadline=None)
def test_any_grouping_of_the_combiner_gives_the_same_bins(blocks: list[list[int]], cut: int) -> None:
    combine = CountBins(PAIR)
    accumulators = []
    for part in (blocks[:cut], blocks[cut:]):
        accumulator = combine.create_accumulator()
        for each in part:
            accumulator = combine.add_input(accumulator, block(each))
        accumulators.append(accumulator)
    before = [[boxes.marks.copy() for boxes in each] for each in accumulators]
    bins = combine.extract_output(combine.merge_accumulators(accumulators))
    assert counted(bins) == plain(blocks)
    assert bins.copies == sum(map(len, blocks)) - int(bins.counts.sum())
    for each, copies in zip(accumulators, before, strict=True):
        assert all(np.array_equal(boxes.marks, old) for boxes, old in zip(each, copies, strict=True))


def test_memory_is_a_pair_a_bin_and_twenty_bytes_a_report() -> None:
    """20,000 reports in 12 bins, each sent three times: nothing more is held, in at most a logarithm of parts."""
    combine, length = CountBins(200), 20_000
    accumulator = combine.create_accumulator()
    marks = np.arange(length, dtype=">u8")
    for _ in range(3):
        for part in np.split(marks, 50):
            rows = np.zeros((len(part), MARK_BYTES + 200), dtype=np.uint8)
            rows[:, :8] = part.view(np.uint8).reshape(-1, 8)
            rows[:, MARK_BYTES] = part % 12 + 1
            accumulator = combine.add_input(accumulator, rows.tobytes())
            assert len(accumulator) <= 10
    total = combine.merge_accumulators([accumulator])
    boxes = [each for each in total if len(each.marks) == length]
    assert [each.pairs.nbytes + each.marks.nbytes + each.owners.nbytes for each in boxes] == [12 * 200 + 20 * length]
    bins = combine.extract_output(total)
    assert bins.copies == 2 * length
    assert bins.counts.sum() == length


# The checkpoint.


def test_the_draw_has_one_consumer_and_that_is_a_checkpoint(campaign: Campaign, key: KeyReference) -> None:
    """In the graph that hushcount discover runs: what follows may run twice, and never sees two draws."""
    pipeline = beam.Pipeline()
    _release_graph(pipeline, campaign, key, [], key.directory, None)
    consumers: dict[str, list[str]] = {}
    steps = pipeline.to_runner_api().components.transforms
    for step in steps.values():
        if not step.subtransforms:
            for source in step.inputs.values():
                consumers.setdefault(source, []).append(step.unique_name)
    (keep,) = [step for step in steps.values() if step.unique_name == "keep"]
    (drawn,) = keep.outputs.values()
    (checkpoint,) = [step for step in steps.values() if step.unique_name == "drawn once"]
    assert checkpoint.spec.urn == Reshuffle().to_runner_api_parameter(None)[0]
    assert list(checkpoint.inputs.values()) == [drawn]
    assert all(name.startswith("drawn once/") for name in consumers[drawn])
    assert consumers[drawn]
