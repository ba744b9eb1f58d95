"""What decoding costs: operations counted by hand for each kind of mechanism, and what they grow with."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import CATALOGUE, build, plan
from hushcount.oracles.decoding import BIT_NS, BUTTERFLY_NS, CELL_NS, HASH_NS, DecodeCost
from tests.support.words import SeededWords

SEED = "5eed" * 16
POOL = {"k": 8, "m": 32, "seed": SEED}
N, ASKED = 10_000, 500


def cost_of(name: str, parameters: dict, n: int = N, candidates: int = ASKED) -> DecodeCost:
    return build(name, 1.0, 100, parameters).decode_cost(n, candidates)


def test_a_tally_counts_every_supported_cell(subtests: pytest.Subtests) -> None:
    for name, parameters, cells in (
        ("grr", {}, 1),
        ("ss", {"s": 27}, 27),
        ("gcms", {**POOL, "s": 9}, 9),
        ("he", {}, 1),
        ("hcms", POOL, 1),
    ):
        with subtests.test(name=name, parameters=parameters):
            mechanism = build(name, 1.0, 100, parameters)
            items = np.arange(100, dtype=np.uint64)
            tally = mechanism.new_tally(items)
            mechanism.accumulate(tally, mechanism.encode(np.resize(items, N), SeededWords(3)), items)
            assert tally.sum() == N * cells
            more = cost_of(name, parameters, n=2 * N)
            assert more.operations - cost_of(name, parameters).operations == pytest.approx(N * cells)
            assert more.seconds - cost_of(name, parameters).seconds == pytest.approx(N * cells * CELL_NS * 1e-9)


def test_a_unary_tally_reads_every_bit(subtests: pytest.Subtests) -> None:
    for name, parameters, bits in (("oue", {}, 100), ("apple-cms", POOL, 32)):
        with subtests.test(name=name, parameters=parameters):
            more, once = cost_of(name, parameters, n=2 * N), cost_of(name, parameters)
            assert more.operations - once.operations == pytest.approx(N * bits)
            assert more.seconds - once.seconds == pytest.approx(N * bits * BIT_NS * 1e-9)


def test_a_pool_hashes_every_candidate_into_every_row() -> None:
    more, once = (cost_of("gcms", {**POOL, "s": 9}, candidates=count) for count in (2 * ASKED, ASKED))
    assert more.operations - once.operations == pytest.approx(ASKED * (8 + 1))
    assert more.seconds - once.seconds == pytest.approx(ASKED * (8 * HASH_NS + 1) * 1e-9)


def test_a_fast_transform_has_order_times_its_logarithm_of_steps(subtests: pytest.Subtests) -> None:
    for name, parameters, steps, hashes in [
        ("he", {}, 128 * 7, 0),  # the least power of two that has a row for each of 100 items
        ("rhr", {"b": 3}, 4 * 32 * 5, 0),  # for 25 in each of four blocks
        ("hcms", POOL, 8 * 32 * 5, 8),  # for 32 cells in each of eight rows
    ]:
        with subtests.test(name=name, parameters=parameters):
            cost = cost_of(name, parameters)
            support = build(name, 1.0, 100, parameters).responder
            cells = N * (support.p + (support.width - 1) * support.q)
            assert cost.operations == pytest.approx(cells + steps + ASKED * (hashes + 1))
            nanoseconds = cells * CELL_NS + steps * BUTTERFLY_NS + ASKED * (hashes * HASH_NS + 1)
            assert cost.seconds == pytest.approx(nanoseconds * 1e-9)


def test_affine_systems_cost_what_their_decoder_says() -> None:
    mechanism = build("ais", 1.0, 100, {"s": 27})
    told = mechanism.encoder.decode_cost(mechanism.responder, N, ASKED)
    assert told == mechanism.decode_cost(N, ASKED)


def test_more_reports_or_items_never_cost_less(subtests: pytest.Subtests) -> None:
    for name in CATALOGUE:
        with subtests.test(name=name):
            mechanism = build(name, 2.0, 60, plan(name, 2.0, 60, {}, Objective(), SEED))
            for n, candidates in ((1, 2), (1000, 60), (10**7, 60)):
                here = mechanism.decode_cost(n, candidates)
                assert 0.0 < here.seconds < math.inf
                assert here.seconds <= mechanism.decode_cost(10 * n, candidates).seconds
                assert here.seconds <= mechanism.decode_cost(n, 10 * candidates).seconds
