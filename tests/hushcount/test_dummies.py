"""Dummies look like reports, follow their law, and are the same each time; another secret makes others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hushcount import dummies
from hushcount.campaigns.parts import NoisePart
from hushcount.draws import DerivedWords
from hushcount.dummies import DummyForm, Layer, dummies_of
from hushcount.maths import noise_sums
from hushcount.oracles.catalogue import build
from hushcount.wire.sealing import SEAL_BYTES, seal_rows
from keys.private import PrivateKey
from tests.support.statistics import FAILURE

DOMAIN = 4_000
MECHANISM = NoisePart(epsilon=1.0, delta=1e-8).mechanism(DOMAIN, 1)
INNER, OUTER = (PrivateKey(bytes([number]) * 32) for number in (1, 2))
LAYERS = (Layer(b"b" * 16, INNER.public_key), Layer(b"b" * 16 + b"w" * 8, OUTER.public_key))


def made(form: DummyForm, items: range, secret: bytes = b"s" * 32) -> np.ndarray:
    return dummies_of(form, items, secret, seal_rows)


def numbers_of(secret: bytes) -> np.ndarray:
    """Return int64[DOMAIN], how many dummies each item has."""
    reports, valid = MECHANISM.unpack(made(DummyForm(MECHANISM, ()), range(DOMAIN), secret))
    assert valid.all()
    return np.bincount(reports["cell"], minlength=DOMAIN)


def test_each_item_has_dummies_by_the_law_and_other_laws_are_rejected() -> None:
    """Fails with probability FAILURE: by binomial tests of all tails that 4,000 items can tell."""
    numbers, places = numbers_of(b"1" * 32), np.arange(22, 42)

    def least(epsilon: float) -> float:
        law = NoisePart(epsilon=epsilon, delta=1e-8).mechanism(DOMAIN, 1).encoder.noise
        assert law is not None
        tails = noise_sums.dummies_of(law.law, 1).at_least(places.astype(np.float64))
        found = [int((numbers >= place).sum()) for place in places]
        return min(stats.binomtest(one, DOMAIN, tail).pvalue for one, tail in zip(found, tails.tolist(), strict=True))

    assert least(1.0) >= FAILURE / len(places)
    assert least(0.9) < FAILURE / len(places)
    assert least(1.1) < FAILURE / len(places)


def test_items_and_mixes_draw_apart() -> None:
    """Fails with probability 2 FAILURE at most: correlations of 4,000 pairs."""
    one, other = numbers_of(b"1" * 32), numbers_of(b"2" * 32)
    bound = stats.norm.isf(FAILURE / 2.0) / np.sqrt(DOMAIN)
    assert abs(np.corrcoef(one, other)[0, 1]) < bound
    assert abs(np.corrcoef(one[:-1], one[1:])[0, 1]) < 1.1 * bound


def test_a_repetition_makes_the_same_bytes_and_another_secret_others(monkeypatch: pytest.MonkeyPatch) -> None:
    form = DummyForm(MECHANISM, LAYERS)
    first = made(form, range(3))
    assert first.shape[1] == MECHANISM.report_bytes + sum(len(layer.head) + SEAL_BYTES for layer in LAYERS)
    for cores in (1, 5):
        monkeypatch.setattr(dummies, "available_threads", lambda cores=cores: cores)
        assert np.array_equal(first, made(form, range(3)))
    for other in (made(form, range(3), b"t" * 32), made(form, range(3, 6))):
        assert not {row.tobytes() for row in first} & {row.tobytes() for row in other}
    # Each box has a key of its own, so no two are equal.
    assert len(np.unique(first, axis=0)) == len(first)


def test_a_dummy_opens_like_a_report_of_its_item() -> None:
    plain, opened, _ = OUTER.open_rows(made(DummyForm(MECHANISM, LAYERS), range(7, 9)))
    assert opened.all()
    assert (plain[:, :24] == np.frombuffer(b"b" * 16 + b"w" * 8, dtype=np.uint8)).all()
    content, opened, _ = INNER.open_rows(np.ascontiguousarray(plain[:, 24:]))
    assert opened.all()
    reports, valid = MECHANISM.unpack(content[:, 16:])
    assert valid.all()
    assert np.unique(reports["cell"]).tolist() == [7, 8]


def test_a_mechanism_with_noise_of_its_own_has_no_dummies() -> None:
    with pytest.raises(ValueError, match="noise of the mixes"):
        made(DummyForm(build("grr", 1.0, 5, {}), ()), range(5))


def test_words_follow_from_secret_and_purpose() -> None:
    def drawn(secret: bytes, purpose: bytes) -> list[int]:
        words = DerivedWords(secret, purpose)
        return [*words.words(3).tolist(), *words.words(2).tolist()]

    each = [drawn(b"a" * 32, b"one"), drawn(b"a" * 32, b"two"), drawn(b"b" * 32, b"one")]
    assert len({word for words in each for word in words}) == 15
    assert drawn(b"a" * 32, b"one") == each[0]
    assert b"aaaa" not in repr(DerivedWords(b"a" * 32, b"one")).encode()
