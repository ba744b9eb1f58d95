"""The comparison with peers: own rows against the exact variance, what the worker tells, what is said without it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import peer_worker, peers
from benchmarks.peer_worker import Told
from benchmarks.peers import (
    PeersMissing,
    Work,
    install,
    own_mechanism,
    own_oracle,
    own_row,
    parse,
    peer_row,
    row,
    values_of,
    works,
)
from hushcount.errors import HushcountError
from hushcount.oracles.simulation import Population, exact_variance
from tests.support.statistics import FAILURE, chi_square_p, draws_to_tell_apart, variance_ratio_bounds

ITEMS, REPEATS = 500, 6
HALF_OF_THEM = 2.0
"""An excess kurtosis that halves the degrees of freedom: the errors of two items are nearly uncorrelated, not quite."""
MECHANISMS = [*dict.fromkeys(work.mechanism for work in works(1, ITEMS, 1.0)), peers.RECOMMENDED]
TOLD = Told([3e-6, 2e-6], [8e-6, 4e-6], [[2.0, 1.0, 0.5], [1.0, 0.0, 0.0]], "1.2", "something")
WORK = Work("grr", 2, 3, 1.0)


def squares_beside_variance(spends: Work) -> float:
    """Return the mean squared error over what is exact for an epsilon of 1, whatever is spent."""
    held = np.bincount(values_of(spends), minlength=spends.items)
    population = Population(np.arange(spends.items, dtype=np.uint64), held)
    exact = exact_variance(own_mechanism(replace(spends, epsilon=1.0)), population) * spends.reports**2
    return own_row(spends, REPEATS).mean_squared_error / float(exact.mean())


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.long(but=("grr",))
def test_own_rows_miss_by_the_exact_variance(mechanism: str) -> None:
    """Fails with probability FAILURE; rejects a mechanism that spends three quarters of epsilon."""
    low, high = variance_ratio_bounds(ITEMS * REPEATS, kurtosis=HALF_OF_THEM)
    work = Work(mechanism, 4000, ITEMS, 1.0)
    assert low < squares_beside_variance(work) < high
    assert squares_beside_variance(replace(work, epsilon=0.75)) > high


def test_values_are_the_same_for_everyone_and_follow_their_law() -> None:
    law = 1.0 / np.arange(1, 9)
    draws = draws_to_tell_apart(law / law.sum(), np.full(8, 1 / 8))
    values = peer_worker.population(8, draws, 7)
    assert np.array_equal(values, peer_worker.population(8, draws, 7))
    counts = np.bincount(values, minlength=8)
    assert len(counts) == 8
    assert chi_square_p(counts, law) > FAILURE
    assert chi_square_p(counts, np.ones(8)) < FAILURE
    assert not np.array_equal(values, peer_worker.population(8, draws, 8))


def test_figures_are_the_medians_of_the_repeats_and_the_mean_of_the_squares() -> None:
    held = np.bincount(values_of(WORK), minlength=3)
    errors = [(2.0 - held[0]) ** 2, (1.0 - held[1]) ** 2, (0.5 - held[2]) ** 2]
    errors += [(1.0 - held[0]) ** 2, held[1] ** 2, held[2] ** 2]
    found = row("a peer", WORK, TOLD)
    assert (found.peer, found.version, found.mended) == ("a peer", "1.2", "something")
    assert (found.mechanism, found.reports, found.items, found.epsilon) == ("grr", 2, 3, 1.0)
    assert found.client_us == found.client_alone_us == pytest.approx(1.25)
    assert found.server_us == pytest.approx(3.0)
    assert found.server_seconds == pytest.approx(6e-6)
    assert found.spread == pytest.approx(2.0)
    assert found.mean_squared_error == pytest.approx(np.mean(errors))


def test_a_value_in_a_call_of_its_own_costs_us_more_than_one_of_many() -> None:
    found = own_row(Work("ais", 4000, ITEMS, 1.0), REPEATS)
    assert found.client_alone_us > 2.0 * found.client_us > 0.0


def test_what_the_worker_prints_is_read_as_it_was() -> None:
    oracle, values = own_oracle(own_mechanism(WORK), 3), values_of(WORK).astype(np.uint64)
    told = peer_worker.measure(lambda: oracle, values, 4, warm_up=1)
    assert parse("a warning\n" + json.dumps(asdict(told)) + "\n", WORK, 4) == told
    assert np.sum(told.estimates, axis=1) == pytest.approx(np.full(4, 2.0)), "answers of this mechanism add up to n"


def test_what_is_no_measurement_is_refused(subtests: pytest.Subtests) -> None:
    for printed, says in (
        ("", "no measurement"),
        ("Traceback", "no measurement but 'Traceback'"),
        ('{"client_seconds": 1}', "no measurement"),
        ('{"seconds": [1]}', "no measurement"),
        (json.dumps(asdict(replace(TOLD, estimates=[[1.0, 2.0]] * 2))), r"\(2, 2\) estimates"),
        (json.dumps(asdict(replace(TOLD, estimates=TOLD.estimates[:1]))), r"\(1, 3\) estimates"),
        (json.dumps(asdict(replace(TOLD, client_seconds=[1.0]))), "no measurement"),
        (json.dumps(asdict(replace(TOLD, client_seconds=[1.0], server_seconds=[1.0]))), r"\(2, 1\) times"),
        (json.dumps(asdict(replace(TOLD, server_seconds=[1.0, 0.0]))), "not positive"),
        (json.dumps(asdict(replace(TOLD, client_seconds=[1.0, float("nan")]))), "not positive"),
        (json.dumps(asdict(replace(TOLD, estimates=[[float("inf")] * 3] * 2))), "no number"),
    ):
        with subtests.test(printed=printed), pytest.raises(HushcountError, match=says):
            parse(printed, WORK, 2)


def test_work_is_what_was_asked_for_or_less() -> None:
    found = works(100_000, 1000, 1.0)
    assert {work.mechanism for work in found} == {name for oracles in peer_worker.PEERS.values() for name in oracles}
    assert max(work.reports for work in found) == 100_000
    assert {work.items for work in found if work.mechanism == "olh"} == {1000, peers.LARGE_ITEMS}
    assert {work.reports for work in works(10, 1000, 1.0)} == {10}
    assert min(work.reports for work in works(10, 1_000_000_000, 1.0)) == 1
    assert {work.mechanism for work in found} - {work.mechanism for work in works(10, 1000, 2.0)} == {"hr"}


def test_the_worker_imports_nothing_of_hushcount() -> None:
    imports = "import runpy, sys; runpy.run_path(sys.argv[1]); print({name.split('.')[0] for name in sys.modules})"
    command = [sys.executable, "-I", "-c", imports, peer_worker.__file__]
    run = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # our own script
    assert "'numpy'" in run.stdout
    assert "'hushcount'" not in run.stdout


def test_a_peer_that_fails_is_told_by_its_last_line() -> None:
    with pytest.raises(HushcountError, match="No module named 'pure_ldp'"):
        peer_row(Path(sys.executable), "pure-ldp", WORK, 1)


@pytest.mark.long
def test_peers_that_no_index_gives_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    said: list[str] = []
    with pytest.raises(PeersMissing) as missing:
        install(tmp_path, said.append)
    sentence = str(missing.value)
    assert sentence.startswith("the peers are not compared, as pip could not install pure-ldp==1.2.0")
    assert "No matching distribution found for" in sentence
    assert "PIP_INDEX_URL" in sentence
    assert "\n" not in sentence
    assert said == [f"installing {', '.join(peers.REQUIREMENTS)} in {tmp_path / 'peers'}"]
