"""Tags and places: equal byte strings have one tag and one place, others meet by chance alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.randomness import SystemWords
from hushcount.wire.sealing import Octets
from hushcount.wire.tags import MOST_PLACES, TAG_BYTES, split, tag_keys, tags
from shuffler.cap import as_tags
from tests.shuffler.test_shuffle import plain_tag
from tests.support.statistics import FAILURE, chi_square_p
from tests.support.words import SeededWords


def octets(rows: list[bytes]) -> Octets:
    return np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1)


def distinct_tags(rows: Octets, keys: np.ndarray) -> int:
    return len({tag.tobytes() for tag in tags(rows, keys)})


# Tags.


@given(length=st.integers(1, 200), seed=st.integers(0, 1 << 32), data=st.data())
def test_a_tag_is_that_of_plain_integers(length: int, seed: int, data: st.DataObject) -> None:
    row = st.binary(min_size=length, max_size=length) | st.sampled_from([bytes(length), b"\xff" * length])
    rows = data.draw(st.lists(row, min_size=1, max_size=5))
    keys = tag_keys(length, SeededWords(seed))
    made = tags(octets(rows), keys)
    assert made.shape == (len(rows), 4)
    assert [tag.tobytes() for tag in made] == [plain_tag(row, keys) for row in rows]
    assert len(made.tobytes()) == TAG_BYTES * len(rows)


def test_each_of_many_rows_has_the_tag_that_it_has_alone() -> None:
    rows = np.random.default_rng(1).integers(256, size=(9000, 21), dtype=np.uint8)
    keys = tag_keys(21, SystemWords())
    assert [tag.tobytes() for tag in tags(rows, keys)] == [plain_tag(row.tobytes(), keys) for row in rows]


def test_of_no_rows_there_are_no_tags() -> None:
    assert tags(np.empty((0, 7), dtype=np.uint8), tag_keys(7, SystemWords())).shape == (0, 4)


def test_every_byte_of_a_span_has_a_part_in_every_word_of_its_tag(subtests: pytest.Subtests) -> None:
    """Two of these rows agree in a word with probability 2**-32: in any, below 2e-5; a second draw: below 4e-10."""
    for length in [1, 4, 16, 19, 164]:
        with subtests.test(length=length):
            rows = np.repeat(np.arange(length, dtype=np.uint8)[None], length + 1, axis=0)
            rows[np.arange(length), np.arange(length)] ^= 0x81
            least = np.zeros(4, dtype=int)
            for _ in range(2):
                made = tags(rows, tag_keys(length, SystemWords()))
                least = np.maximum(least, [len(np.unique(word)) for word in made.T])
            assert least.tolist() == [length + 1] * 4


def test_every_bit_of_a_span_changes_the_tag() -> None:
    rows = np.zeros((161, 20), dtype=np.uint8)
    bits = np.arange(160)
    rows[bits, bits // 8] = np.uint8(1) << (bits % 8).astype(np.uint8)
    assert distinct_tags(rows, tag_keys(20, SystemWords())) == 161


@pytest.mark.parametrize("length", [4, 164])
@pytest.mark.long(but=("4",))
def test_all_128_bits_of_a_tag_are_drawn_for_themselves(length: int) -> None:
    """Over keys every bit is fair and no two go together, for two rows that differ in one bit: normal bounds at 1e-6.

    Power: four times the same word, 32 bits in truth, goes together everywhere.
    """
    rows, draws = np.zeros((2, length), dtype=np.uint8), 2000
    rows[1, length // 2] = 1
    bits = np.empty((draws, 2, 128), dtype=np.int64)
    for index in range(draws):
        made = tags(rows, tag_keys(length, SystemWords()))
        bits[index] = np.unpackbits(made.view(np.uint8), axis=1)
    # Floats: sums of so few ones are exact, and their products are BLAS's.
    signs = (2 * bits.reshape(draws, 256) - 1).astype(np.float64)
    # 256 means and 32,640 products, each below 7 deviations but with probability 2.6e-12.
    assert np.abs(signs.sum(axis=0)).max() < 7.0 * np.sqrt(draws)
    products = signs.T @ signs
    np.fill_diagonal(products, 0)
    assert np.abs(products).max() < 7.0 * np.sqrt(draws)
    same_words = np.tile(signs[:, :32], 4)
    assert np.abs((same_words.T @ same_words)[0, 32::32]).min() == draws


def test_rows_that_meet_under_one_key_do_not_under_another() -> None:
    """Chosen with the keys in hand two rows have one tag; without them, with probability 2**-128."""
    keys = tag_keys(8, SeededWords(1))
    keys[2] = keys[1]
    rows = octets([bytes([1, 0, 0, 0, 2, 0, 0, 0]), bytes([2, 0, 0, 0, 1, 0, 0, 0])])
    assert distinct_tags(rows, keys) == 1
    assert distinct_tags(rows, tag_keys(8, SystemWords())) == 2


# The law of section 10 of docs/mathematics.md.


def joint_laws(bits: int, pieces: int, lowest: int) -> np.ndarray:
    """Return int64[pairs, values, values]: how many keys give two different rows these two hashes.

    Rows have `pieces` pieces of so many bits, keys are words of twice as many. A hash is `bits` bits of the sum, from
    the bit `lowest` on. All pairs and all keys are tried.
    """
    size, values = 1 << 2 * bits, 1 << bits
    rows = np.stack(np.unravel_index(np.arange(values**pieces), (values,) * pieces), axis=1)
    keys = np.stack(np.unravel_index(np.arange(size ** (pieces + 1)), (size,) * (pieces + 1)), axis=1)
    hashes = ((keys[:, :1] + keys[:, 1:] @ rows.T) % size >> lowest) % values
    pairs = [(one, other) for one in range(len(rows)) for other in range(one)]
    laws = (np.bincount(hashes[:, one] * values + hashes[:, other], minlength=values**2) for one, other in pairs)
    return np.array([law.reshape(values, values) for law in laws])


def test_over_all_keys_two_different_rows_have_every_pair_of_hashes_equally_often(subtests: pytest.Subtests) -> None:
    """Strongly universal, exactly: the high half of the sum. The bit below it would do too, and the low half does not.

    Power: the low halves of 0 and of the highest bit alone are equal under half of all keys.
    """
    for bits, pieces in [(4, 1), (2, 2)]:
        with subtests.test(bits=bits, pieces=pieces):
            keys, pairs = 1 << 2 * bits * (pieces + 1), 1 << 2 * bits
            for lowest in (bits, bits - 1):
                assert (joint_laws(bits, pieces, lowest) == keys // pairs).all()
            low = joint_laws(bits, pieces, 0)
            assert low.trace(axis1=1, axis2=2).max() == keys // 2


def test_rows_whose_difference_is_the_highest_bit_of_a_piece_have_different_words() -> None:
    """The worst pair of all: in the low half of the sum they would be equal half of the time.

    Of 64 draws of four words two agree with probability below 1e-7.
    """
    rows = octets([bytes(12), bytes([0] * 7 + [0x80] + [0] * 4)])
    made = [tags(rows, tag_keys(12, SystemWords())) for _ in range(64)]
    assert all((one != other).all() for one, other in made)


# Places.


def placed(records: np.ndarray, tagged: np.ndarray, places: int) -> dict[int, bytes]:
    found = list(split(records, tagged, places))
    assert len(dict(found)) == len(found)
    return dict(found)


@given(
    values=st.lists(st.integers(0, 40), max_size=120),
    places=st.sampled_from([1, 2, 3, 7, 1000, MOST_PLACES]),
    seed=st.integers(0, 1 << 32),
)
def test_splitting_loses_nothing_and_equal_tags_go_to_one_place(values: list[int], places: int, seed: int) -> None:
    made = np.array(values, dtype=np.uint64)
    tagged = tags(made.view(np.uint8).reshape(len(made), 8), tag_keys(8, SeededWords(seed)))
    found = placed(made, tagged, places)
    place_of = {value: int(tag[0]) % places for value, tag in zip(values, tagged, strict=True)}
    expected: dict[int, list[int]] = {}
    for value in sorted(values):
        expected.setdefault(place_of[value], []).append(value)
    assert {
        place: sorted(np.frombuffer(block, np.uint64).tolist()) for place, block in found.items() if block
    } == expected


def test_a_column_of_wider_records_is_split_whole() -> None:
    """Sealed reports are a column of envelopes, with zero bytes at their end."""
    made = np.zeros(50, dtype=[("other", "S3"), ("wanted", "S5")])
    made["other"], made["wanted"] = b"xyz", [bytes([index, 0, index % 2]) for index in range(50)]
    tagged = as_tags(np.arange(100, dtype="<u8").view("S16"))
    for places in (1, 4):
        blocks = placed(made["wanted"], tagged, places).values()
        found = sorted(block[start : start + 5] for block in blocks for start in range(0, len(block), 5))
        assert found == sorted(bytes([index, 0, index % 2, 0, 0]) for index in range(50))


def test_places_are_used_evenly_and_other_keys_put_records_elsewhere(subtests: pytest.Subtests) -> None:
    """Chi-square at 1e-6 over random records. Power: a place drawn one time in twenty too often is rejected."""
    for places in [7, 100]:
        with subtests.test(places=places):
            rows = np.random.default_rng(3).integers(256, size=(max(12_000, 1000 * places), 164), dtype=np.uint8)
            found = [tags(rows, tag_keys(164, SystemWords()))[:, 0] % np.uint32(places) for _ in range(2)]
            for drawn in found:
                assert chi_square_p(np.bincount(drawn, minlength=places), np.ones(places)) > FAILURE / 4
            assert (found[0] != found[1]).any()
            skewed = np.where(np.arange(len(rows)) % 20 == 0, 0, found[0])
            assert chi_square_p(np.bincount(skewed, minlength=places), np.ones(places)) < FAILURE / 4


def test_blocks_are_of_whole_records_and_of_a_quarter_mebibyte_at_most(subtests: pytest.Subtests) -> None:
    """Longer ones Flink cannot sort; a record that is longer goes alone."""
    for places in [1, 3]:
        with subtests.test(places=places):
            for size, count in ((148, 20_000), (300_000, 3)):
                octets = np.random.default_rng(size).integers(0, 256, (count, size), dtype=np.uint8)
                records = octets.view(f"V{size}").reshape(-1)
                parts = list(split(records, tags(octets, tag_keys(size, SystemWords())), places))
                assert all(len(block) <= max(1 << 18, size) and len(block) % size == 0 and block for _, block in parts)
                assert sorted(
                    row.tobytes() for _, block in parts for row in np.frombuffer(block, records.dtype)
                ) == sorted(row.tobytes() for row in octets)
                assert len(parts) > places or size == 300_000
