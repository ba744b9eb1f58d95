"""Poisoning: the strongest known attack gains exactly what the influence bound says, and never more; no luck in it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aux_server.keep import draw_kept
from hushcount.discovery.keep_rules import KeepRule
from hushcount.discovery.pairs import HASH_BYTES
from hushcount.maths.fingerprints import fingerprints
from hushcount.oracles.catalogue import ANY_SEED, MEANS, build
from hushcount.oracles.encoders import pool as pool_module
from hushcount.oracles.encoders.pool import Pooled
from hushcount.oracles.influence import influence
from hushcount.oracles.random_cells import CellSum, cell_sum
from hushcount.oracles.tally import Tally
from hushcount.randomness import SystemWords
from tests.hushcount.discovery.test_pairs import FORM, SEALER, pair, reveal
from tests.hushcount.oracles.cases import CASES, Case, each
from tests.hushcount.oracles.test_influence import counted
from tests.support.attack import forged, forged_against
from tests.support.bins import bins_of_pairs
from tests.support.words import SeededWords

HONEST, FORGED = 300, 40


def gains(case: Case, targets: int, *, against: bool = False) -> np.ndarray:
    """Return by how much the attack on the first targets moves the estimated count of every item of the case."""
    mechanism, items = case.mechanism, case.items
    honest = mechanism.encode(np.resize(items, HONEST), SeededWords(10))
    attack = forged_against if against else forged
    poisoned = np.concatenate([honest, attack(mechanism, items[:targets], FORGED, SeededWords(11))])
    return counted(mechanism, poisoned, items) - counted(mechanism, honest, items)


@each(CASES)
def test_on_one_target_the_attack_gains_exactly_the_bound(case: Case) -> None:
    bound = influence(case.mechanism)
    gained = gains(case, 1)
    assert gained[0] == pytest.approx(FORGED * bound.up, rel=1e-9)
    assert (gained <= FORGED * bound.up * (1 + 1e-9)).all()
    assert (gained >= -FORGED * bound.down * (1 + 1e-9)).all()
    # A client that holds the target adds one user on average: to forge is worth more.
    assert gained[0] > FORGED


# A report outside of a window hides the most only if all of them weigh the same: for a line see test_line.py.
@each([case for case in CASES if case.oracle not in MEANS])
def test_an_item_is_hidden_by_exactly_the_bound(case: Case) -> None:
    assert gains(case, 1, against=True)[0] == pytest.approx(-FORGED * influence(case.mechanism).down, rel=1e-9)


@each([case for case in CASES if len(case.items) >= 4])
def test_on_several_targets_no_target_gains_more(case: Case) -> None:
    """Together they gain at most as many times the bound, which unary reports reach and single cells do not."""
    bound, targets = influence(case.mechanism), 3
    gained = gains(case, targets)[:targets]
    assert (gained <= FORGED * bound.up * (1 + 1e-9)).all()
    e = math.exp(case.epsilon)
    if case.oracle == "grr":
        # Cao, Jia, Gong 2021, Table 1: a report supports one of r targets.
        assert gained.sum() == pytest.approx(FORGED * (1.0 + (case.mechanism.encoder.cells - targets) / (e - 1.0)))
    if case.oracle == "oue":
        assert gained.sum() == pytest.approx(FORGED * targets * (2.0 + 2.0 / (e - 1.0)))
    if not case.pooled:
        # On average an honest client of a target adds one user to all targets together; the best report adds more.
        assert gained.sum() > FORGED


def test_reports_that_support_every_item_make_few_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each item that seems frequent has a law of its own: with all bits set, all items do."""
    mechanism = build("rappor", 1.0, None, {"k": 8, "m": 16, "seed": ANY_SEED})
    items = fingerprints(f"item {number}" for number in range(300))
    honest = mechanism.encode(np.resize(items, 2000), SeededWords(12))
    full = np.zeros(400, dtype=mechanism.report)
    full["row"], full["bits"] = np.arange(400) % 8, 255
    assert mechanism.unpack(mechanism.pack(full))[1].all()
    made: list[CellSum] = []

    def counted_law(*arguments: np.ndarray) -> CellSum:
        made.append(cell_sum(*arguments))
        return made[-1]

    monkeypatch.setattr(pool_module, "cell_sum", counted_law)
    tally = mechanism.new_tally(items)
    mechanism.accumulate(tally, np.concatenate([honest, full]), items)
    estimate = mechanism.estimate(Tally(tally, 2400, items), items)
    assert len(made) <= 51
    bound = influence(mechanism)
    gained = estimate.count - counted(mechanism, honest, items)
    assert gained == pytest.approx(400 * bound.up, rel=1e-9)
    # All of them rise, and none above the others.
    assert not estimate.detected(0.05, len(items)).any()


def test_a_string_chosen_for_its_cells_in_a_pool_is_detected_though_nobody_holds_it() -> None:
    """A limit: the functions of a pool are public, so that a forger can choose among strings before any report is sent.

    Where functions are drawn for each report there is nothing to choose by.
    """
    mechanism = build("rappor", 3.0, None, {"k": 64, "m": 128, "seed": ANY_SEED})
    encoder = mechanism.encoder
    assert isinstance(encoder, Pooled)
    popular = int(fingerprints(["popular"])[0])
    strings = fingerprints(f"string {number}" for number in range(3000))
    shared = [int((encoder.cells_of(int(string)) == encoder.cells_of(popular)).sum()) for string in strings]
    chosen = strings[[int(np.argmax(shared))]]
    others = fingerprints(f"item {number}" for number in range(40))
    held = np.concatenate([np.full(10_000, popular, dtype=np.uint64), np.resize(others, 10_000)])
    reports = mechanism.encode(held, SeededWords(13))
    tally = mechanism.new_tally(held)
    mechanism.accumulate(tally, reports, held)
    estimate = mechanism.estimate(Tally(tally, len(held), held), chosen)
    assert estimate.detected(0.001).all()
    assert estimate.count[0] > 10_000 * (max(shared) - 1) / 64


def test_forged_reports_in_one_cell_of_a_pool_widen_the_interval_of_every_item() -> None:
    """A limit: the law of an item that nobody holds is that of random cells, of which a forger fills one.

    A tenth of the reports, in one cell, make it five times as wide, and take the detection of an item that is held.
    """
    mechanism = build("rappor", 3.0, None, {"k": 8, "m": 64, "seed": ANY_SEED})
    encoder = mechanism.encoder
    assert isinstance(encoder, Pooled)
    items = fingerprints(f"item {number}" for number in range(200))
    held = np.concatenate([np.resize(items, 9000), np.full(500, items[0], dtype=np.uint64)])
    honest = mechanism.encode(held, SeededWords(14))
    cell = next(cell for cell in range(64) if cell != encoder.cells_of(int(items[0]))[0])
    full = np.zeros(1000, dtype=mechanism.report)
    full["row"], full["bits"][:, cell // 8] = 0, 1 << cell % 8
    assert mechanism.unpack(mechanism.pack(full))[1].all()
    told = []
    for reports in (honest, np.concatenate([honest, full])):
        tally = mechanism.new_tally(items)
        mechanism.accumulate(tally, reports, items)
        estimate = mechanism.estimate(Tally(tally, len(reports), items), items[:1])
        low, high = estimate.interval(0.99)
        told.append((float(high[0] - low[0]), bool(estimate.detected(0.001)[0])))
    (width, detected), (wider, still) = told
    assert wider > 5 * width
    assert (detected, still) == (True, False)


# Discovery: forged pairs under the hash of an honest value.

RULE = KeepRule("optimal", 1.0, 1e-8)
CERTAIN = len(RULE.optimal_thresholds) - 1
"""The least count that is kept for certain, so that nothing here is left to chance."""


def released(pairs: list[bytes]) -> list[tuple[str, str | None]]:
    """Return what the analyzer makes of each bin that is kept of these pairs, each pair in a box of its own."""
    bins = bins_of_pairs(b"".join(pairs), len(pairs[0]))
    assert bins.counts.sum() == len(pairs)
    kept = np.ascontiguousarray(bins.pairs[draw_kept(RULE, bins.counts, SystemWords())])
    return [reveal(row.tobytes()) for row in kept.view(np.uint8).reshape(len(kept), len(pairs[0]))]


def test_forged_pairs_under_the_hash_of_a_value_do_not_lose_it(subtests: pytest.Subtests) -> None:
    """Nine in ten pairs, or 99 in 100, have the victim's hash and a box that does not open: it is revealed.

    Had the auxiliary server counted by hash and drawn a box of the bin, it would have drawn garbage as often.
    """
    for share in (0.5, 0.9, 0.99):
        for alike in (True, False):
            with subtests.test(share=share, alike=alike):
                number = math.ceil(CERTAIN * share / (1.0 - share))
                box_bytes = len(pair("victim")) - HASH_BYTES
                boxes = [(0 if alike else index).to_bytes(box_bytes, "big") for index in range(number)]
                outcome = released([pair("victim")] * CERTAIN + [FORM.hash("victim") + box for box in boxes])
                assert outcome.count(("accepted", "victim")) == 1
                assert {each for each in outcome if each != ("accepted", "victim")} <= {("unverified", None)}
                # Garbage that is alike is common enough for a bin of its own, and is not believed.
                assert len(outcome) == (2 if alike and number >= CERTAIN else 1)


def test_boxes_of_another_value_under_the_hash_do_not_lose_it_either() -> None:
    """The wrong value is sealed as an honest client would, sent nine times as often: neither is the other lost."""
    wrong = FORM.hash("victim") + SEALER.seal_alike(FORM.binding + FORM.pad("poison"), FORM.hash_key)
    outcome = released([pair("victim")] * CERTAIN + [wrong] * (9 * CERTAIN))
    assert sorted(outcome, key=str) == [("accepted", "victim"), ("unverified", None)]
