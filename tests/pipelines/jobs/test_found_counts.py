"""Counts of discovered values through the jobs: what is written, what page and console say, what is refused."""

from __future__ import annotations

import html
import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcount.campaigns.dictionary import Dictionary
from hushcount.discovery.found_counts import unbiased_from
from hushcount.errors import FormatError, UsageError
from keys import directories
from pipelines.jobs.found import (
    ANSWERED,
    COMBINED_COLUMNS,
    COUNT_COLUMNS,
    NOT_COMBINED,
    OTHER_BATCH,
    combined,
    explain,
    put_counts,
    read_counts,
    was_combined,
    write_found,
)
from pipelines.jobs.new_campaign import create_campaign
from pipelines.outputs.summary import digest_of_json
from tests.pipelines.conftest import OUTSIDE, POPULAR, World
from tests.support.jobs import Chain, done, estimates, new_campaign, new_keys, read_csv, summary, write_lines

DISCOVERY = {"epsilon": 1.0, "delta": 1e-9, "counts": True}
FAR = 60.0
"""An error that the noise exceeds with probability below 1e-9: `e^(-0.4 * 60)` and less."""


def collected(world: World, folder: Path, *, listed: bool, cap: int = 1) -> Chain:
    folder.mkdir()
    campaign = create_campaign(
        "counted",
        directories.read_public([world.keys]),
        folder,
        mechanism="grr" if listed else "gcms",
        epsilon=2.0 if listed else 4.0,
        dictionary=world.dictionary if listed else None,
        settings=None if listed else {"k": 32, "m": 128},
        discovery=DISCOVERY,
        shuffle={"minimum_batch": 50, "cap": cap},
    )
    path = folder / "counted.json"
    campaign.write(path)
    chain = Chain(path, world.keys)
    chain.encode(world.values)
    chain.shuffle()
    return chain


@pytest.fixture(scope="module")
def closed(world: World, tmp_path_factory: pytest.TempPathFactory) -> Chain:
    return collected(world, tmp_path_factory.mktemp("counts") / "closed", listed=True)


@pytest.mark.usefixtures("either_engine")
def test_found_values_have_counts_largest_first(closed: Chain) -> None:
    found = closed.discover("--overwrite", out="found")
    rows = read_csv(found / "found.csv")
    assert list(rows[0]) == ["item", *COUNT_COLUMNS]
    assert [row["item"] for row in rows] == sorted(POPULAR, key=lambda item: -POPULAR[item])
    for row in rows:
        count, low, high = (float(row[name]) for name in ("count", "low", "high"))
        assert abs(count - POPULAR[row["item"]]) < FAR
        assert low < count < high
        assert "." not in row["low"] + row["high"]
        assert float(row["bias"]) == 0.0
    facts = summary(found)["counts_of_values"]
    assert facts["unit"] == "clients"
    assert facts["standard_error"] == float(rows[0]["standard_error"])


def test_the_two_parties_apart_write_the_same_columns(closed: Chain) -> None:
    closed.discover("--party", "aux-server", out="released")
    apart = closed.discover("--party", "analyzer", source="released", out="apart")
    rows = read_csv(apart / "found.csv")
    assert {row["item"] for row in rows} == set(POPULAR)
    assert all(abs(float(row["count"]) - POPULAR[row["item"]]) < FAR for row in rows)


def test_other_is_explained_on_page_console_and_summary(closed: Chain) -> None:
    found = closed.discover(out="for-other")
    arguments = closed.analyze_arguments(out="explained")
    said = " ".join(done(*arguments, "--found", found).out.split())
    results = closed.path("explained")
    facts, explained = summary(results), summary(results)["other_explained"]
    assert explained["values"] == len(POPULAR)
    assert abs(explained["count"] - sum(POPULAR.values())) < len(POPULAR) * FAR
    assert explained["count"] + explained["rest"] == pytest.approx(facts["other"]["count"])
    assert explained["rest_error"] == pytest.approx(
        math.hypot(facts["other"]["standard_error"], explained["standard_error"])
    )
    # 6 standard deviations: 2e-9.
    assert abs(explained["rest"] - (OUTSIDE - sum(POPULAR.values()))) < 6 * explained["rest_error"]
    page = (results / "report.html").read_text(encoding="utf-8")
    for text in (said, page):
        assert f"{len(POPULAR)} discovered values" in text
    assert "<bdi>plantedsecret</bdi>" in page
    # A dictionary's campaign has no frequency estimate of a value that it does not list.
    assert list(read_csv(results / "found.csv")[0]) == ["item", *COUNT_COLUMNS]
    assert read_csv(results / "found.csv") == read_csv(found / "found.csv")


@pytest.mark.long
def test_an_open_domain_combines_both_counts(world: World, tmp_path: Path) -> None:
    chain = collected(world, tmp_path / "open", listed=False)
    found = chain.discover()
    results = chain.analyze("--found", found)
    rows = [
        {name: cell if name == "item" else float(cell or math.nan) for name, cell in row.items()}
        for row in read_csv(results / "found.csv")
    ]
    table = {row["item"]: row for row in pq.read_table(results / "estimates.parquet").to_pylist()}
    assert {row["item"] for row in rows} >= set(POPULAR)
    estimated, unbiased = estimates(results), unbiased_from(chain.campaign.require_keep_rule().count_law)
    for row in rows:
        one = estimated[row["item"]]
        error = math.hypot(one["standard_error"], one["collision_error"])
        assert one["collision_error"] > 0.0
        assert row["estimate"] == one["count"]
        assert row["estimate_error"] == pytest.approx(error)
        weights = [1 / row["standard_error"] ** 2, 1 / error**2]
        mean = (weights[0] * row["count"] + weights[1] * one["count"]) / sum(weights)
        if row["low"] < unbiased:
            assert math.isnan(row["combined"])
            assert math.isnan(row["combined_error"])
            assert table[row["item"]]["combined"] is None
            continue
        assert row["combined"] == table[row["item"]]["combined"] == pytest.approx(mean)
        assert row["combined_error"] == pytest.approx(sum(weights) ** -0.5)
    page = (results / "report.html").read_text(encoding="utf-8")
    assert "combined" in page
    assert "other_explained" not in summary(results)
    assert "found_apart" not in summary(results)


def again(chain: Chain, world: World) -> None:
    """Make a second batch of as many reports, whose summary has the same counts."""
    chain.encode(world.values, out="encoded-again")
    chain.shuffle(source="encoded-again", out="again")


def test_values_of_another_batch_are_shown_alone(closed: Chain, world: World) -> None:
    again(closed, world)
    first, second = (summary(closed.path(name)) for name in ("shuffled", "again"))
    assert first["streams"] == second["streams"]
    found = closed.discover(source="again", out="found-again")
    said = " ".join(done(*closed.analyze_arguments(out="beside"), "--found", found).out.split())
    results = closed.path("beside")
    assert summary(results)["found_apart"] == OTHER_BATCH
    assert "other_explained" not in summary(results)
    assert read_csv(results / "found.csv") == read_csv(found / "found.csv")
    page = html.unescape((results / "report.html").read_text(encoding="utf-8"))
    for text in (said, page):
        assert OTHER_BATCH in text
        assert "discovered values" not in text
    assert "<bdi>release</bdi>" not in page
    assert "other_explained" in summary(closed.analyze("--found", found, source="again", out="its-own"))


def test_a_release_by_another_party_is_known_to_be_of_the_batch(closed: Chain) -> None:
    closed.discover("--party", "aux-server", out="handed")
    apart = closed.discover("--party", "analyzer", source="handed", out="opened-apart")
    assert summary(apart)["shuffled"] == digest_of_json(summary(closed.path("shuffled")))
    results = closed.analyze("--found", apart, out="of-two-parties")
    assert summary(results)["other_explained"]["values"] == len(POPULAR)
    assert "found_apart" not in summary(results)


@pytest.mark.long
def test_an_open_domain_does_not_combine_values_of_another_batch(world: World, tmp_path: Path) -> None:
    chain = collected(world, tmp_path / "open", listed=False)
    again(chain, world)
    results = chain.analyze("--found", chain.discover(source="again"))
    assert list(read_csv(results / "found.csv")[0]) == ["item", *COUNT_COLUMNS]
    assert not was_combined(str(results / "found.csv"))
    assert summary(results)["found_apart"] == OTHER_BATCH
    assert set(estimates(results)) >= set(POPULAR)


def test_with_a_cap_above_one_a_count_is_of_reports(world: World, tmp_path: Path) -> None:
    chain = collected(world, tmp_path / "capped", listed=True, cap=3)
    facts = summary(chain.discover())["counts_of_values"]
    assert facts["unit"] == "reports"
    assert "3 reports" in facts["says"]


def test_with_an_evaluator_a_count_is_a_lower_bound_and_is_not_combined(tmp_path: Path) -> None:
    keys, evaluator = new_keys(tmp_path / "keys"), tmp_path / "evaluator"
    done("keys", "new", "--role", "evaluator", "--out", evaluator)
    words, values = write_lines(tmp_path / "words.txt", ["alpha"]), write_lines(tmp_path / "v.txt", ["unlisted"] * 150)
    options = ("--keys", evaluator, "--hash", "oblivious", "--discovery-counts")
    closed = new_campaign(tmp_path / "o.json", keys, *options, dictionary=words, discovery=2.0)
    sketch = ("--set", "k=32", "--set", "m=128")
    opened = new_campaign(tmp_path / "p.json", keys, *options, *sketch, mechanism="gcms", epsilon=4.0, discovery=2.0)
    for path in (closed, opened):
        chain = Chain(path, keys)
        chain.encode(values, "--evaluator", evaluator)
        chain.shuffle()
        found = chain.discover("--evaluator", evaluator)
        (row,) = read_csv(found / "found.csv")
        assert row["item"] == "unlisted"
        assert abs(float(row["count"]) - 150) < FAR
        facts = summary(found)["counts_of_values"]
        assert facts["unit"] == ANSWERED
        assert "lower bound" in facts["says"]
        results = chain.analyze("--found", found)
        assert list(read_csv(results / "found.csv")[0]) == ["item", *COUNT_COLUMNS]
        page = (results / "report.html").read_text(encoding="utf-8")
        assert f"Counts are of {ANSWERED}" in page
        if path == opened:
            assert summary(results)["found_apart"] == NOT_COMBINED
            assert NOT_COMBINED in page
            assert set(estimates(results)) == {"unlisted"}
        else:
            assert summary(results)["other_explained"]["lower_bound"] is True
            assert "lower bound" in page
            assert "found_apart" not in summary(results)


def table(**columns: list[float]) -> pa.Table:
    size = len(columns["count"])
    return pa.table({"item": [f"v{number}" for number in range(size)], **columns})


def test_a_value_without_an_estimate_has_empty_cells(tmp_path: Path) -> None:
    counts = table(count=[50.0, 40.0], standard_error=[3.0, 3.0], low=[44, 34])
    only = pa.table({"item": ["v1"], "count": [70.0], "standard_error": [3.0], "collision_error": [4.0]})
    both = combined(counts, only, 34)
    assert both.slice(0, 1).select(COMBINED_COLUMNS).to_pylist() == [dict.fromkeys(COMBINED_COLUMNS)]
    (row,) = both.slice(1, 1).to_pylist()
    assert (row["estimate"], row["estimate_error"]) == (70.0, 5.0)
    assert row["combined"] == pytest.approx((40 * 25 + 70 * 9) / 34)
    (biased,) = combined(counts, only, 35).slice(1, 1).to_pylist()
    assert (biased["estimate"], biased["combined"], biased["combined_error"]) == (70.0, None, None)
    put_counts(str(tmp_path), both)
    assert read_csv(tmp_path / "found.csv")[0]["combined"] == ""


def test_only_values_outside_the_dictionary_explain_other() -> None:
    counts = table(count=[50.0, 40.0, 30.0], standard_error=[3.0, 3.0, 4.0], bias=[0.1, 0.2, 0.3])
    explained = explain(100.0, 12.0, counts, Dictionary(("v1", "x")))
    assert (explained.values, explained.count, explained.rest) == (2, 80.0, 20.0)
    assert (explained.standard_error, explained.rest_error) == (5.0, 13.0)
    assert explained.bias == pytest.approx(0.4)


def test_a_value_that_was_released_twice_has_the_smaller_count(tmp_path: Path, closed: Chain) -> None:
    law = closed.campaign.require_keep_rule().count_law
    write_found([("x", 90), ("y", 70), ("x", 60)], str(tmp_path), law)
    read = read_counts(str(tmp_path / "found.csv"))
    assert read["item"].to_pylist() == ["y", "x"]
    assert [round(count + law.mean) for count in read["count"].to_pylist()] == [70, 60]


def test_no_value_at_all_is_a_table_without_rows(tmp_path: Path, closed: Chain) -> None:
    law = closed.campaign.require_keep_rule().count_law
    write_found([], str(tmp_path), law)
    read = read_counts(str(tmp_path / "found.csv"))
    assert read.num_rows == 0
    assert explain(10.0, 2.0, read, None).rest == 10.0
    assert combined(read, table(count=[], standard_error=[], collision_error=[]), 37).num_rows == 0


def test_a_count_that_is_no_number_is_refused(subtests: pytest.Subtests, tmp_path: Path) -> None:
    for line in ("v,x,3,1,2,0", "v,nan,3,1,2,0", "v,1,0,1,2,0", "v,1,inf,1,2,0", "v,1,-1,1,2,0", "v,1,3,1.5,2,0"):
        with subtests.test(line=line):
            (tmp_path / "found.csv").write_text(f"item,count,standard_error,low,high,bias\n{line}\n")
            with pytest.raises(FormatError, match=r"found\.csv.*count"):
                read_counts(str(tmp_path / "found.csv"))


def test_a_table_without_counts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "found.csv").write_text("item\nv\n")
    with pytest.raises(UsageError, match="count"):
        read_counts(str(tmp_path / "found.csv"))
