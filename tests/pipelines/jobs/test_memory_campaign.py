"""A campaign of clients that remember, by command: what is stated, charged and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hushcount.campaigns.campaign import Campaign
from tests.support.jobs import done, new_keys, refused, write_lines

VALUES = ["alpha"] * 300 + ["beta"] * 100


def new(root: Path, name: str, *more: object) -> Path:
    path = root / f"{name}.json"
    words = write_lines(root / "words.txt", ["alpha", "beta", "gamma"])
    done(
        "campaign", "new", "--id", name, "--mechanism", "ss", "--epsilon", 1, "--dictionary", words,
        "--keys", root / "keys", "--min-batch", 100, "--out", path, "--memory", *more,
    )  # fmt: skip
    return path


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("memory")
    new_keys(root / "keys")
    write_lines(root / "values.txt", VALUES)
    new(root, "one")
    return root


@pytest.mark.usefixtures("either_engine")
def test_batches_of_an_epoch_are_charged_together_and_the_statement_is_that_of_the_epoch(root: Path) -> None:
    campaign, ledger = root / "one.json", root / "ledger.db"
    assert Campaign.read(campaign).memory
    spent, encoded = [], root / "encoded"
    done("job", "encode", "--campaign", campaign, "--values", root / "values.txt", "--out", encoded)
    # As a collector that tells clients apart would hand them on: else no gain is stated, of the first batch neither.
    told = json.loads((encoded / "summary.json").read_text())
    (encoded / "summary.json").write_text(json.dumps(told | {"authentication": "client-token"}))
    for day in (0, 1):
        shuffled, results = (root / f"{name}-{day}" for name in ("shuffled", "results"))
        done("job", "shuffle", "--campaign", campaign, "--input", encoded, "--out", shuffled)
        command = (
            "job",
            "analyze",
            "--campaign",
            campaign,
            "--input",
            shuffled,
            "--keys",
            root / "keys",
            "--out",
            results,
        )
        summary = done(*command, "--ledger", ledger, "--json").json
        spent.append(summary["ledger"]["spent"])
        assert "All counts of the epoch together" in summary["privacy"]["plain"][0]
    local, shuffled_epsilon = (summary["privacy"][name]["epsilon"] for name in ("local", "shuffled"))
    assert [each["epsilon"] for each in spent] == [shuffled_epsilon, local]
    assert [each["releases"] for each in spent] == [1, 2]
    assert local == summary["privacy"]["local"]["epoch_epsilon"] > shuffled_epsilon
    done("ledger", "check", "--ledger", ledger)


def test_privacy_says_what_an_epoch_costs_and_claims_nothing_of_linked_reports(root: Path) -> None:
    one = done("privacy", "--campaign", root / "one.json", "--reports", 100_000, "--json")
    assert one.json["epoch_epsilon"] == one.json["local_epsilon"] > one.json["shuffled_epsilon"]
    assert "epsilon 1" in one.err
    two = new(root, "two", "--cap", 2, "--memory-values", 3)
    says = ["2 reports a batch", "epsilon 3"]
    refused("privacy", "--campaign", two, "--reports", 100_000, says=says)


def test_what_cannot_be_is_refused_in_one_sentence(root: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "named.txt", ["ann\talpha"])
    command = (
        "job",
        "encode",
        "--campaign",
        root / "one.json",
        "--values",
        tmp_path / "named.txt",
        "--out",
        tmp_path / "o",
    )
    refused(*command, "--clients", says=["campaign one", "--clients"])
    made = ("campaign", "new", "--id", "x", "--keys", root / "keys", "--out", tmp_path / "x.json")
    oracle = ("--mechanism", "ss", "--epsilon", 1, "--dictionary", root / "words.txt")
    refused(*made, *oracle, "--memory-values", 2, says=["memory-values is 2", "--memory"])
    refused(*made, "--discovery-epsilon", 1, "--memory", says=["memory", "mechanism"])
