"""What leaves the shuffler says nothing of when, from where or by whom a report came: a classifier is at chance."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from hushcount.collection.envelopes import envelope_dtype
from hushcount.randomness import SystemWords
from hushcount.wire.blocks import HEADER_BYTES
from shuffler.mix import permuted
from tests.shuffler.test_shuffle import envelopes, numbers, passed, run_keys
from tests.support.jobs import Chain, new_campaign, new_keys, summary, write_lines
from tests.support.records import read_rows, write_envelopes
from tests.support.statistics import FAILURE

BATCHES = 5_000
REPORTS = 6
Order = Callable[[np.ndarray], tuple[list[int], list[int]]]
"""From a batch in the order of arrival to the reports in the order of the output, and the shard of each place."""


def guessed(features: np.ndarray, secrets: np.ndarray) -> float:
    """Return the probability that guessing at random gives as many right answers, of a classifier's on the later half.

    A linear one, fitted by least squares on the earlier half.
    """
    half = len(secrets) // 2
    inputs = np.column_stack([features, np.ones(len(features))])
    weights = np.linalg.lstsq(inputs[:half], secrets[:half] - 0.5, rcond=None)[0]
    right = int(((inputs[half:] @ weights > 0.0) == secrets[half:]).sum())
    return float(stats.binom.sf(right - 1, len(secrets) - half, 0.5))


def batch(secret: bool) -> np.ndarray:
    """Return six envelopes in the order of arrival; report 0 is first, its token and address least, or last."""
    arrival = [*range(1, REPORTS), 0] if secret else list(range(REPORTS))
    tokens = [(10 + number if number else 1 + 99 * secret) << 8 for number in arrival]
    return envelopes(tokens, arrival, [3_600_000 * (3 + place) for place in range(REPORTS)])


def shown(order: list[int], shards: list[int]) -> np.ndarray:
    """Return the features: which report is in which place, and in which shard."""
    shard_of = np.empty(REPORTS)
    shard_of[order] = shards
    return np.concatenate([np.eye(REPORTS)[order].reshape(-1), shard_of])


def attacked(order: Order) -> float:
    """Attack the orders of thousands of batches."""
    secrets = np.random.default_rng(11).integers(2, size=BATCHES).astype(bool)
    features = np.array([shown(*order(batch(bool(secret)))) for secret in secrets])
    return guessed(features, secrets)


# Orders: the real ones.


def permuted_alone(made: np.ndarray) -> tuple[list[int], list[int]]:
    return numbers(made["sealed"][permuted(np.arange(REPORTS), SystemWords())].tobytes()), [0] * REPORTS


def through_every_step(made: np.ndarray) -> tuple[list[int], list[int]]:
    """Return the output of the transform's own steps, one after the other, over two shards."""
    shards = sorted(passed([made], 1, 2, run_keys(SystemWords())).shards.items())
    order = [(number, shard) for shard, block in shards for number in numbers(block)]
    return [number for number, _ in order], [shard for _, shard in order]


def with_copies(made: np.ndarray) -> tuple[list[int], list[int]]:
    """The first to come is sent again by its client, the last by a thief; a thief is over its cap with the others."""
    thief = made.copy()
    thief["client_token"] = b"thief"
    return through_every_step(np.concatenate([made, made[:1], thief[::-1]]))


@pytest.mark.parametrize("order", [permuted_alone, with_copies])
@pytest.mark.long(but=("permuted_alone",))
def test_no_classifier_tells_who_came_when_from_thousands_of_batches(order: Order) -> None:
    """Failure probability 1e-6 each."""
    assert attacked(order) > FAILURE


# Orders: planted ones, each a shuffle that somebody has shipped. That one escapes has probability below 1e-6.

GENERATOR = np.random.default_rng(12)


def off_by_one(made: np.ndarray) -> np.ndarray:
    """Fisher-Yates whose partner is never the place itself: no report stays where it came (Sattolo's cycles)."""
    order = np.arange(REPORTS)
    for place in range(REPORTS - 1, 0, -1):
        other = GENERATOR.integers(place)
        order[[place, other]] = order[[other, place]]
    return order


def stops_early(made: np.ndarray) -> np.ndarray:
    """A permutation of all but the last to come, which stays last."""
    return np.append(GENERATOR.permutation(REPORTS - 1), REPORTS - 1)


def ties_in_order(made: np.ndarray) -> np.ndarray:
    """Sort by random keys of three bits, equal ones in the order of their arrival."""
    return np.argsort(GENERATOR.integers(8, size=REPORTS), kind="stable")


def by_arrival(made: np.ndarray) -> np.ndarray:
    return np.argsort(made["received_ms"], kind="stable")


def by_token(made: np.ndarray) -> np.ndarray:
    """Group by client, as an engine does, and go on without a permutation."""
    return np.argsort(made["client_token"], kind="stable")


def by_address(made: np.ndarray) -> np.ndarray:
    return np.array(sorted(range(REPORTS), key=lambda place: made["address"][place].tobytes()))


@pytest.mark.parametrize("order", [off_by_one, stops_early, ties_in_order, by_arrival, by_token, by_address])
@pytest.mark.long(but=("by_address",))
def test_a_planted_order_is_found_out(order: Callable[[np.ndarray], np.ndarray]) -> None:
    assert attacked(lambda made: (numbers(made[order(made)]["sealed"].tobytes()), [0] * REPORTS)) < FAILURE


def test_a_shard_by_arrival_is_found_out() -> None:
    """Every shard is permuted, but the early half goes to the first and the late half to the second."""
    halves = ([0, 1, 2], [3, 4, 5])

    def order(made: np.ndarray) -> tuple[list[int], list[int]]:
        mixed = np.concatenate([GENERATOR.permutation(half) for half in halves])
        return numbers(made[mixed]["sealed"].tobytes()), [0] * 3 + [1] * 3

    assert attacked(order) < FAILURE


# Files.


def test_names_sizes_times_and_modes_of_files_carry_counts_alone(tmp_path: Path) -> None:
    """Two collections of one size: other values, clients, times and addresses, other input files, older by a year."""
    keys, dictionary = new_keys(tmp_path / "keys"), write_lines(tmp_path / "items.txt", ["a", "b", "a longer item"])
    path = new_campaign(tmp_path / "one.json", keys, dictionary=dictionary)
    chain, long_ago = Chain(path, keys), time.time() - 365 * 86_400.0
    for name, values in (("first", ["a"] * 60 + ["b"] * 40), ("second", ["a longer item"] * 99 + ["not listed"])):
        chain.encode(write_lines(tmp_path / f"{name}.txt", values), out=name)
    rows = read_rows(chain.path("second") / "reports").copy()
    made = rows.view(envelope_dtype(chain.campaign.sealed_bytes("reports")))[:, 0]
    made["received_ms"] = int(1000 * long_ago) + np.arange(len(made))
    made["address"] = np.frombuffer(bytes(range(16)), dtype="V16")
    for index, part in enumerate((rows[:90], rows[90:])):
        write_envelopes(chain.path("late"), chain.campaign, "reports", part, f"late-{index}")
    (chain.path("late") / "summary.json").write_bytes((chain.path("second") / "summary.json").read_bytes())
    for file in chain.path("late").rglob("*"):
        os.utime(file, (long_ago, long_ago))
    seen = []
    for source in ("first", "late"):
        begun = time.time() - 1.0
        # The operator names a batch by its folder.
        out = chain.shuffle(source=source, out=f"of-{source}/shuffled")
        files = sorted(file for file in out.rglob("*") if file.is_file())
        assert all(begun <= file.stat().st_mtime <= time.time() + 1.0 for file in files)
        heads = [file.read_bytes()[:HEADER_BYTES] if file.suffix == ".blocks" else b"" for file in files]
        about = [(str(file.relative_to(out)), file.stat().st_size, file.stat().st_mode) for file in files]
        seen.append((about, heads, summary(out)))
    assert seen[0] == seen[1]
