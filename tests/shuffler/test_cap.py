"""The cap: exact for every client, a uniform choice that no sender and no engine decides, blind to retries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hushcount.arrays import UInt64Array
from hushcount.collection.envelopes import TOKEN_BYTES
from hushcount.randomness import SystemWords
from hushcount.wire.tags import TAG_BYTES
from shuffler.cap import RefuseOverCap, as_tags, cap_key, draws, over_cap
from shuffler.separate import CLAIM
from tests.shuffler.test_shuffle import KEYS, envelopes, met, numbers, outputs, passed, plain_draw, records
from tests.support.statistics import FAILURE, chi_square_p, draws_to_tell_apart

KEY = bytes(range(32))


def claims(tokens: Sequence[int], tags: Sequence[int]) -> np.ndarray:
    """Return claims with numbers for tokens and tags."""
    made = np.empty(len(tokens), dtype=CLAIM)
    made["client_token"] = [token.to_bytes(TOKEN_BYTES, "little") for token in tokens]
    made["tag"] = [tag.to_bytes(TAG_BYTES, "little") for tag in tags]
    return made


# Which claims are refused.

ALIKE = [0, 1, 256, 1 << 63, 1 << 64, 2 << 64, (1 << 64) + 1, 1 << 127, (1 << 127) + 1, (1 << 128) - 1]
"""Tokens and tags that share their first eight bytes, end in zero bytes, or differ in one bit."""


@given(
    arrivals=st.lists(st.tuples(st.sampled_from(ALIKE), st.sampled_from(ALIKE)), max_size=120),
    cap=st.integers(1, 12),
    key=st.binary(min_size=32, max_size=32),
)
def test_over_the_cap_are_all_but_the_smallest_draws_of_a_client_copies_and_all(
    arrivals: list[tuple[int, int]], cap: int, key: bytes
) -> None:
    sent: dict[int, set[int]] = {}
    for token, tag in arrivals:
        sent.setdefault(token, set()).add(tag)
    over = {
        (token, tag)
        for token, own in sent.items()
        for tag in sorted(own, key=lambda tag, token=token: plain_draw(claims([token], [tag]).tobytes(), key))[cap:]
    }
    made = claims(*(zip(*arrivals, strict=True) if arrivals else ((), ())))
    refused, reports = over_cap(made, cap, key)
    assert refused.tolist() == [place for place, claim in enumerate(arrivals) if claim in over]
    assert reports == len(over)


def test_of_equal_draws_the_tag_decides_and_the_cap_is_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance makes them equal once in 2**64 pairs; without a rule the order of arrival would decide then."""

    def all_equal(claims: np.ndarray, key: bytes) -> UInt64Array:
        return np.full(len(claims), 9, dtype=np.uint64)

    monkeypatch.setattr("shuffler.cap.draws", all_equal)
    generator = np.random.default_rng(1)
    for _ in range(20):
        tags = generator.permutation(8).tolist()
        refused, reports = over_cap(claims([5] * 8, [1 << 8 * tag for tag in tags]), 3, KEY)
        # Little-endian: the byte string of the greatest number begins with the most zero bytes.
        assert sorted(tags[row] for row in refused) == [0, 1, 2, 3, 4]
        assert reports == 5


def test_draws_are_words_of_every_byte_of_a_claim_and_of_the_key() -> None:
    """Two of 513 words are equal with probability below 1e-14."""
    rows = np.zeros((257, CLAIM.itemsize), dtype=np.uint8)
    bits = np.arange(256)
    rows[bits, bits // 8] = np.uint8(1) << (bits % 8).astype(np.uint8)
    packed = rows.view(f"S{CLAIM.itemsize}")[:, 0]
    drawn = [draws(packed, KEY), draws(packed, cap_key(SystemWords()))]
    assert len(np.unique(np.concatenate(drawn))) == 2 * 257
    assert all(len(cap_key(SystemWords())) == 32 for _ in range(5))
    assert len({cap_key(SystemWords()) for _ in range(50)}) == 50


# The choice is uniform.


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


def kept_of_all(made: np.ndarray, cap: int, key: bytes) -> np.ndarray:
    refused, reports = over_cap(made, cap, key)
    assert len(refused) == reports
    kept = np.ones(len(made), dtype=bool)
    kept[refused] = False
    return kept


def test_which_reports_of_a_client_stay_is_uniform_over_clients() -> None:
    """Chi-square over the 15 pairs of six reports at cap 2, under one key; fails with probability 1e-6.

    Power: the choice of the first two, and choices that favour or slight the first by 30 %, are rejected.
    """
    made = claims([index % CLIENTS + 1 for index in range(6 * CLIENTS)], range(6 * CLIENTS))
    kept = kept_of_all(made, 2, cap_key(SystemWords())).reshape(6, CLIENTS)
    assert (kept.sum(axis=0) == 2).all()
    assert chi_square_p(kept_pairs(kept), pairs_law()) > FAILURE
    first = np.zeros((6, CLIENTS), dtype=bool)
    first[:2] = True
    assert chi_square_p(kept_pairs(first), pairs_law()) < FAILURE
    generator = np.random.default_rng(0)
    for weight in (1.3, 0.7):
        drawn = generator.multinomial(CLIENTS, pairs_law(weight))
        assert chi_square_p(drawn, pairs_law()) < FAILURE


def test_which_reports_of_a_client_stay_is_uniform_over_runs() -> None:
    """The same six reports of one client, as often with a key of their own; fails with probability 1e-6."""
    made = claims([3] * 6, range(6))
    kept = np.stack([kept_of_all(made, 2, cap_key(SystemWords())) for _ in range(CLIENTS)], axis=1)
    assert (kept.sum(axis=0) == 2).all()
    assert chi_square_p(kept_pairs(kept), pairs_law()) > FAILURE


# The step.


def test_the_cap_is_exact_for_every_client(subtests: pytest.Subtests) -> None:
    for cap in [1, 2, 3, 100]:
        for places in [1, 4]:
            with subtests.test(places=places, cap=cap):
                sent = {1: 1, 2: 2, 3: 3, 256: 4, 1 << 127: 7, (1 << 127) + 1: 5, 1 << 64: 6, 2 << 64: 9, 0: 4}
                tokens = [token for token, count in sent.items() for _ in range(count)]
                order = np.random.default_rng(cap).permutation(len(tokens))
                made = envelopes([tokens[index] for index in order], [int(index) for index in order])
                out = passed([made[:9], made[9:]], cap, places, KEYS)
                kept = Counter(tokens[number] for number in out.forwarded)
                assert kept == {token: min(count, cap) for token, count in sent.items()}
                assert len(set(out.forwarded)) == len(out.forwarded)
                lost = len(tokens) - sum(kept.values())
                assert +out.counts == +Counter({"accepted": len(out.forwarded), "over_cap": lost})


def test_tags_alone_are_given_each_to_the_place_of_its_report_as_often_as_it_was_sent() -> None:
    made = claims([7] * 8 + [8, 9, 9], [1, 1, 1, 2, 2, 3, 4, 4, 1, 1, 5])
    block = made.tobytes()
    main, tagged = outputs(RefuseOverCap(1, KEY, 3).process((0, [block[:160], block[160:]])))
    refused, reports = over_cap(made, 1, KEY)
    expected = [bytes(tag).ljust(TAG_BYTES, b"\0") for tag in made["tag"][refused]]
    assert records(b"".join(part for _, part in main), TAG_BYTES) == sorted(expected)
    for place, blocks in met(main).items():
        found = np.frombuffer(b"".join(blocks), dtype=f"S{TAG_BYTES}")
        assert (as_tags(found)[:, 0] % 3 == place).all()
    assert reports == 4
    assert tagged == {"counts": [("over_cap", 4), *([("duplicate", len(refused) - 4)] * (len(refused) > 4))]}


def test_clients_within_the_cap_and_no_claims_at_all_give_nothing() -> None:
    within = claims([1, 1, 2, 3, 3, 3], [1, 2, 1, 5, 5, 5])
    for blocks in ([within.tobytes()], [b""], []):
        assert list(RefuseOverCap(2, KEY, 3).process((0, blocks))) == []


def test_a_clients_own_retries_neither_fill_its_cap_nor_are_drawn_for_it() -> None:
    """Four reports, one of them sent 1,000 times, cap 3.

    Each is left out with probability 1/4: 15 times or fewer of 200, or always, with probability below 1e-9. Were copies
    drawn, the retried one would hardly ever be left out; did they fill the cap, the others would hardly ever stay.
    """
    made = envelopes([7] * 1003 + [8], [5] * 1000 + [1, 2, 3, 5])
    left_out: Counter[int] = Counter()
    for _ in range(200):
        refused, reports = over_cap(claims([7] * 1003, [5] * 1000 + [1, 2, 3]), 3, cap_key(SystemWords()))
        assert reports == 1
        lost = max(0, int(refused[0]) - 999)
        assert len(refused) == (1 if lost else 1000)
        left_out[lost] += 1
    assert left_out.total() == 200
    assert all(15 < left_out[number] < 200 for number in range(4))
    out = passed([made[:500], made[500:]], 3, 2, KEYS)
    # The other client's copy of 5 is another client's report: it stays when all of the first client's are refused.
    assert set(numbers(b"".join(out.shards.values()))) > {5}
    assert len(out.forwarded) in (3, 4)
    assert out.counts["over_cap"] == 1
    assert out.counts.total() == 1004
