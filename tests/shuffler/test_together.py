"""Many batches in one graph: each has a cap, keys and orders of its own, and of all that meet the first keeps a report.

The twin is a few lines of Python: of one batch after the other, what stays after its cap and no earlier one has.
"""

from __future__ import annotations

import hashlib
import pickle
import struct
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.transforms.window import FixedWindows, IntervalWindow, WindowFn
from hypothesis import given, settings
from hypothesis import strategies as st

from hushcount.arrays import UInt64Array
from hushcount.collection.envelopes import TOKEN_BYTES
from hushcount.randomness import SystemWords
from hushcount.wire.tags import TAG_BYTES
from pipelines.engine.group_through_files import GroupThroughFiles
from pipelines.engine.runner import Engine
from pipelines.files.orders import MOST_TOGETHER, EachInItsWindow, OfOrder, together
from shuffler.cap import RefuseOverCap, cap_key
from shuffler.mix import MixShard
from shuffler.separate import CLAIM, NUMBER, Report, Separate, meeting, tag_keys_of
from shuffler.shuffle import Shuffle
from tests.shuffler.test_cap import claims
from tests.shuffler.test_shuffle import (
    CIPHERTEXTS,
    KEYS,
    SEALED,
    TOKENS,
    after_cap,
    envelopes,
    met,
    numbers,
    outputs,
    plain_tag,
    records,
    run_keys,
)
from tests.support.statistics import FAILURE, chi_square_p, draws_to_tell_apart
from tests.support.words import SeededWords

ON_BEAM = (pytest.mark.beam, pytest.mark.long)
LAST = MOST_TOGETHER - 1


@dataclass(frozen=True)
class Given:
    """What a graph is given.

    Attributes:
        batches: by its number, what came of each: a client's token, and a ciphertext.
        released: by the number of the batch that read them, ciphertexts that were forwarded before.
    """

    batches: dict[int, list[tuple[int, int]]]
    released: dict[int, list[int]] = field(default_factory=dict)
    cap: int = 2
    places: int = 3
    seed: int = 5


@dataclass(frozen=True)
class Gave:
    """What came out: by batch and shard the reports, by batch the counts."""

    shards: dict[tuple[int, int], list[int]]
    counts: dict[int, Counter[str]]


def written(element: Any, directory: str) -> None:
    Path(directory, uuid.uuid4().hex).write_bytes(pickle.dumps(element))


def shuffled(given: Given, meets: WindowFn | None = None, *, in_files: bool = False) -> Gave:
    """Shuffle in one graph under keys that follow from the seed, on the test's engine."""
    with TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        folders = {name: Path(scratch, name) for name in ("shards", "counts", "mixed", "spill")}
        for folder in folders.values():
            folder.mkdir()
        patch.setattr("shuffler.shuffle.SystemWords", lambda: SeededWords(given.seed))
        grouping = GroupThroughFiles(str(folders["spill"])) if in_files else None
        with Engine().pipeline("shuffle") as pipeline:
            read = {"envelopes": blocks(pipeline, "envelopes", given.batches, enveloped)}
            if given.released:
                read["released"] = blocks(pipeline, "released", given.released, alone)
            mixed = (read if given.released else read["envelopes"]) | "shuffle" >> Shuffle(
                Report(SEALED), given.cap, given.places, grouping, meets or together()
            )
            counts = mixed["counts"] | "of which batch" >> beam.ParDo(OfOrder())
            for name, made in {**mixed, "counts": counts}.items():
                _ = made | f"write {name}" >> beam.Map(written, str(folders[name]))
        found = {
            name: [pickle.loads(path.read_bytes()) for path in folder.iterdir()]  # noqa: S301  # written here
            for name, folder in folders.items()
            if name != "spill"
        }
        assert any(folders["spill"].iterdir()) == in_files
    sums: dict[int, Counter[str]] = {number: Counter() for number in given.batches}
    for number, (name, count) in found["counts"] + found["mixed"]:
        sums[number][name] += count
    assert len(dict(found["shards"])) == len(found["shards"])
    return Gave({at: numbers(block) for at, block in found["shards"]}, {number: +each for number, each in sums.items()})


def blocks(pipeline: Any, name: str, batches: dict[int, list[Any]], made: Callable[[list[Any]], bytes]) -> Any:
    """Return the blocks of each batch, two of each, in its window."""
    listed = [
        (number, made(part))
        for number, arrivals in batches.items()
        for part in (arrivals[: len(arrivals) // 2], arrivals[len(arrivals) // 2 :])
    ]
    return pipeline | f"{name} of all" >> beam.Create(listed) | f"windows of {name}" >> EachInItsWindow()


def enveloped(arrivals: Sequence[tuple[int, int]]) -> bytes:
    return envelopes([token for token, _ in arrivals], [number for _, number in arrivals]).tobytes()


def alone(ciphertexts: Sequence[int]) -> bytes:
    return b"".join(number.to_bytes(SEALED, "little") for number in ciphertexts)


# The plain twin.


def own_key(key: bytes, begin: int, end: int) -> bytes:
    """Return the key of a window that is so many seconds after 1970."""
    return hashlib.shake_256(struct.pack("<qq", begin * 10**6, end * 10**6) + key).digest(len(key))


def own_tag_keys(keys: UInt64Array, begin: int, end: int) -> UInt64Array:
    octets = own_key(keys.astype("<u8").tobytes(), begin, end)
    return np.frombuffer(octets, dtype="<u8").astype(np.uint64).reshape(keys.shape)


def plain_together(given: Given) -> Gave:
    """Return what comes out of one batch after the other, in order of their numbers."""
    keys, shards, counts = run_keys(SeededWords(given.seed)), dict[tuple[int, int], list[int]](), {}
    forwarded: dict[int, set[int]] = {}
    for number, arrivals in sorted(given.batches.items()):
        begin = number // MOST_TOGETHER * MOST_TOGETHER
        those = range(begin, begin + MOST_TOGETHER)
        of_all = own_tag_keys(keys.ciphertexts, those.start, those.stop)
        tag = {report: tag_under(report, of_all) for _, report in arrivals}
        kept, over = after_cap(arrivals, given.cap, tag, own_key(keys.cap, number, number + 1))
        before = {one for reader, read in given.released.items() if reader in those for one in read}
        lost = {f"lost_to_{other}": len(kept & forwarded[other]) for other in forwarded if other in those}
        fresh = kept.difference(before, *(forwarded[other] for other in forwarded if other in those))
        forwarded[number] = fresh
        for place in range(given.places):
            shards[number, place] = sorted(one for one in fresh if place_of(one, of_all, given.places) == place)
        rest = len(arrivals) - len(fresh) - over
        counts[number] = +Counter({"accepted": len(fresh), "over_cap": over, "duplicate": rest, **lost})
    return Gave(shards, counts)


def tag_under(number: int, keys: UInt64Array) -> bytes:
    return plain_tag(number.to_bytes(SEALED, "little"), keys)


def place_of(number: int, keys: UInt64Array, places: int) -> int:
    return int.from_bytes(tag_under(number, keys)[:4], "little") % places


def require_as_twin(given: Given, gave: Gave) -> None:
    """Raise AssertionError unless a graph gave what the twin gives, whatever the order within shards, and counted all.

    Each report leaves once: in the first batch in which it stays, of those that meet.
    """
    expected = plain_together(given)
    assert {at: sorted(found) for at, found in gave.shards.items()} == expected.shards
    assert gave.counts == expected.counts
    for number, arrivals in given.batches.items():
        assert sum(gave.counts[number][name] for name in ("accepted", "over_cap", "duplicate")) == len(arrivals)


ARRIVALS = st.lists(st.tuples(st.sampled_from(TOKENS), st.sampled_from(CIPHERTEXTS)), min_size=1, max_size=25)
NUMBERS = st.sampled_from([0, 1, 2, 77, LAST, LAST + 1, LAST + 2, 1000])
"""Of batches; the last three do not meet those before."""
GIVEN = st.builds(
    Given,
    st.dictionaries(NUMBERS, ARRIVALS, min_size=1, max_size=5),
    st.dictionaries(NUMBERS, st.lists(st.sampled_from(CIPHERTEXTS), min_size=1, max_size=4), max_size=2),
    cap=st.integers(1, 4),
    places=st.sampled_from([1, 3]),
    seed=st.integers(0, 1 << 32),
)


@given(given=GIVEN)
def test_each_report_leaves_in_the_first_batch_in_which_it_stays(given: Given) -> None:
    require_as_twin(given, shuffled(given))


COPIED = Given(
    {
        # Ciphertext 4 is over nobody's cap in 0, 5 is in all; 256 sends more than it may in each.
        0: [(1, 4), (1, 5), (1, 5), (256, 6), (256, 7), (256, 8), (256, 9)],
        3: [(2, 4), (3, 5), (256, 6), (256, 7), (256, 8), (256, 9), (4, 11), (5, 11)],
        LAST: [(9, 4), (6, 10), (6, 11), (7, 8), (256, 6), (256, 7), (256, 9)],
        LAST + 1: [(2, 4), (2, 10), (8, 5)],
    },
    {3: [10], LAST: [12]},
)
"""Copies within batches and across, a cap that refuses other reports in each, released ones, and a batch apart."""


@pytest.mark.parametrize("engine", ["plain", pytest.param("beam", marks=ON_BEAM)])
@pytest.mark.parametrize("in_files", [False, True], ids=["through the engine", "through files"])
def test_on_either_engine_and_through_files(engine: str, in_files: bool) -> None:
    for seed in range(6 if engine == "plain" else 2):
        given = replace(COPIED, seed=seed)
        require_as_twin(given, shuffled(given, in_files=in_files))


@pytest.mark.beam
@pytest.mark.long
@settings(max_examples=8)
@given(given=GIVEN)
def test_beam_gives_what_the_twin_does(given: Given) -> None:
    require_as_twin(given, shuffled(given))


def test_of_batches_that_share_no_report_each_gives_what_it_gives_alone() -> None:
    apart = Given({number: [(token, number * 100 + token) for token in range(20)] for number in (0, 1, LAST + 1)})
    gave = shuffled(apart)
    for number, arrivals in apart.batches.items():
        one = shuffled(replace(apart, batches={number: arrivals}))
        assert one.counts == {number: gave.counts[number]}
        assert {at: sorted(found) for at, found in one.shards.items()} == {
            at: sorted(found) for at, found in gave.shards.items() if at[0] == number
        }


def never(records: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.zeros(len(records), dtype=bool)


BROKEN: dict[str, tuple[str, Any]] = {
    "copies of other batches are not looked for": ("shuffler.mix.in_others", never),
    "all batches have one key of the cap": ("shuffler.cap.key_of", lambda key, window: key),
    "all meeting windows have one key of tags": ("shuffler.mix.tag_keys_of", lambda keys, window: keys),
    "a batch's tags are of its own window": ("shuffler.separate.meeting", lambda window, meets: window),
    "what is lost counts for another batch": ("shuffler.mix.LOST_TO", "lost_to_1"),
    "the last batch keeps a report": ("shuffler.mix.sorted", lambda found: sorted(found, reverse=True)),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_kernel_that_is_broken_is_refused(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_as_twin(COPIED, shuffled(COPIED))
    name, wrong = BROKEN[how]
    monkeypatch.setattr(name, wrong, raising=False)
    with pytest.raises(AssertionError):
        require_as_twin(COPIED, shuffled(COPIED))


def test_batches_that_do_not_meet_are_not_compared() -> None:
    """So that the tests above can fail: were these in windows of their own, copies would leave twice."""
    gave = shuffled(COPIED, FixedWindows(1))
    left = Counter(one for found in gave.shards.values() for one in found)
    assert left[4] > 1
    with pytest.raises(AssertionError):
        require_as_twin(COPIED, gave)


# Keys of a batch.

WINDOWS = [IntervalWindow(number, number + 1) for number in (0, 1, LAST, LAST + 1)]


def separated(block: bytes, window: IntervalWindow) -> tuple[dict[int, list[bytes]], dict[int, list[bytes]]]:
    """Return what the first step gives each place of a batch: sealed reports, and client tokens."""
    separate = Separate(Report(SEALED), 3, (KEYS.ciphertexts, KEYS.tokens), together())
    main, tagged = outputs(separate.process(block, window))
    sealed = {place: records(b"".join(found), SEALED) for place, found in met(main).items()}
    claimed = {place: records(b"".join(found), CLAIM.itemsize) for place, found in met(tagged["claims"]).items()}
    return sealed, {place: [claim[:TOKEN_BYTES] for claim in found] for place, found in claimed.items()}


def test_clients_are_spread_anew_in_each_batch_and_copies_meet_in_one_place() -> None:
    """200 clients, and reports, are spread over three places alike with a probability of 3**-200."""
    made = envelopes(range(200), range(200)).tobytes()
    parted = [separated(made, window) for window in WINDOWS]
    assert parted == [separated(made, window) for window in WINDOWS]
    sealed, tokens = zip(*parted, strict=True)
    assert sealed[0] == sealed[1] == sealed[2] != sealed[3]
    assert all(one != other for one, other in permutations(tokens, 2))
    keys = {tag_keys_of(KEYS.ciphertexts, meeting(window, together())).tobytes() for window in WINDOWS}
    assert len(keys) == 2


def test_the_cap_chooses_anew_in_each_batch_and_the_same_when_it_runs_again() -> None:
    """Of 40 clients with six claims each at cap 3 two choices are equal with a probability of 20**-40."""
    made = claims([index // 6 for index in range(240)], range(240)).tobytes()
    step = RefuseOverCap(3, cap_key(SystemWords()), 1)
    chosen = []
    for window in WINDOWS:
        first, again = (
            [
                record
                for _, block in outputs(step.process((0, [made]), window))[0]
                for record in records(block, TAG_BYTES)
            ]
            for _ in range(2)
        )
        assert sorted(first) == sorted(again)
        chosen.append(tuple(sorted(first)))
    assert [len(each) for each in chosen] == [120] * 4
    assert len(set(chosen)) == 4


# Orders of a batch.


def orders_of_two(step: MixShard) -> tuple[tuple[int, ...], ...]:
    """Return in which order the reports 1, 2, 3 of batch 0 and 11, 12, 13 of batch 1 leave."""
    sealed = [NUMBER.pack(number) + alone([10 * number + one for one in (1, 2, 3)]) for number in (0, 1)]
    main, _ = outputs(step.process((0, {"sealed": sealed, "refused": []})))
    assert [at for at, _ in main] == [(0, 0), (1, 0)]
    return tuple(tuple(one % 10 for one in numbers(block)) for _, block in main)


ORDERS = {pair: cell for cell, pair in enumerate(product(permutations((1, 2, 3)), repeat=2))}
ALIKE = np.array([1.0 if one == two else 0.0 for one, two in ORDERS]) / 6
"""The law if both batches had one order."""
UNIFORM = np.ones(36) / 36
DRAWS = draws_to_tell_apart(UNIFORM, 0.7 * UNIFORM + 0.3 * ALIKE)


def test_the_orders_of_two_batches_are_uniform_and_do_not_depend_on_each_other() -> None:
    """Chi-square over the 36 pairs of orders; fails with probability 1e-6.

    Power: batches that have one order in three of ten graphs are rejected.
    """
    step = MixShard(Report(SEALED), KEYS.ciphertexts)
    seen = np.bincount([ORDERS[orders_of_two(step)] for _ in range(DRAWS)], minlength=36)  # type: ignore[index]
    assert chi_square_p(seen, UNIFORM) > FAILURE
    wrong = np.random.default_rng(1).multinomial(DRAWS, 0.7 * UNIFORM + 0.3 * ALIKE)
    assert chi_square_p(wrong, UNIFORM) < FAILURE
