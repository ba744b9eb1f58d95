"""hushcount simulate: its numbers hold for every frequency oracle, can be repeated, and mistakes are one sentence."""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unicodedata import normalize

import numpy as np
import pytest

from hushcount.maths.bounds import largest_l1, least_l2
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import CATALOGUE, build, plan
from hushcount.oracles.simulation import Population, gather, simulate
from pipelines.jobs.simulate import MOST_VALUES, SimulationResult, simulate_values
from tests.support.jobs import done, refused, write_lines
from tests.support.statistics import deviations, variance_ratio_bounds

HELD = {"one": 90, "two": 70, "größe": 50, "three, four": 40, "five": 25, "six": 15, "seven": 8, "eight": 2}
N = sum(HELD.values())
RUNS = 400
KURTOSIS = 0.4
"""Excess kurtosis allowed for: sums of 300 bounded scores, and collisions where there is a pool."""
KEYS = {
    "mechanism", "parameters", "epsilon", "n", "d", "other", "runs", "l1", "l2", "worst_mse", "predicted_l2",
    "lower_bound_l2", "l1_at_bound", "l2_ratio_to_bound", "l2_ratio_to_predicted", "bias_z_max",
    "encode_us_per_report", "tally_us_per_report", "decode_seconds",
}  # fmt: skip
TIMES = {"encode_us_per_report", "tally_us_per_report", "decode_seconds"}


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("simulate") / "values.txt", lines(HELD))


def lines(held: Mapping[str, int]) -> list[str]:
    return [value for value, count in held.items() for _ in range(count)]


def untimed(result: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in TIMES}


def simulated(*options: object, mechanism: str = "ais", epsilon: float = 1.5, runs: int = 5) -> dict[str, Any]:
    """Run the command and return what it prints for machines."""
    arguments = ("--mechanism", mechanism, "--epsilon", epsilon, "--runs", runs, *options)
    told: dict[str, Any] = done("simulate", *arguments, "--json").json
    return told


def believes(result: SimulationResult, predicted: float) -> bool:
    """Return whether the measured l2 loss agrees with a prediction; wrong with probability FAILURE / 20.

    The l2 loss of a run is a sum of squares of correlated errors. Its spread is largest where they are all one: then
    the mean of the runs is chi-square with as many degrees of freedom.
    """
    low, high = variance_ratio_bounds(result.runs, len(CATALOGUE), KURTOSIS)
    return low <= result.l2 / predicted <= high


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.long(
    but=(
        "grr",
        "oue",
        "ais",
        "olh",
        "gcms",
        "hcms",
        "rhr",
    )
)
def test_every_oracle_has_the_predicted_loss_and_no_bias(values: Path, name: str) -> None:
    # All oracles together fail with probability 2e-6: half of it losses, half of it biases.
    settings = {"k": 64, "m": 32} if CATALOGUE[name].seeded else {}
    result = simulate_values(name, 1.5, values, runs=RUNS, seed=7, settings=settings)
    assert (result.mechanism, result.n, result.d, result.other, result.runs) == (name, N, len(HELD), 0, RUNS)
    assert believes(result, result.predicted_l2)
    assert not believes(result, 2.0 * result.predicted_l2)
    assert not believes(result, 0.5 * result.predicted_l2)
    assert result.bias_z_max < deviations(len(CATALOGUE) * len(HELD))
    # The exact law, from parameters as a campaign holds them; collisions over pools drawn anew.
    parameters = plan(name, 1.5, len(HELD), settings, Objective(), "5eed" * 16)
    mechanism = build(name, 1.5, len(HELD), parameters)
    assert set(result.parameters) == set(parameters) - {"seed"}
    if name != "rhr":  # what its variance depends on besides is tested with the mechanism
        held = np.array([HELD[item] for item in sorted(HELD)], dtype=np.float64)
        exact = mechanism.variance(N, held / N) + mechanism.collision_variance((held**2).sum() - held**2)
        assert result.predicted_l2 == pytest.approx(exact.sum() / N**2, rel=1e-9)
    assert result.epsilon == mechanism.epsilon
    assert result.lower_bound_l2 == least_l2(mechanism.epsilon, len(HELD), N) <= result.predicted_l2 * (1.0 + 1e-9)
    assert result.l1_at_bound == largest_l1(result.lower_bound_l2, len(HELD))
    assert result.l2_ratio_to_bound == result.l2 / result.lower_bound_l2
    assert result.l2_ratio_to_predicted == result.l2 / result.predicted_l2


def test_a_bias_is_seen() -> None:
    """Estimates of clients who hold other items than they are thought to are far outside; fails with 1e-6 at most."""
    items = np.arange(4, dtype=np.uint64)
    believed, true = np.array([300, 200, 100, 0]), np.array([200, 300, 100, 0])
    losses = gather(simulate(lambda _: build("grr", 2.0, 4, {}), Population(items, true), 100, 3))
    assert np.abs(losses.bias_z).max() < deviations(4)
    shifted = losses.error + (true - believed) / true.sum()
    assert np.abs(shifted / np.sqrt(losses.variance / losses.runs)).max() > deviations(4)


def test_the_json_has_these_keys(values: Path) -> None:
    told = simulated("--values", values)
    assert set(told) == KEYS
    assert (told["mechanism"], told["n"], told["d"], told["other"], told["runs"]) == ("ais", N, len(HELD), 0, 5)
    assert told["parameters"] == plan("ais", 1.5, len(HELD), {}, Objective(), "")
    assert all(told[name] > 0.0 for name in TIMES)
    assert told["worst_mse"] <= told["l2"]
    assert told["l1"] <= math.sqrt(told["d"] * told["l2"])


def test_a_seed_repeats_it_and_another_does_not(values: Path) -> None:
    for mechanism in (("ais",), ("gcms", "--set", "k=8", "--set", "m=16")):
        arguments = ("--values", values, *mechanism[1:])
        first, again, other = (
            simulated(*arguments, "--seed", seed, mechanism=mechanism[0]) for seed in (5, 5, 6)
        )  # fmt: skip
        assert untimed(first) == untimed(again)
        assert first["l2"] != other["l2"]
        assert (
            simulated(*arguments, mechanism=mechanism[0])["l2"] != simulated(*arguments, mechanism=mechanism[0])["l2"]
        )


def test_threads_change_nothing() -> None:
    population = Population(np.arange(5, dtype=np.uint64), np.array([50, 30, 20, 10, 0]))
    mechanism = build("ais", 1.0, 5, {"s": 2})
    alone, many = (gather(simulate(lambda _: mechanism, population, 12, 9, threads=threads)) for threads in (1, 4))
    assert np.array_equal(alone.l2, many.l2)
    assert np.array_equal(alone.error, many.error)
    assert len(set(alone.l2)) == 12


def test_parameters_and_objective_are_set(values: Path) -> None:
    assert simulated("--values", values, "--set", "s=3")["parameters"] == {"s": 3}
    target = simulated("--values", values, "--set", "target_share=0.9", mechanism="ocms")
    assert target["parameters"] == plan("ocms", 1.5, len(HELD), {}, Objective("target", 0.9), "")
    assert target["parameters"] != simulated("--values", values, mechanism="ocms")["parameters"]
    seed = "ab" * 32
    pool = ("--set", "k=8", "--set", "m=16", "--set", f"seed={seed}")
    assert simulated("--values", values, *pool, mechanism="rappor")["parameters"] == {"k": 8, "m": 16, "seed": seed}


def test_values_outside_the_dictionary_are_other_and_it_is_said(values: Path, tmp_path: Path) -> None:
    known = write_lines(tmp_path / "known.txt", ["two", "one", "never sent"])
    outside = N - HELD["one"] - HELD["two"]
    arguments = ("simulate", "--mechanism", "ais", "--epsilon", 1.5, "--runs", 3, "--values", values)
    run = done(*arguments, "--dictionary", known, "--json")
    assert (run.json["n"], run.json["d"], run.json["other"]) == (N, 4, outside)
    assert f"{outside} values" in run.err
    whole = write_lines(tmp_path / "whole.txt", HELD)
    run = done(*arguments, "--dictionary", whole, "--json")
    assert (run.json["d"], run.json["other"]) == (len(HELD), 0)
    assert "other" not in run.err


def test_text_gzip_and_table_are_the_same_values(values: Path, tmp_path: Path) -> None:
    packed, table = tmp_path / "values.txt.gz", tmp_path / "table.csv"
    packed.write_bytes(gzip.compress(values.read_bytes()))
    first = untimed(simulated("--values", values, "--seed", 1))
    assert untimed(simulated("--values", packed, "--seed", 1)) == first
    for header in (["item", "count"], ["count", "note", "value"]):
        with table.open("w", encoding="utf-8-sig", newline="") as stream:
            writer = csv.DictWriter(stream, header, restval="x")
            writer.writeheader()
            # The table has "größe" in its other spelling.
            for item, count in [(normalize("NFD", item), count) for item, count in HELD.items()] + [("one", 0)]:
                writer.writerow({"count": count, "item" if "item" in header else "value": item})
        assert untimed(simulated("--values", table, "--seed", 1)) == first


def test_people_get_every_number(values: Path) -> None:
    run = done("simulate", "--mechanism", "grr", "--epsilon", 2, "--values", values, "--runs", 3)
    assert "grr, 3 runs" in run.out
    assert all(name.replace("_", " ") in run.out for name in KEYS)


def test_files_that_are_no_values(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for content, says in (
        (b"", "no values"),
        (b"alpha\n\xff\xfe\n\xfe\n", "{path} has unfit lines, line 2 is not UTF-8; line 3"),
        (b"alpha\nb\x01\nbeta\nc\x01\n", "line 2 holds a control character; line 4"),
        (b"alpha\nalpha\n", "domain is 1"),
    ):
        with subtests.test(says=says):
            path = tmp_path / "v.txt"
            path.write_bytes(content)
            arguments = ("simulate", "--mechanism", "grr", "--epsilon", 1, "--values", path)
            assert refused(*arguments, says=[says.format(path=path)]).out == ""


def test_tables_that_are_none(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for content, says in (
        ("", "item (or value) and count"),
        ("item,number\na,1\n", "item (or value) and count"),
        ("count\n5\n", "item (or value) and count"),
        ("item,count\n", "no values"),
        ("item,count\na,0\nb,0\n", "no values"),
        ("item,count\na,5\nb,-1\n", "{path} has unfit lines, line 3 has the count '-1'"),
        ('item,count\n"a\nb",5\nc,1.5\n', "line 4 has the count '1.5'"),
        ("item,count\na,\u00b2\n", "line 2 has the count '\u00b2'"),
        ("item,count\na\n", "line 2 has too few columns"),
        (f"item,count\na,{MOST_VALUES}\nb,1\n", "1,000,000,001 values"),
        (f"item,count\na,{10**30}\nb,1\n", "holds 1,000,"),
        (f"item,count\na,{'9' * 5000}\n", "line 2 has the count '999"),
        (f"item,count,{'c' * 200_000}\na,1\n", "is not CSV"),
    ):
        with subtests.test(says=says):
            path = tmp_path / "v.csv"
            path.write_text(content, encoding="utf-8")
            refused("simulate", "--mechanism", "grr", "--epsilon", 1, "--values", path, says=[says.format(path=path)])


def test_bad_arguments_are_one_sentence(subtests: pytest.Subtests, values: Path) -> None:
    for options, says in (
        ({"--mechanism": "aiss"}, "ais?"),
        ({"--set": "s=8"}, "s is 8, must be in 1..7"),
        ({"--set": "s=one"}, "s is 'one'"),
        ({"--set": "B=4"}, "parameter B "),
        ({"--set": "s"}, "--set is 's'"),
        ({"--set": "objective=best"}, "objective is 'best'"),
        ({"--set": "target_share=2"}, "target_share is 2.0, must be in [0, 1]"),
        ({"--values": "none.txt"}, "none.txt"),
        ({"--values": "none.csv"}, "none.csv"),
        ({"--dictionary": "none.txt"}, "dictionary none.txt"),
    ):
        with subtests.test(options=options):
            arguments = {"--mechanism": "ss", "--epsilon": 1, "--values": values, **options}
            run = refused("simulate", *(part for pair in arguments.items() for part in pair), says=[says])
            assert run.out == ""


def test_dictionaries_that_are_none(subtests: pytest.Subtests, values: Path, tmp_path: Path) -> None:
    for known, says in (
        (["one", "two", "one"], "line 3 is line 1 again"),
        (["one", b"\xff", "", "two"], "line 2 is not UTF-8; line 3 is empty:"),
        ([], "empty"),
    ):
        with subtests.test(says=says):
            path = write_lines(tmp_path / "d.txt", known)
            arguments = ("simulate", "--mechanism", "grr", "--epsilon", 1, "--values", values, "--dictionary", path)
            refused(*arguments, says=[says])
