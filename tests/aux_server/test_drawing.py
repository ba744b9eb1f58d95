"""The draw of a release as a function: the same of the same, and of anything else another one by the same law."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from apache_beam.transforms.window import IntervalWindow

from aux_server.bins import Bins
from aux_server.drawing import BinWords, draw_context, in_drawn_order
from aux_server.keep import InDrawnOrder, draw_kept, kept_records
from hushcount.discovery.keep_rules import KeepRule
from hushcount.draws import Draw
from hushcount.maths.drawn_noise import count_noise, laplace_noise
from hushcount.randomness import SystemWords
from keys.directories import KeyReference
from keys.private import PrivateKey
from tests.support.jobs import new_keys

RULE = KeepRule("optimal", 1.0, 1e-6)
NUMBER = 20_000
KEY = bytes(range(32))
PAIRS = np.arange(1, NUMBER + 1, dtype=">u8").view("S8")


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> list[KeyReference]:
    found = []
    for name in ("one", "two"):
        keys = new_keys(tmp_path_factory.mktemp("keys") / name)
        (path,) = Path(keys).glob("aux_server-*.key")
        found.append(KeyReference(str(keys), "aux_server", path.stem.removeprefix("aux_server-")))
    return found


def middle(rule: KeepRule) -> int:
    """Return the count that is kept with a chance nearest to one half."""
    return min(range(1, 200), key=lambda count: abs(rule.keep_probability(count) - 0.5))


def opened(draw: Draw) -> bytes:
    """Return the key of a draw."""
    return draw.key.read().derived(draw.context)


def test_key_rule_campaign_and_input_each_make_another_draw(references: list[KeyReference]) -> None:
    reference, other = references
    rules = [RULE, replace(RULE, epsilon=1.5), replace(RULE, counts=True), replace(RULE, cap=2)]
    draws = [
        *(Draw(reference, draw_context(b"f" * 32, rule, "a" * 64)) for rule in rules),
        Draw(reference, draw_context(b"g" * 32, RULE, "a" * 64)),
        Draw(reference, draw_context(b"f" * 32, RULE, "b" * 64)),
        Draw(other, draw_context(b"f" * 32, RULE, "a" * 64)),
    ]
    assert len({opened(draw) for draw in draws}) == len(draws)
    assert opened(Draw(reference, draw_context(b"f" * 32, replace(RULE), "a" * 64))) == opened(draws[0])


def test_a_graph_carries_no_secret(references: list[KeyReference]) -> None:
    draw = Draw(references[0], draw_context(b"f" * 32, RULE, "a" * 64))
    carried = pickle.dumps(draw)
    for secret in (references[0].read().secret_for_storage(), opened(draw)):
        assert secret not in carried
        assert secret.hex().encode() not in carried


@dataclass
class Counted:
    """A reference that counts how often it is read."""

    reference: KeyReference
    reads: int = 0

    def read_any(self) -> PrivateKey:
        self.reads += 1
        return self.reference.read()


def test_batches_of_one_graph_have_draws_of_their_own_and_one_look_at_the_private_key(
    references: list[KeyReference],
) -> None:
    """The key may be in a key service. Of 50 records two orders are equal with a probability below 1e-64."""
    counted, seen = Counted(references[0]), set()
    rows = [bytes([number]) for number in range(50)]
    step = InDrawnOrder(lambda window: Draw(counted, str(window.start.seconds()).encode()))
    for number in (0, 1, 0, 2, 1):
        ((place, block),) = step.process((0, rows), IntervalWindow(number, number + 1))
        assert place == 0
        assert block == b"".join(in_drawn_order(references[0].read().derived(str(number).encode()), rows))
        seen.add(block)
    assert len(seen) == 3
    assert counted.reads == 1


def test_words_follow_from_the_pair_alone() -> None:
    together = BinWords(KEY, PAIRS[:40])
    drawn = [together.words(40) for _ in range(20)]
    order = np.random.default_rng(1).permutation(40)
    mixed = BinWords(KEY, PAIRS[:40][order])
    assert [mixed.words(40).tolist() for _ in range(20)] == [row[order].tolist() for row in drawn]
    # Some go on while others wait.
    some = BinWords(KEY, PAIRS[:40])
    rows = np.array([7, 3])
    ahead = [some.at(rows).at(np.array([1])).words(1).tolist() for _ in range(9)]
    assert ahead == [[row[3]] for row in drawn[:9]]
    assert some.words(40)[[3, 7]].tolist() == [drawn[9][3], drawn[0][7]]
    with pytest.raises(ValueError, match="count is 3, must be 2"):
        some.at(rows).words(3)


def test_pairs_that_end_in_zeros_have_streams_of_their_own() -> None:
    pairs = np.frombuffer(b"ab\0\0ab\0\1a\0\0\0", dtype="S4")
    assert len(set(BinWords(KEY, pairs).words(3).tolist())) == 3


def test_no_word_comes_twice() -> None:
    """Fails on right code with a probability below 1e-6."""
    words = BinWords(KEY, PAIRS)
    seen = np.concatenate([words.words(NUMBER) for _ in range(17)])
    assert len(np.unique(seen)) == len(seen)
    # Every bit is set half of the time, within six standard deviations.
    bits = np.unpackbits(seen.view(np.uint8).reshape(len(seen), 8), axis=1).mean(axis=0)
    assert np.abs(bits - 0.5).max() < 6 * 0.5 / np.sqrt(len(seen))


@pytest.mark.parametrize("rule", [RULE, KeepRule("laplace", 1.0, 1e-6)], ids=["optimal", "laplace"])
def test_bins_and_inputs_are_drawn_independently_by_the_rule(rule: KeepRule) -> None:
    """Fails on right code with a probability below 1e-6: six standard deviations, more for neighbours."""
    counts, chance = np.full(NUMBER, middle(rule)), float(rule.keep_probability(middle(rule)))
    first, again, other = (draw_kept(rule, counts, BinWords(key, PAIRS)) for key in (KEY, KEY, bytes(32)))
    assert (first == again).all()
    for kept, expected, deviations in (
        (first, chance, 6),
        (other, chance, 6),
        (first & other, chance**2, 6),
        # Each bin is in two of these.
        (first[1:] & first[:-1], chance**2, 12),
    ):
        assert abs(kept.mean() - expected) < deviations * np.sqrt(expected * (1 - expected) / len(kept))


def test_noise_has_the_law_that_fresh_words_give() -> None:
    """Two samples of one law. Fails on right code with a probability below 1e-5."""
    law = replace(RULE, counts=True).count_law
    ratio = KeepRule("laplace", 1.0, 1e-6).laplace_ratio
    for mine, fresh in (
        (count_noise(law, NUMBER, BinWords(KEY, PAIRS)), count_noise(law, NUMBER, SystemWords())),
        (laplace_noise(ratio, NUMBER, BinWords(KEY, PAIRS)), laplace_noise(ratio, NUMBER, SystemWords())),
    ):
        values = np.unique(np.concatenate([mine, fresh]))
        far = max(abs((mine <= value).mean() - (fresh <= value).mean()) for value in values)
        # Kolmogorov and Smirnov, two samples of n: the probability is at most about 2 exp(-n d^2).
        assert far < np.sqrt(np.log(2 / 1e-6) / NUMBER)


@pytest.mark.parametrize("counts", [False, True])
def test_where_a_bin_is_drawn_changes_nothing(counts: bool) -> None:
    rule = replace(RULE, counts=counts)
    sizes = np.full(600, middle(RULE))
    pairs = PAIRS[:600]
    whole = sorted(kept_records(rule, Bins(pairs, sizes), BinWords(KEY, pairs)))
    parts = [
        record
        for rows in np.array_split(np.random.default_rng(2).permutation(600), 7)
        for record in kept_records(rule, Bins(pairs[rows], sizes[rows]), BinWords(KEY, pairs[rows]))
    ]
    assert sorted(parts) == whole
    assert in_drawn_order(KEY, parts) == in_drawn_order(KEY, whole) != whole
    assert in_drawn_order(KEY, whole) != in_drawn_order(bytes(32), whole)


def test_every_order_is_equally_likely() -> None:
    """Fails on right code with a probability below 1e-6: six standard deviations for each of six orders."""
    records, tries = [b"a", b"b", b"c"], 6_000
    seen: dict[tuple[bytes, ...], int] = {}
    for number in range(tries):
        order = tuple(in_drawn_order(number.to_bytes(32, "big"), records))
        seen[order] = seen.get(order, 0) + 1
    assert len(seen) == 6
    assert all(abs(times - tries / 6) < 6 * np.sqrt(tries / 6) for times in seen.values())
