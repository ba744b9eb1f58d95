"""Simulation: seeded words, losses by hand, and runs that are the same whatever the threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from hushcount.oracles import simulation
from hushcount.oracles.catalogue import build
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.simulation import Losses, Population, SeededWords, exact_variance, gather, simulate
from hushcount.oracles.tally import Tally
from hushcount.randomness import SystemWords
from tests.hushcount.oracles.cases import pool_seed

HELD = np.array([40, 0, 7, 3])
EVERYONE = Population(np.arange(4, dtype=np.uint64), HELD)


def always(mechanism: Mechanism) -> Callable[[int], Mechanism]:
    return lambda run: mechanism


def losses_of(parts: Losses) -> dict[str, list[float]]:
    """Return all that must not depend on how long it took."""
    names = ("l1", "l2", "error", "square", "variance")
    return {name: getattr(parts, name).tolist() for name in names}


def test_words_depend_on_seed_run_and_call_alone() -> None:
    streams = {(seed, run): SeededWords(seed, run) for seed, run in itertools.product((0, 1, -1, 1 << 70), (0, 1, -1))}
    first = {key: tuple(words.words(4).tolist()) for key, words in streams.items()}
    assert len(set(first.values())) == len(first)
    again = SeededWords(1, -1)
    assert tuple(again.words(4).tolist()) == first[1, -1]
    assert tuple(again.words(4).tolist()) != first[1, -1]
    assert again.words(0).shape == (0,)
    assert again.words(3).flags.writeable


def test_losses_are_those_of_the_estimates() -> None:
    mechanism = build("ss", 1.0, 4, {"s": 2})
    found = gather(simulate(always(mechanism), EVERYONE, 3, seed=5))
    errors = []
    for run in range(3):
        counts = mechanism.new_tally(EVERYONE.items)
        reports = mechanism.encode(EVERYONE.clients, SeededWords(5, run))
        mechanism.accumulate(counts, reports, EVERYONE.items)
        estimate = mechanism.estimate(Tally(counts, 50, EVERYONE.items), EVERYONE.items).count
        errors.append((estimate - HELD) / 50)
    error = np.array(errors)
    assert found.runs == 3
    assert found.l1 == pytest.approx(np.abs(error).sum(axis=1), rel=1e-12)
    assert found.l2 == pytest.approx((error**2).sum(axis=1), rel=1e-12)
    assert found.error == pytest.approx(error.mean(axis=0), rel=1e-12)
    assert found.square == pytest.approx((error**2).mean(axis=0), rel=1e-12)
    assert found.variance == pytest.approx(mechanism.variance(50, HELD / 50) / 50**2, rel=1e-12)
    assert found.bias_z == pytest.approx(error.mean(axis=0) / np.sqrt(found.variance / 3), rel=1e-12)
    assert min(found.encode_seconds, found.tally_seconds, found.decode_seconds) >= 0.0


def test_only_items_of_interest_count() -> None:
    mechanism = build("grr", 1.0, 4, {})
    whole, part = (
        gather(simulate(always(mechanism), EVERYONE, 2, seed=5, interest=some)) for some in (slice(None), slice(1, 3))
    )
    assert part.error.tolist() == whole.error[1:3].tolist()
    assert part.variance.tolist() == whole.variance[1:3].tolist()
    assert np.all(part.l2 < whole.l2)


def test_threads_change_nothing(subtests: pytest.Subtests) -> None:
    for threads in (2, 5):
        with subtests.test(threads=threads):

            def pooled(run: int) -> Mechanism:
                return build("gcms", 1.0, None, {"k": 5, "m": 6, "s": 2, "seed": pool_seed(run)})

            one, many = (gather(simulate(pooled, EVERYONE, 7, seed=3, threads=number)) for number in (1, threads))
            assert losses_of(one) == losses_of(many)


def test_another_seed_and_no_seed_give_other_runs() -> None:
    mechanism = build("grr", 1.0, 4, {})
    found = [gather(simulate(always(mechanism), EVERYONE, 4, seed)).error.tolist() for seed in (1, 1, 2, None, None)]
    assert found[0] == found[1]
    # Four runs of fifty reports, equal in all their estimates, have probability below 1e-6.
    assert len({tuple(errors) for errors in found}) == 4


def test_runs_of_one_simulation_are_not_alike() -> None:
    found = gather(simulate(always(build("grr", 1.0, 4, {})), EVERYONE, 8, seed=1))
    assert len(set(found.l2.tolist())) > 4


def test_reports_are_made_in_parts_of_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = build("sue", 1.0, 4, {})
    asked = []

    class Recording(SeededWords):
        def words(self, count: int) -> np.ndarray:
            asked.append(count)
            return super().words(count)

    monkeypatch.setattr(simulation, "_CHUNK_BYTES", 16 * mechanism.report.itemsize)
    monkeypatch.setattr(simulation, "SeededWords", Recording)
    found = gather(simulate(always(mechanism), EVERYONE, 1, seed=1))
    assert asked.count(16) >= 3  # 16, 16, 16 and 2 reports
    assert max(asked) <= 64
    assert np.all(np.isfinite(found.error))


def test_the_variance_of_a_pool_holds_its_collisions() -> None:
    mechanism = build("gcms", 1.0, None, {"k": 5, "m": 6, "s": 2, "seed": pool_seed(1)})
    squares = (HELD**2).sum() - HELD**2
    expected = mechanism.variance(50, HELD / 50) + mechanism.collision_variance(squares)
    assert exact_variance(mechanism, EVERYONE) == pytest.approx(expected / 50**2, rel=1e-12)


def test_the_variance_with_blocks_holds_who_is_near() -> None:
    # Blocks of 0, 2 and of 1, 3.
    mechanism = build("rhr", 1.0, 4, {"b": 2})
    near = np.array([7, 3, 40, 0]) / 50
    expected = [mechanism.law.noise(50, share, beside) for share, beside in zip(HELD / 50, near, strict=True)]
    assert exact_variance(mechanism, EVERYONE) == pytest.approx(np.array(expected) / 50**2, rel=1e-12)


def test_no_runs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"runs is 0,.*\b1\b"):
        gather(simulate(always(build("grr", 1.0, 4, {})), EVERYONE, 0))


def test_without_a_seed_words_are_the_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []

    class Recording(SystemWords):
        def words(self, count: int) -> np.ndarray:
            used.append(count)
            return super().words(count)

    monkeypatch.setattr(simulation, "SystemWords", Recording)
    gather(simulate(always(build("grr", 1.0, 4, {})), EVERYONE, 2))
    assert used
