"""A tally is the same integers whatever the files, blocks, bundles and order the reports come in."""

from __future__ import annotations

import io
import pickle
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from analyzer import tally_reports
from analyzer.tally_reports import SplitRows, Sums, TallyFn, read_part, rows_per_block
from hushcount.arrays import Counts, Reports
from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import tally_items
from hushcount.many_clients import ManyClients
from hushcount.oracles import tally as tally_files
from hushcount.oracles.catalogue import build
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.repeats import BUCKETS, add_repeats, new_repeats
from hushcount.oracles.tally import Tally
from tests.pipelines.conftest import World
from tests.support.jobs import Chain, done, new_campaign
from tests.support.records import SEALED, plain_reports, read_rows, write_rows, write_shuffled
from tests.support.words import SeededWords

BLOCK = 4096


def tally_of(directory: Path, campaign: Campaign) -> Tally:
    with (directory / "tally.npz").open("rb") as stream:
        return tally_files.load(stream, campaign.fingerprint)


def direct_tally(campaign: Campaign, keys: Path, sealed: np.ndarray[Any, Any]) -> Counts:
    """Open and add up without any pipeline, all at once."""
    mechanism = campaign.require_frequency()
    reports, valid = mechanism.unpack(plain_reports(campaign, keys, sealed))
    assert valid.all()
    counts = mechanism.new_tally(tally_items(mechanism))
    mechanism.accumulate(counts, reports, tally_items(mechanism))
    return counts


@pytest.mark.parametrize("name", ["ss", *(pytest.param(name, marks=pytest.mark.long) for name in ("gcms", "open"))])
def test_the_tally_of_analyze_is_the_plain_sum_over_the_shuffled_reports(
    collected: Callable[[str], Chain], name: str
) -> None:
    chain = collected(name)
    sealed = read_rows(chain.path("shuffled") / "reports")
    tally = tally_of(chain.path("results"), chain.campaign)
    assert tally.reports == len(sealed)
    assert np.array_equal(tally.counts, direct_tally(chain.campaign, chain.keys, sealed))
    # Not one less: a report may support no item of the dictionary.
    assert not np.array_equal(tally.counts, direct_tally(chain.campaign, chain.keys, sealed[100:]))


@pytest.mark.long
def test_file_layouts_and_orders_give_the_identical_tally(world: World, tmp_path: Path) -> None:
    """One shuffle of more than two blocks: as it came; reversed; a file a block, in turned order; many odd files."""
    path = new_campaign(tmp_path / "c.json", world.keys, dictionary=world.dictionary)
    campaign = Campaign.read(path)
    sealed = ManyClients(campaign).reports([["alpha", "beta", "nobody"][index % 3] for index in range(2 * BLOCK + 77)])
    cuts = sorted(Random(1).sample(range(1, len(sealed)), 12))
    layouts = {
        "one file": [sealed],
        "reversed": [sealed[::-1]],
        "blocks": [sealed[2 * BLOCK :], sealed[:BLOCK], sealed[BLOCK : 2 * BLOCK]],
        "odd files": np.split(sealed[np.random.default_rng(2).permutation(len(sealed))], cuts),
    }
    expected = direct_tally(campaign, world.keys, sealed)
    for name, parts in layouts.items():
        source = write_shuffled(tmp_path / name, campaign, {"reports": [np.ascontiguousarray(part) for part in parts]})
        out = tmp_path / f"{name} results"
        done("job", "analyze", "--campaign", path, "--input", source, "--keys", world.keys, "--out", out)
        tally = tally_of(out, campaign)
        assert tally.reports == len(sealed)
        assert np.array_equal(tally.counts, expected)


def test_shuffling_changes_no_report(collected: Callable[[str], Chain]) -> None:
    """What is forwarded is what was sent, as a set; so shuffling again, in any layout, gives the identical tally."""
    chain = collected("grr")
    envelopes = read_rows(chain.path("encoded") / "reports")
    sealed = read_rows(chain.path("shuffled") / "reports")
    size = sealed.shape[1]
    assert sorted(row.tobytes()[-size:] for row in envelopes) == sorted(row.tobytes() for row in sealed)
    halves = np.array_split(envelopes[::-1], 3)
    for index, part in enumerate(halves):
        rows = np.ascontiguousarray(part)
        write_rows(chain.path("relaid") / "reports" / f"{index}.blocks", ENVELOPES, rows, chain.campaign)
    chain.shuffle(source="relaid", out="relaid-shuffled")
    results = chain.analyze(source="relaid-shuffled", out="relaid-results")
    first, second = tally_of(chain.path("results"), chain.campaign), tally_of(results, chain.campaign)
    assert np.array_equal(first.counts, second.counts)
    assert first.reports == second.reports


ENVELOPES = type(SEALED["reports"]).REPORT_ENVELOPES


@pytest.mark.long
def test_a_large_pool_is_tallied_in_blocks_of_rows(world: World, tmp_path: Path) -> None:
    """k = 5000, m = 1024: three blocks of rows, which analyze writes and puts together again."""
    path = new_campaign(tmp_path / "c.json", world.keys, "--set", "k=5000", "--set", "m=1024", mechanism="gcms")
    campaign = Campaign.read(path)
    assert 5000 / rows_per_block(campaign.require_frequency(), tally_items(campaign.require_frequency())) > 2
    sealed = ManyClients(campaign).reports([f"value {index % 5}" for index in range(300)])
    source = write_shuffled(tmp_path / "in", campaign, {"reports": [sealed[:100], sealed[100:]]})
    done("job", "analyze", "--campaign", path, "--input", source, "--keys", world.keys, "--out", tmp_path / "out")
    tally = tally_of(tmp_path / "out", campaign)
    assert tally.counts.shape == (5000, 1024)
    assert tally.reports == 300
    assert np.array_equal(tally.counts, direct_tally(campaign, world.keys, sealed))


# The CombineFn without a pipeline.


ALGEBRA = {
    "large pool": build("gcms", 1.0, None, {"k": 5000, "m": 1024, "s": 12, "seed": "7" * 64}),
    "small pool": build("gcms", 1.0, None, {"k": 8, "m": 16, "s": 4, "seed": "7" * 64}),
    "grr": build("grr", 1.0, 20, {}),
    "ss": build("ss", 1.0, 20, {"s": 5}),
    "ocms": build("ocms", 1.0, 20, {"B": 4}),
    "ais": build("ais", 1.0, 20, {"s": 6}),
}


def grouped(mechanism: Mechanism, reports: Reports, random: Random) -> dict[int, Sums]:
    """Add reports up in random bundles, and merge the bundles in a random tree, as an engine might."""
    items = tally_items(mechanism)
    fn, split = TallyFn(mechanism, items), SplitRows(mechanism, items)
    waiting: dict[int, list[Sums]] = {}
    order = list(range(len(reports)))
    random.shuffle(order)
    cuts = [0, *sorted(random.choices(range(len(reports)), k=4)), len(reports)]
    for start, stop in pairwise(cuts):
        for (_, block), part in split.process((0, reports[order[start:stop]])):
            accumulators = waiting.setdefault(block, [])
            if not accumulators or random.random() < 0.3:
                accumulators.append(fn.create_accumulator())
            accumulators[-1] = fn.add_input(accumulators[-1], part)
            if random.random() < 0.5:
                accumulators[-1] = pickle.loads(pickle.dumps(accumulators[-1]))  # noqa: S301  # as an engine does
    totals = {}
    for block, accumulators in waiting.items():
        while len(accumulators) > 1:
            random.shuffle(accumulators)
            taken = [accumulators.pop() for _ in range(min(len(accumulators), random.choice((2, 3))))]
            accumulators.append(fn.merge_accumulators(iter(taken)))
        totals[block] = fn.extract_output(fn.merge_accumulators([accumulators[0], fn.create_accumulator()]))
    return totals


@pytest.mark.parametrize("waiting_bytes", [0, 700, 1 << 23])
@pytest.mark.parametrize("name", ALGEBRA)
@pytest.mark.long(but=("grr-0",))
def test_any_grouping_gives_the_identical_tally(name: str, waiting_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether reports wait to be decoded, in some accumulators or in all."""
    monkeypatch.setattr(tally_reports, "_WAITING_BYTES", waiting_bytes)
    mechanism = ALGEBRA[name]
    items = tally_items(mechanism)
    values = np.arange(600, dtype=np.uint64) % 20
    reports = mechanism.encode(values, SeededWords(11))
    expected, repeats = mechanism.new_tally(items), new_repeats(mechanism)
    mechanism.accumulate(expected, reports, items)
    add_repeats(repeats, mechanism, reports)
    rows = rows_per_block(mechanism, items)
    before = reports.copy()
    for seed in range(5):
        totals = grouped(mechanism, reports, Random(seed))
        counts = np.zeros_like(expected)
        for block, sums in totals.items():
            first, part = block * rows, sums.counts
            height = min(rows, len(counts) - first)
            counts[first : first + height] += part[:height]
            assert not part[height:].any()
        assert sum(sums.reports for sums in totals.values()) == len(reports)
        assert np.array_equal(counts, expected)
        assert np.array_equal(sum(sums.repeats for sums in totals.values()), repeats)
    assert len(totals) == (3 if name == "large pool" else 1)
    assert np.array_equal(reports, before)


def test_merging_changes_at_most_the_first_accumulator(subtests: pytest.Subtests) -> None:
    """Beam may use the others again."""
    for name in (
        "small pool",
        "ais",
    ):
        with subtests.test(name=name):
            mechanism = ALGEBRA[name]
            fn = TallyFn(mechanism, tally_items(mechanism))
            reports = mechanism.encode(np.arange(20, dtype=np.uint64), SeededWords(3))
            parts = [fn.add_input(fn.create_accumulator(), reports[start : start + 5]) for start in range(0, 20, 5)]
            kept = [(sums.reports, sums.counts.copy(), sums.repeats.copy(), list(sums.waiting)) for sums in parts]
            merged = fn.merge_accumulators(parts)
            assert merged.reports == 20
            for sums, (before, copy, repeats, waiting) in zip(parts[1:], kept[1:], strict=True):
                assert sums.reports == before
                assert np.array_equal(sums.counts, copy)
                assert np.array_equal(sums.repeats, repeats)
                assert sums.waiting == waiting
            empty = fn.merge_accumulators([])
            assert empty.reports == 0
            assert not empty.counts.any()
            assert fn.extract_output(merged).counts.any()


def test_a_step_travels_without_the_items_of_a_whole_domain_and_with_any_others() -> None:
    mechanism = build("ais", 1.0, 26_000, {"s": 7000})
    whole, some = tally_items(mechanism), np.array([3, 7, 25_999], dtype=np.uint64)
    reports = mechanism.encode(whole[:200], SeededWords(5))
    sent = [pickle.dumps(TallyFn(mechanism, items)) for items in (whole, some)]
    assert len(sent[0]) < 2000
    for packed, items in zip(sent, (whole, some), strict=True):
        fn = pickle.loads(packed)  # noqa: S301
        expected = mechanism.new_tally(items)
        mechanism.accumulate(expected, reports, items)
        sums = fn.extract_output(fn.add_input(fn.create_accumulator(), reports))
        assert np.array_equal(sums.counts, expected)


def test_a_part_is_read_as_it_was_written() -> None:
    counts = np.arange(6, dtype=np.int64).reshape(2, 3)
    repeats = np.zeros(BUCKETS, dtype=np.int64)
    repeats[5] = 300
    read = read_part(io.BytesIO(Sums(7, counts, repeats).part_bytes()), 6)
    assert (read.reports, read.counts.tolist()) == (7, counts.tolist())
    assert np.array_equal(read.repeats, repeats)


def test_an_accumulator_travels_as_reports_as_long_as_these_are_smaller_than_their_sums() -> None:
    """Each atom of public strata has an accumulator, whose repeats take 8 MiB for any number of reports."""
    mechanism = build("ais", 4.0, 26_000, {"s": 468})
    fn = TallyFn(mechanism, tally_items(mechanism))
    for count, waits in ((25_000, True), (300_000, False)):
        reports = mechanism.encode(np.zeros(count, dtype=np.uint64), SeededWords(7))
        sums = fn.compact(fn.add_input(fn.create_accumulator(), reports))
        assert (bool(sums.waiting), bool(len(sums.repeats))) == (waits, not waits)
        assert len(pickle.dumps(sums)) < min(reports.nbytes, BUCKETS) + 4 * sums.counts.size + 1000
        assert fn.extract_output(sums).repeats.sum() == count


def test_a_process_waits_for_loops_that_load_and_a_failure_is_left_to_the_counting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread's exception would be printed as a traceback; here it is an error of the test."""
    seen = threading.Event()

    def fail(*_: object) -> None:
        assert seen.wait(60)
        raise RuntimeError

    monkeypatch.setattr(Mechanism, "encode", fail)
    before = set(threading.enumerate())
    TallyFn(ALGEBRA["ais"], tally_items(ALGEBRA["ais"])).setup()
    (thread,) = set(threading.enumerate()) - before
    assert not thread.daemon
    seen.set()
    thread.join()


def test_an_accumulator_is_small_on_its_way_and_the_same_after_it() -> None:
    """Counts of a large sketch are small: one byte each, not eight."""
    counts = np.random.default_rng(2).integers(0, 100, (64, 1024))
    sums = Sums(9, counts, np.zeros(BUCKETS, dtype=np.int64))
    sent = pickle.dumps(sums)
    assert len(sent) < counts.size + BUCKETS + 1000
    again = pickle.loads(sent)  # noqa: S301
    assert (again.reports, again.waiting) == (9, [])
    assert again.counts.dtype == np.int64
    assert np.array_equal(again.counts, counts)
    assert again.repeats.dtype == np.int64
