"""Where equal ciphertexts meet: what the cap refused goes, copies are dropped, every order is equally likely."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hushcount.randomness import SystemWords
from hushcount.strata import STRATUM_BYTES
from hushcount.wire.equality import first_of_equal, in_others, recurring
from hushcount.wire.tags import TAG_BYTES, tag_keys
from shuffler.mix import IN_STRATUM, MixShard, allowed, permuted, tagged
from shuffler.separate import Report
from tests.shuffler.test_shuffle import (
    CIPHERTEXTS,
    KEYS,
    SEALED,
    envelopes,
    numbered,
    numbers,
    of_batch,
    outputs,
    plain_tag,
    totals,
)
from tests.support.listed import ListedWords
from tests.support.statistics import FAILURE, chi_square_p, draws_to_tell_apart
from tests.support.words import SeededWords


def sealed(values: Sequence[int]) -> np.ndarray:
    return np.frombuffer(b"".join(value.to_bytes(SEALED, "little") for value in values), dtype=f"S{SEALED}")


def tag_of(number: int, keys: np.ndarray = KEYS.ciphertexts) -> bytes:
    return plain_tag(number.to_bytes(SEALED, "little"), keys)


def mixed(values: Sequence[int], refused: Sequence[int] = (), cut: int = 0) -> tuple[list[int], dict[str, int]]:
    """Return what shard 4 holds, and the counts."""
    blocks = [sealed(values[:cut]).tobytes(), sealed(values[cut:]).tobytes()]
    tags = [b"".join(tag_of(number) for number in part) for part in (refused[::2], refused[1::2])]
    element = {"sealed": numbered(blocks), "refused": numbered(tags)}
    main, tagged = outputs(MixShard(Report(SEALED), KEYS.ciphertexts).process((4, element)))
    ((shard, block),) = main
    assert shard == (0, 4)
    counts = of_batch(tagged["counts"])
    assert len(counts) == len(dict(counts))
    return numbers(block), dict(counts)


# Public strata.


@given(
    records=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(CIPHERTEXTS)), max_size=60),
    refused=st.lists(st.sampled_from(CIPHERTEXTS), max_size=5),
)
def test_a_report_is_of_one_stratum_and_each_stratum_is_counted(
    records: list[tuple[int, int]], refused: list[int]
) -> None:
    """A copy that names another stratum is a copy; a stratum that the campaign lacks is the last one."""
    strata = 6
    report = Report(SEALED + STRATUM_BYTES, strata)
    block = b"".join(
        stratum.to_bytes(STRATUM_BYTES, "little") + number.to_bytes(SEALED, "little") for stratum, number in records
    )
    element = {"sealed": numbered([block]), "refused": numbered([b"".join(map(tag_of, refused))])}
    main, tagged_with = outputs(MixShard(report, KEYS.ciphertexts).process((4, element)))
    ((_, made),) = main
    left = Counter(number for _, number in records) - Counter(refused)
    first: dict[int, list[int]] = {}
    for stratum, number in sorted((min(stratum, strata - 1), number) for stratum, number in records):
        first.setdefault(number, []).append(stratum)
    # The cap refuses so many copies from the first stratum on.
    expected = {number: first[number][Counter(refused)[number]] for number in left}
    rows = [made[at : at + report.bytes] for at in range(0, len(made), report.bytes)]
    found = {
        int.from_bytes(row[STRATUM_BYTES:], "little"): int.from_bytes(row[:STRATUM_BYTES], "little") for row in rows
    }
    assert (found, len(rows)) == (expected, len(expected))
    counts = dict(of_batch(tagged_with["counts"]))
    in_strata = Counter(expected.values())
    assert {name: counts[name] for name in counts if name.startswith(IN_STRATUM)} == {
        f"{IN_STRATUM}{stratum}": number for stratum, number in in_strata.items()
    }
    assert counts["accepted"] == len(expected)


# Equal ciphertexts.


@given(values=st.lists(st.sampled_from(CIPHERTEXTS), max_size=60))
def test_of_equal_ones_the_first_stays_and_of_different_ones_all(values: list[int]) -> None:
    found = first_of_equal(sealed(values)).tolist()
    assert found == [place for place, value in enumerate(values) if value not in values[:place]]


@given(values=st.lists(st.sampled_from(CIPHERTEXTS), max_size=40))
def test_a_column_of_envelopes_is_compared_as_it_lies_there(values: list[int]) -> None:
    column = envelopes([1] * len(values), values)["sealed"]
    assert (recurring(column) == recurring(sealed(values))).all()
    assert (first_of_equal(column) == first_of_equal(sealed(values))).all()


def test_thousands_that_a_sender_made_alike_at_their_beginning_are_told_apart() -> None:
    """All begin with the same eight bytes, and most with the same nineteen."""
    values = [number << 64 for number in range(3000)] + [number << 152 for number in range(1, 200)]
    order = np.random.default_rng(2).permutation(2 * len(values))
    twice = [(values * 2)[place] for place in order]
    found, counts = mixed(twice, cut=1000)
    assert sorted(found) == sorted(values)
    assert counts == {"accepted": len(values), "duplicate": len(values)}


def test_reports_that_differ_in_one_bit_are_no_duplicates() -> None:
    base = 1 << 159
    values = [base, *(base ^ (1 << bit) for bit in range(160))]
    found, counts = mixed(values, cut=80)
    assert (sorted(found), counts) == (sorted(values), {"accepted": 161})
    found, counts = mixed(values * 2, cut=161)
    assert (sorted(found), counts) == (sorted(values), {"accepted": 161, "duplicate": 161})


# What the cap refused.

SAME_HALF = KEYS.ciphertexts.copy()
SAME_HALF[:, :2] = 0
"""Keys under which all tags share their first eight bytes."""


@given(keys=st.sampled_from([KEYS.ciphertexts, SAME_HALF]), data=st.data())
def test_of_each_tag_as_many_stay_as_were_not_refused(keys: np.ndarray, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from(CIPHERTEXTS), min_size=1, max_size=60))
    refused = data.draw(st.lists(st.sampled_from(range(len(values))), min_size=1, unique=True).map(sorted))
    tags = data.draw(st.permutations([tag_of(values[place], keys) for place in refused]))
    refusals = np.frombuffer(b"".join(tags), dtype=f"S{TAG_BYTES}")
    stays = allowed(tagged(sealed(values), keys), refusals).tolist()
    assert stays == sorted(set(stays))
    expected = Counter(values) - Counter(values[place] for place in refused)
    assert Counter(values[place] for place in stays) == expected


@given(data=st.data(), values=st.lists(st.sampled_from(CIPHERTEXTS), min_size=1, max_size=60))
def test_refused_ones_go_then_copies_and_counts_add_up(data: st.DataObject, values: list[int]) -> None:
    refused = data.draw(st.lists(st.sampled_from(range(len(values))), unique=True))
    found, counts = mixed(values, [values[place] for place in refused], cut=data.draw(st.integers(0, len(values))))
    stay = Counter(values) - Counter(values[place] for place in refused)
    assert sorted(found) == sorted(stay)
    expected = {"accepted": len(stay), "duplicate": stay.total() - len(stay)}
    assert counts == {reason: number for reason, number in expected.items() if number or reason == "accepted"}
    assert sum(counts.values()) + len(refused) == len(values)


def test_a_shard_of_which_all_is_refused_is_empty_and_counted() -> None:
    assert mixed([5, 5, 9], [5, 9, 5]) == ([], {"accepted": 0})
    assert mixed([], []) == ([], {"accepted": 0})


# The order.


def chi_square_of_orders(orders: list[tuple[int, ...]]) -> float:
    places = {order: index for index, order in enumerate(permutations(range(4)))}
    return chi_square_p(np.bincount([places[order] for order in orders], minlength=24), np.ones(24))


def naive_law() -> np.ndarray:
    """Return the law of the well-known wrong shuffle, `for i: swap(i, any)`, over the orders of four."""
    law: Counter[tuple[int, ...]] = Counter()
    for choices in np.ndindex(4, 4, 4, 4):
        order = [0, 1, 2, 3]
        for place, other in enumerate(choices):
            order[place], order[other] = order[other], order[place]
        law[tuple(order)] += 1
    return np.array([law[order] / 256 for order in permutations(range(4))])


DRAWS = draws_to_tell_apart(np.ones(24) / 24, naive_law())


def test_every_order_of_a_shard_is_equally_likely() -> None:
    """Chi-square over the 24 orders of four reports, through the DoFn, among copies and refused ones; fails with
    probability 1e-6.

    Power: the naive shuffle that swaps every place with any other, 13 % off at most, is rejected.
    """
    values, refused = [7, 0, 1, 8, 2, 3, 2], [7, 8, 2]
    assert chi_square_of_orders([tuple(mixed(values, refused, cut=2)[0]) for _ in range(DRAWS)]) > FAILURE
    biased = np.random.default_rng(1).multinomial(DRAWS, naive_law())
    assert chi_square_p(biased, np.ones(24)) < FAILURE


def test_permuting_keeps_every_record_and_follows_its_words() -> None:
    chosen = np.arange(3, 1002)
    drawn = permuted(chosen, SystemWords())
    assert sorted(drawn) == list(range(3, 1002))
    assert drawn.tolist() != chosen.tolist()
    assert permuted(np.array([5, 6, 9]), ListedWords([30, 10, 20])).tolist() == [6, 9, 5]
    assert permuted(chosen[:0], SystemWords()).tolist() == []


def test_every_run_of_the_step_draws_another_order_of_the_same_reports() -> None:
    """An engine that runs it again gets the same reports; of 60 the same order with probability below 1e-80."""
    values = list(range(60))
    runs = [mixed(values[::step], cut=20) for step in (1, -1, 1)]
    assert all(sorted(found) == values and counts == {"accepted": 60} for found, counts in runs)
    assert len({tuple(found) for found, _ in runs}) == 3


# What earlier batches forwarded.

EQUAL = KEYS.ciphertexts.copy()
EQUAL[2:] = 0
"""Keys under which all ciphertexts that share their first four bytes have one tag."""


@given(
    st.sampled_from([KEYS.ciphertexts, SAME_HALF]),
    st.lists(st.sampled_from(CIPHERTEXTS)),
    st.lists(st.sampled_from(CIPHERTEXTS)),
    st.lists(st.sampled_from(CIPHERTEXTS), max_size=3),
)
def test_nothing_that_was_released_is_forwarded_again(
    keys: np.ndarray, values: list[int], before: list[int], refused: list[int]
) -> None:
    """A tag is refused as often as it was sent, so copies of the released are counted whatever the cap refused."""
    refused = [number for number in refused if number in values]
    stay = [number for number in values if number not in refused]
    fresh = set(stay) - set(before)
    found, counts = mixed_with(
        keys, values, before, [number for number in refused for _ in range(values.count(number))]
    )
    assert sorted(found) == sorted(fresh)
    assert counts == totals([("accepted", len(fresh)), ("duplicate", len(stay) - len(fresh))])


@given(values=st.lists(st.sampled_from(CIPHERTEXTS)), before=st.lists(st.sampled_from(CIPHERTEXTS)))
def test_equal_tags_drop_a_report_if_one_was_released_and_not_within_a_batch(
    values: list[int], before: list[int]
) -> None:
    """Under real keys different reports never have one tag; under these many do. A lost report is counted."""
    gone = {tag_of(number, EQUAL) for number in before}
    fresh = {number for number in values if tag_of(number, EQUAL) not in gone}
    found, counts = mixed_with(EQUAL, values, before)
    assert sorted(found) == sorted(fresh)
    assert counts == totals([("accepted", len(fresh)), ("duplicate", len(values) - len(fresh))])


def mixed_with(
    keys: np.ndarray, values: Sequence[int], before: Sequence[int], refused: Sequence[int] = ()
) -> tuple[list[int], Counter[str]]:
    """Return what stays of a batch with the tags of earlier ones, in two blocks, and the counts."""
    tags = [tag_of(number, keys) for number in before]
    element = {
        "sealed": numbered([sealed(values).tobytes()]),
        "refused": numbered(tag_of(number, keys) for number in refused),
        "released": numbered([b"".join(tags[:2]), b"".join(tags[2:])]),
    }
    main, tagged = outputs(MixShard(Report(SEALED), keys).process((4, element)))
    return numbers(main[0][1]), totals(of_batch(tagged["counts"]))


@given(values=st.lists(st.sampled_from(CIPHERTEXTS), max_size=40), others=st.lists(st.sampled_from(CIPHERTEXTS)))
def test_a_record_is_in_others_if_all_of_it_is(values: list[int], others: list[int]) -> None:
    """Also where first words are equal and the rest is not."""
    assert in_others(sealed(values), sealed(others)).tolist() == [value in others for value in values]


def test_records_of_the_length_of_a_real_report_keep_their_zero_bytes() -> None:
    """Of 164 bytes, 40 of them zero at either end; one is refused, one sent twice."""
    keys = tag_keys(164, SeededWords(3))
    rows = np.zeros((50, 164), dtype=np.uint8)
    rows[:, 40:124] = np.random.default_rng(3).integers(256, size=(50, 84), dtype=np.uint8)
    block = np.concatenate([rows, rows[:1]]).tobytes()
    met = {"sealed": numbered([block]), "refused": numbered([plain_tag(rows[7].tobytes(), keys)])}
    main, tagged = outputs(MixShard(Report(164), keys).process((0, met)))
    found = sorted(main[0][1][start : start + 164] for start in range(0, len(main[0][1]), 164))
    assert found == sorted(row.tobytes() for place, row in enumerate(rows) if place != 7)
    assert totals(of_batch(tagged["counts"])) == {"accepted": 49, "duplicate": 1}
