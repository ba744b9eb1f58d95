"""The shuffler as a whole: what leaves it is what a plain shuffler would give, whatever the order and the engine."""

from __future__ import annotations

import hashlib
import pickle
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pvalue import TaggedOutput
from apache_beam.testing.test_pipeline import TestPipeline as CheckedPipeline
from apache_beam.testing.util import assert_that
from hypothesis import given
from hypothesis import strategies as st

from hushcount.arrays import UInt64Array
from hushcount.collection.envelopes import TOKEN_BYTES, envelope_dtype
from hushcount.randomness import SystemWords, Words
from hushcount.wire.tags import MOST_PLACES, TAG_BYTES, tag_keys
from pipelines.engine.group_through_files import GroupThroughFiles
from shuffler.cap import RefuseOverCap, cap_key
from shuffler.mix import MixShard
from shuffler.separate import Numbered, Report, Separate
from shuffler.shuffle import Shuffle
from tests.support.statistics import FAILURE, chi_square_p, draws_to_tell_apart
from tests.support.words import SeededWords

SEALED = 20
RUNNER = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"


def envelopes(tokens: Sequence[int], sealed: Sequence[int], times: Sequence[int] | None = None) -> np.ndarray:
    """Return envelopes with numbers for tokens and ciphertexts, some with zero bytes at their end."""
    made = np.zeros(len(tokens), dtype=envelope_dtype(SEALED))
    made["client_token"] = [token.to_bytes(TOKEN_BYTES, "little") for token in tokens]
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


def totals(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    """Return the sum of each reason."""
    summed: Counter[str] = Counter()
    for reason, number in counts:
        summed[reason] += number
    return summed


def met(blocks: Iterable[tuple[int, bytes]]) -> dict[int, list[bytes]]:
    """Return the blocks of each place; of a place without any, none."""
    places: dict[int, list[bytes]] = defaultdict(list)
    for place, block in blocks:
        places[place].append(block)
    return places


@dataclass(frozen=True)
class RunKeys:
    """All keys of a run."""

    ciphertexts: UInt64Array
    tokens: UInt64Array
    cap: bytes


def run_keys(words: Words) -> RunKeys:
    return RunKeys(tag_keys(SEALED, words), tag_keys(TOKEN_BYTES, words), cap_key(words))


KEYS = run_keys(SeededWords(7))


@dataclass(frozen=True)
class Passed:
    """What went from step to step of one run, and came out."""

    sealed: dict[int, list[bytes]]
    claims: dict[int, list[bytes]]
    refused: dict[int, list[bytes]]
    shards: dict[int, bytes]
    counts: Counter[str]

    def regardless_of_order(self) -> tuple[Any, ...]:
        """Return all of it, but for the order of the records of each place and shard."""
        sized = ((self.sealed, SEALED), (self.claims, TOKEN_BYTES + TAG_BYTES), (self.refused, TAG_BYTES))
        places = [{place: records(b"".join(found), size) for place, found in each.items()} for each, size in sized]
        return *places, {shard: records(block, SEALED) for shard, block in self.shards.items()}, self.counts

    @property
    def forwarded(self) -> list[int]:
        return [number for block in self.shards.values() for number in numbers(block)]


def records(block: bytes, size: int) -> list[bytes]:
    return sorted(block[start : start + size] for start in range(0, len(block), size))


def passed(blocks: Iterable[np.ndarray], cap: int, places: int, keys: RunKeys) -> Passed:
    """Run the transform's own steps one after the other, each as an engine unpacks it; blocks may be empty."""
    separate = unpacked(Separate(Report(SEALED), places, (keys.ciphertexts, keys.tokens)))
    refuse = unpacked(RefuseOverCap(cap, keys.cap, places))
    mix = unpacked(MixShard(Report(SEALED), keys.ciphertexts))
    main, tagged = outputs(result for block in blocks for result in separate.process(block.tobytes()))
    sealed, claims = met(main), met(tagged.get("claims", []))
    main, over = outputs(result for element in claims.items() for result in refuse.process(element))
    refused = met(main)
    both = {
        place: {"sealed": numbered(found), "refused": numbered(refused.get(place, []))}
        for place, found in sealed.items()
    }
    shards, mixed = outputs(result for element in both.items() for result in mix.process(element))
    assert len(dict(shards)) == len(shards)
    counts = totals(over.get("counts", []) + of_batch(mixed.get("counts", [])))
    return Passed(sealed, claims, refused, dict(of_batch((at[0], (at[1], block)) for at, block in shards)), counts)


def numbered(blocks: Iterable[bytes]) -> list[bytes]:
    """Return the blocks of one batch as the step after the first gives them."""
    return [block for each in blocks for _, block in unpacked(Numbered()).process((0, each))]


def of_batch(elements: Iterable[tuple[int, Any]], number: int = 0) -> list[Any]:
    """Return the elements beside the number of their batch, which all have."""
    found = list(elements)
    assert {batch for batch, _ in found} <= {number}
    return [element for _, element in found]


def unpacked(dofn: Any) -> Any:
    return pickle.loads(pickle.dumps(dofn))  # noqa: S301  # made here


# Plain twins, in Python's own integers and sets.


def plain_tag(octets: bytes, keys: UInt64Array) -> bytes:
    """Return the tag of one byte string."""
    pieces = [int.from_bytes(octets[start : start + 4], "little") for start in range(0, len(octets), 4)]
    tag = b""
    for first, *others in keys.T.tolist():
        total = first + sum(key * piece for key, piece in zip(others, pieces, strict=True))
        tag += (total % (1 << 64) >> 32).to_bytes(4, "little")
    return tag


def plain_draw(claim: bytes, key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(claim, digest_size=8, key=key).digest(), "little")


def after_cap(
    arrivals: Sequence[tuple[int, int]], cap: int, tag: Mapping[int, bytes], key: bytes
) -> tuple[set[int], int]:
    """Return the reports that stay of a client at least, and how many are over the cap of theirs."""
    own: dict[int, set[int]] = {}
    for token, number in arrivals:
        own.setdefault(token, set()).add(number)
    kept: set[int] = set()
    for token, sent in own.items():
        client = token.to_bytes(TOKEN_BYTES, "little")
        draws = {plain_draw(client + tag[number], key): number for number in sent}
        kept.update(draws[least] for least in sorted(draws)[:cap])
    return kept, sum(max(0, len(sent) - cap) for sent in own.values())


def plain_shuffle(
    arrivals: Sequence[tuple[int, int]], cap: int, places: int, keys: RunKeys
) -> tuple[dict[int, set[int]], Counter[str]]:
    """Return what each shard holds, and the counts: the cap, then duplicates."""
    tag = {number: plain_tag(number.to_bytes(SEALED, "little"), keys.ciphertexts) for _, number in arrivals}
    kept, lost = after_cap(arrivals, cap, tag, keys.cap)
    shards: dict[int, set[int]] = {}
    for number in kept:
        shards.setdefault(int.from_bytes(tag[number][:4], "little") % places, set()).add(number)
    counts = Counter({"accepted": len(kept), "over_cap": lost, "duplicate": len(arrivals) - lost - len(kept)})
    return shards, +counts


# Tokens and ciphertexts that are alike at their beginning or all but their end, or end in zero bytes, and zero itself.
TOKENS = [0, 1, 256, 1 << 64, (1 << 64) + 1, 1 << 127, (1 << 127) + 1]
CIPHERTEXTS = [0, 1, 256, 1 << 63, 1 << 64, 2 << 64, 3 << 64, 1 << 152, 1 << 159, (1 << 159) + 1, (1 << 160) - 1]


@given(
    arrivals=st.lists(st.tuples(st.sampled_from(TOKENS), st.sampled_from(CIPHERTEXTS)), max_size=60),
    cap=st.integers(1, 5),
    places=st.sampled_from([1, 2, 3, 7, MOST_PLACES]),
    seed=st.integers(0, 1 << 32),
    data=st.data(),
)
@pytest.mark.long
def test_it_is_a_plain_shuffler_in_any_order_and_counts_add_up(
    arrivals: list[tuple[int, int]], cap: int, places: int, seed: int, data: st.DataObject
) -> None:
    """Run again in another order, other blocks: the same claims, refusals, shards and counts, but for order in them."""
    keys = run_keys(SeededWords(seed))
    expected, counts = plain_shuffle(arrivals, cap, places, keys)
    made = envelopes(*(zip(*arrivals, strict=True) if arrivals else ((), ())))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(made)), max_size=3)))
    first = passed(np.split(made, cuts), cap, places, keys)
    assert {shard: set(numbers(block)) for shard, block in first.shards.items() if block} == expected
    assert len(first.forwarded) == len(set(first.forwarded))
    assert +first.counts == counts
    assert first.counts.total() == len(arrivals)
    order = data.draw(st.permutations(range(len(made))))
    again = passed(np.split(made[list(order)], cuts[:1]), cap, places, keys)
    assert again.regardless_of_order() == first.regardless_of_order()


def test_a_thiefs_copies_never_displace_the_original() -> None:
    """Whatever the keys, the order, and how much of its own junk and how often the thief sends."""
    victims = envelopes(range(1, 31), range(100, 130))
    junk = envelopes([5000] * 300, [*range(100, 130)] * 5 + [*range(1000, 1150)])
    both = np.concatenate([junk, victims])
    for seed in range(40):
        order = np.random.default_rng(seed).permutation(len(both))
        out = passed(np.array_split(both[order], 3), 2, 1 + seed % 3, run_keys(SystemWords()))
        assert set(range(100, 130)) <= set(out.forwarded)
        assert len(out.forwarded) == len(set(out.forwarded)) <= 32
        assert out.counts["over_cap"] == 178


# Over several shards.


def test_what_is_in_a_shard_depends_on_the_ciphertexts_alone() -> None:
    """Under the same keys the same shards, whoever sent what, when, in which order and files; 200 times.

    Power: round robin over shards, which a Reshuffle may do, gives others every time.
    """
    generator = np.random.default_rng(6)
    expected, _ = plain_shuffle([(number, number) for number in range(60)], 1, 3, KEYS)
    assert set(expected) == {0, 1, 2}
    for _ in range(200):
        order = generator.permutation(60).tolist()
        tokens = (generator.permutation(60) + 1).tolist()
        made = envelopes(tokens, order, generator.integers(1 << 40, size=60).tolist())
        out = passed(np.split(made, sorted(generator.integers(61, size=4))), 1, 3, KEYS)
        assert {shard: set(numbers(block)) for shard, block in out.shards.items()} == expected
        assert {shard: set(order[shard::3]) for shard in range(3)} != expected


@pytest.mark.long
def test_over_keys_every_shard_is_equally_likely_for_a_report() -> None:
    """Six reports over three shards, so often that a shard that is 30 % too likely is rejected but below 1e-6.

    Chi-square for the first and the last at 1e-6 / 2 each. Power: reports that stay in the shard of the block in which
    they came are rejected.
    """
    draws = draws_to_tell_apart(np.ones(3) / 3, np.array([1.3, 0.85, 0.85]) / 3, np.array([0.7, 1.15, 1.15]) / 3)
    made, seen = envelopes(range(6), range(6)), np.zeros((2, 3), dtype=int)
    for _ in range(draws):
        for shard, block in passed([made[:3], made[3:]], 1, 3, run_keys(SystemWords())).shards.items():
            for number in {0, 5}.intersection(numbers(block)):
                seen[number % 4, shard] += 1
    assert (seen.sum(axis=1) == draws).all()
    for observed in seen:
        assert chi_square_p(observed, np.ones(3)) > FAILURE / 2
    assert chi_square_p(np.array([draws, 0, 0]), np.ones(3)) < FAILURE / 2


# On an engine.


@pytest.mark.parametrize("places", [1, 5, MOST_PLACES])
@pytest.mark.parametrize("in_files", [False, True], ids=["through the engine", "through files"])
@pytest.mark.long(but=("through the engine-5",))
def test_the_whole_transform_on_beams_embedded_runner(tmp_path: Path, places: int, in_files: bool) -> None:
    """200 clients of five reports at cap 2, some uploaded twice, in 16 blocks, over one place, five, and all there are.

    Every fourth report is sent again by its own client; all the reports of a further client, whose cap would let two
    through, are copies of the only reports of twenty more clients.
    """
    tokens = [1 + index // 5 for index in range(1000)] + list(range(1001, 1021))
    made = envelopes(tokens, range(1020))
    thief = envelopes([5000] * 20, range(1000, 1020))
    both = np.concatenate([thief, made, made[:1000:4]])
    both = both[np.random.default_rng(4).permutation(len(both))]

    def shards_are_right(found: list[tuple[tuple[int, int], bytes]]) -> None:
        shards = dict(found)
        assert len(shards) == len(found)
        assert sorted(shards) == [(0, place) for place in range(places)]
        forwarded = [number for block in shards.values() for number in numbers(block)]
        assert len(set(forwarded)) == len(forwarded)
        expected = {**dict.fromkeys(range(1, 201), 2), **dict.fromkeys(range(1001, 1021), 1)}
        assert Counter(tokens[number] for number in forwarded) == expected

    def counts_are_right(found: list[tuple[str, int]]) -> None:
        assert totals(found) == {"accepted": 420, "over_cap": 600 + 18, "duplicate": 250 + 2}

    def all_of_the_batch(element: tuple[int, tuple[str, int]]) -> tuple[str, int]:
        (count,) = of_batch([element])
        return count  # type: ignore[no-any-return]

    with CheckedPipeline(runner=RUNNER, options=PipelineOptions([])) as pipeline:
        blocks = pipeline | beam.Create([part.tobytes() for part in np.array_split(both, 16)])
        grouping = GroupThroughFiles(str(tmp_path)) if in_files else None
        shuffle = Shuffle(Report(SEALED), cap=2, places=places, grouping=grouping)
        shuffled = blocks | shuffle
        assert_that(shuffled["shards"], shards_are_right, label="shards")
        counts = (shuffled["counts"], shuffled["mixed"] | beam.Map(all_of_the_batch)) | beam.Flatten()
        assert_that(counts, counts_are_right, label="counts")
    assert any(tmp_path.iterdir()) == in_files
