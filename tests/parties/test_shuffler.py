"""The shuffler's parts: copies are dropped, the cap is exact, its choice and the permutation are uniform."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, permutations
from typing import Any, ClassVar

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import TaggedOutput

from hushcount.envelopes import envelope_dtype
from hushcount.randomness import SystemWords
from shuffler.cap import CapAndStrip, capped, first_copies
from shuffler.deduplicate import DropDuplicates
from shuffler.partition import PartitionBy, hash_keys, span_hash
from shuffler.permute import DrawShard, PermuteShard, permuted
from shuffler.shuffle import Shuffle
from tests.support.statistics import FAILURE, chi_square_p, draws_to_tell_apart

SEALED = 20


def envelopes(tokens: Sequence[int], sealed: Sequence[int], times: Sequence[int] | None = None) -> np.ndarray:
    """Return envelopes with numbers for tokens and ciphertexts, some with zero bytes at their end."""
    made = np.zeros(len(tokens), dtype=envelope_dtype(SEALED))
    made["client_token"] = [token.to_bytes(16, "little") for token in tokens]
    made["sealed"] = [number.to_bytes(SEALED, "little") for number in sealed]
    made["received_ms"] = times if times is not None else np.arange(len(tokens))
    made["address"] = np.frombuffer(
        b"".join(b"\xfd" + (token >> 8).to_bytes(15, "big") for token in tokens), dtype="V16"
    )
    return made


def numbers(block: bytes) -> list[int]:
    """Return the ciphertexts of a block of sealed reports as the numbers that they stand for."""
    return [int.from_bytes(block[start : start + SEALED], "little") for start in range(0, len(block), SEALED)]


def outputs(results: Iterable[Any]) -> tuple[list[Any], dict[str, list[Any]]]:
    """Return what a DoFn gave: main outputs, and the others by tag."""
    main, tagged = [], {}
    for result in results:
        if isinstance(result, TaggedOutput):
            tagged.setdefault(result.tag, []).append(result.value)
        else:
            main.append(result)
    return main, tagged


# Duplicates.


def test_a_clients_own_retries_neither_fill_its_cap_nor_are_drawn_for_it() -> None:
    """Four reports, one of them sent 1,000 times, cap 3: were copies drawn, the others would hardly ever stay.

    The single reports are each left out with probability 1/4; that none is in 200 runs has probability below 1e-24.
    """
    made = envelopes([7] * 1003 + [8], [5] * 1000 + [1, 2, 3, 5])
    seen: Counter[int] = Counter()
    for _ in range(200):
        main, tagged = outputs(CapAndStrip(SEALED, 3).process((0, [made[:500].tobytes(), made[500:].tobytes()])))
        kept = numbers(main[0])
        # The other client's copy of 5 is another client's report here: equal ciphertexts meet later.
        assert len(kept) == 4
        seen.update(set(kept))
        assert dict(tagged["counts"]) == {"duplicate": 999, "over_cap": 1}
    assert seen[5] == 200
    assert all(0 < seen[number] < 200 for number in (1, 2, 3))


def test_equal_ciphertexts_become_one_and_are_counted() -> None:
    sealed = envelopes([1] * 5, [256, 256, 0, 256, 1 << 159])["sealed"]
    main, tagged = outputs(DropDuplicates(SEALED).process((0, [sealed[:2].tobytes(), sealed[2:].tobytes()])))
    (block,) = main
    assert sorted(numbers(block)) == [0, 256, 1 << 159]
    assert tagged == {"counts": [("accepted", 3), ("duplicate", 2)]}


def test_reports_that_differ_in_one_bit_are_no_duplicates() -> None:
    base = 1 << 159
    made = envelopes([3] * 161, [base, *(base ^ (1 << bit) for bit in range(160))])
    assert len(first_copies(made)) == 161
    assert len(first_copies(np.concatenate([made, made]))) == 161
    main, tagged = outputs(DropDuplicates(SEALED).process((0, [made["sealed"].tobytes()] * 2)))
    assert len(numbers(main[0])) == 161
    assert dict(tagged["counts"]) == {"accepted": 161, "duplicate": 161}


# The cap.


def pairs_law(weight: float = 1.0) -> np.ndarray:
    """Return the law of two drawn of six arrivals, the first of them `weight` times as likely as any other."""
    weights = np.array([weight, 1.0, 1.0, 1.0, 1.0, 1.0])
    law = []
    for one, two in combinations(range(6), 2):
        total = weights.sum()
        law.append(
            weights[one] / total * weights[two] / (total - weights[one])
            + weights[two] / total * weights[one] / (total - weights[two])
        )
    return np.array(law)


CLIENTS = draws_to_tell_apart(pairs_law(), pairs_law(1.3), pairs_law(0.7))
"""So many clients that the chi-square test at 1e-6 rejects a choice that favours the first by 30 %, or slights it."""


def kept_pairs(kept: np.ndarray) -> np.ndarray:
    """Return how many clients kept each of the 15 pairs of arrivals, from bool[6, clients]."""
    cells = {pair: index for index, pair in enumerate(combinations(range(6), 2))}
    first = kept.argmax(axis=0)
    second = 5 - kept[::-1].argmax(axis=0)
    codes = [cells[one, two] for one, two in zip(first.tolist(), second.tolist(), strict=True)]
    return np.bincount(codes, minlength=15)


def test_which_reports_of_a_client_stay_is_uniform() -> None:
    """Chi-square over the 15 pairs of six reports at cap 2; fails with probability 1e-6.

    Power: the choice of the first two, and choices that favour or slight the first by 30 %, are rejected.
    """
    made = envelopes([index % CLIENTS + 1 for index in range(6 * CLIENTS)], range(6 * CLIENTS))
    kept = capped(made, 2, SystemWords()).reshape(6, CLIENTS)
    assert (kept.sum(axis=0) == 2).all()
    assert chi_square_p(kept_pairs(kept), pairs_law()) > FAILURE
    first = np.zeros((6, CLIENTS), dtype=bool)
    first[:2] = True
    assert chi_square_p(kept_pairs(first), pairs_law()) < FAILURE
    generator = np.random.default_rng(0)
    for weight in (1.3, 0.7):
        drawn = generator.multinomial(CLIENTS, pairs_law(weight))
        assert chi_square_p(drawn, pairs_law()) < FAILURE


@pytest.mark.parametrize("cap", [1, 2, 3, 100])
def test_the_cap_is_exact_for_every_client_and_strips_all_but_the_ciphertext(cap: int) -> None:
    sent = {1: 1, 2: 2, 3: 3, 256: 4, 1 << 127: 7, (1 << 127) + 1: 5, 1 << 64: 6}
    tokens = [token for token, count in sent.items() for _ in range(count)]
    order = np.random.default_rng(cap).permutation(len(tokens))
    made = envelopes([tokens[index] for index in order], [int(index) for index in order])
    main, tagged = outputs(CapAndStrip(SEALED, cap).process((0, [made[:9].tobytes(), made[9:].tobytes()])))
    (block,) = main
    assert len(block) == SEALED * sum(min(count, cap) for count in sent.values())
    kept = Counter(tokens[number] for number in numbers(block))
    assert kept == {token: min(count, cap) for token, count in sent.items()}
    assert len(set(numbers(block))) == len(numbers(block))
    lost = len(tokens) - sum(kept.values())
    assert tagged == ({"counts": [("over_cap", lost)]} if lost else {})


# The permutation.


def chi_square_of_orders(draw: Callable[[], tuple[int, ...]], draws: int) -> float:
    orders = {order: index for index, order in enumerate(permutations(range(4)))}
    observed = np.bincount([orders[draw()] for _ in range(draws)], minlength=24)
    return chi_square_p(observed, np.ones(24))


def test_every_order_of_a_shard_is_equally_likely() -> None:
    """Chi-square over the 24 orders of four reports, through the DoFn; fails with probability 1e-6.

    Power: the naive shuffle that swaps every place with any other, 13 % off at most, is rejected.
    """
    law = naive_law()
    draws = draws_to_tell_apart(np.ones(24) / 24, law)
    block = envelopes(range(4), range(4))["sealed"].tobytes()
    dofn = PermuteShard(SEALED)

    def draw() -> tuple[int, ...]:
        ((_, mixed),) = dofn.process((0, [block[: 2 * SEALED], block[2 * SEALED :]]))
        return tuple(numbers(mixed))

    assert chi_square_of_orders(draw, draws) > FAILURE
    biased = np.random.default_rng(1).multinomial(draws, law)
    assert chi_square_p(biased, np.ones(24)) < FAILURE


def naive_law() -> np.ndarray:
    """Return the law of the well-known wrong shuffle, `for i: swap(i, any)`, over the orders of four."""
    law: Counter[tuple[int, ...]] = Counter()
    for choices in np.ndindex(4, 4, 4, 4):
        order = [0, 1, 2, 3]
        for place, other in enumerate(choices):
            order[place], order[other] = order[other], order[place]
        law[tuple(order)] += 1
    return np.array([law[order] / 256 for order in permutations(range(4))])


def test_permuting_keeps_every_record() -> None:
    block = envelopes(range(999), range(999))["sealed"].tobytes()
    mixed = numbers(permuted(block, SEALED, SystemWords()))
    assert sorted(mixed) == list(range(999))
    assert mixed != list(range(999))
    assert permuted(b"", SEALED, SystemWords()) == b""


def test_over_several_shards_every_order_of_equal_sizes_is_equally_likely() -> None:
    """Six reports over three shards, 2,000 times 6: shard and place of every report are uniform, whatever its arrival.

    Four chi-square tests at 1e-6 / 4 each: the shard of the first and the last report, and their place in the
    concatenated output. Power: round robin over shards, which a Reshuffle may do, is rejected.
    """
    block = envelopes(range(6), range(6))["sealed"].tobytes()
    draw, mix = DrawShard(SEALED, 3), PermuteShard(SEALED)
    shards, places = np.zeros((2, 3), dtype=int), np.zeros((2, 6), dtype=int)
    for _ in range(4000):
        parts: dict[int, list[bytes]] = {}
        for half in (block[: 3 * SEALED], block[3 * SEALED :]):
            for shard, part in draw.process(half):
                parts.setdefault(shard, []).append(part)
        place = 0
        for shard in sorted(parts):
            ((_, mixed),) = mix.process((shard, parts[shard]))
            for number in numbers(mixed):
                if number in (0, 5):
                    shards[number % 4, shard] += 1
                    places[number % 4, place] += 1
                place += 1
        assert place == 6
    for observed in (*shards, *places):
        assert chi_square_p(observed, np.ones(len(observed))) > FAILURE / 4
    assert chi_square_p(np.array([4000, 0, 0]), np.ones(3)) < FAILURE / 4


# Many places of work: a job this small uses one, so the transform is run with several here.


@pytest.mark.parametrize("column", ["sealed", "client_token"])
def test_records_equal_in_a_span_meet_in_one_partition_and_all_are_used(column: str) -> None:
    """A partition of seven stays empty for 500 different values with probability below 1e-32."""
    made = envelopes([index % 500 for index in range(1500)], [index % 500 for index in range(1500)])
    span = (made.dtype.fields[column][1], made.dtype[column].itemsize)
    keys = hash_keys(span[1], SystemWords())
    dofn = PartitionBy(made.itemsize, span, 7, keys)
    places: dict[bytes, set[int]] = {}
    received = []
    for part in np.array_split(made, 4):
        for place, block in dofn.process(part.tobytes()):
            for row in np.frombuffer(block, dtype=made.dtype):
                places.setdefault(row[column], set()).add(place)
                received.append(int(row["received_ms"]))
    assert sorted(received) == list(range(1500))
    assert all(len(found) == 1 for found in places.values())
    assert set().union(*places.values()) == set(range(7))
    other = PartitionBy(made.itemsize, span, 7, hash_keys(span[1], SystemWords()))
    moved = {
        row[column]: place
        for place, block in other.process(made.tobytes())
        for row in np.frombuffer(block, dtype=made.dtype)
    }
    assert any({place} != places[key] for key, place in moved.items())


@pytest.mark.parametrize("length", [1, 4, 16, 19])
def test_every_byte_of_a_span_has_a_part_in_its_hash(length: int) -> None:
    """Records that differ in one byte only meet with probability 2**-32 each, so that none of these does below 1e-5."""
    keys = hash_keys(length, SystemWords())
    rows = np.repeat(np.arange(length, dtype=np.uint8)[None], length + 1, axis=0)
    rows[np.arange(length), np.arange(length)] ^= 0x81
    assert len(set(span_hash(rows, keys).tolist())) == length + 1


class Collect(beam.DoFn):
    """Keeps what it is given; the embedded runner works in this process."""

    seen: ClassVar[dict[str, list[Any]]] = {}

    def __init__(self, name: str) -> None:
        self._name = name

    def process(self, element: Any) -> None:
        self.seen.setdefault(self._name, []).append(element)


def test_the_whole_transform_over_many_partitions_and_shards() -> None:
    """200 clients of five reports at cap 2, some uploaded twice, in 16 blocks, 5 places and 3 shards.

    Every fourth report is sent again by its own client; all the reports of a further client, whose cap would let two
    through, are copies of the only reports of twenty more clients.
    """
    tokens = [1 + index // 5 for index in range(1000)] + list(range(1001, 1021))
    made = envelopes(tokens, range(1020))
    thief = envelopes([5000] * 20, range(1000, 1020))
    both = np.concatenate([thief, made, made[:1000:4]])
    both = both[np.random.default_rng(4).permutation(len(both))]
    Collect.seen.clear()
    runner = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
    with beam.Pipeline(runner=runner, options=PipelineOptions([])) as pipeline:
        blocks = pipeline | beam.Create([part.tobytes() for part in np.array_split(both, 16)])
        for name, collection in (blocks | Shuffle(SEALED, cap=2, partitions=5, shards=3)).items():
            _ = collection | name >> beam.ParDo(Collect(name))
    shards = dict(Collect.seen["shards"])
    assert set(shards) == {0, 1, 2}
    forwarded = [number for block in shards.values() for number in numbers(block)]
    assert len(set(forwarded)) == len(forwarded)
    expected = {**dict.fromkeys(range(1, 201), 2), **dict.fromkeys(range(1001, 1021), 1)}
    assert Counter(tokens[number] for number in forwarded) == expected
    totals: Counter[str] = Counter()
    for reason, number in Collect.seen["counts"]:
        totals[reason] += number
    assert totals == {"accepted": 420, "over_cap": 600 + 18, "duplicate": 250 + 2}
