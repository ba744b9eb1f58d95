"""The main job: real values through the real pipelines, on the embedded runner, to estimates and found words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow.parquet as pq
import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import known_items
from hushcount.discovery.pairs import COUNT_BYTES, HASH_BYTES, split_released
from hushcount.oracles.encoders.pool import Pooled
from hushcount.oracles.mechanism import Mechanism
from hushcount.oracles.tally import load
from hushcount.privacy.statement import statement
from hushcount.privacy.words import in_one_line
from hushcount.results import schema
from hushcount.senders import Senders
from keys.roles import OPENING_ROLES
from pipelines.outputs.summary import digest_of_json
from tests.pipelines.conftest import LISTED, OUTSIDE, POPULAR, RARE, REPRESENTATIVE, TOTAL, TRUTH, World
from tests.support.jobs import (
    ALPHA,
    BEAM,
    Chain,
    Run,
    done,
    estimates,
    files_under,
    found,
    new_campaign,
    read_csv,
    summary,
    values_of,
    write_lines,
)
from tests.support.records import key_file, read_file

Collected = Callable[[str], Chain]
ERRORS = ["standard_error", "collision_error"]
COLUMNS = ["item", "count", *ERRORS, "low", "high", "low_all", "high_all", "detected", "detected_all"]
PRECISE = ("ocms", "ais", "ss", "wss")
WITH_DICTIONARY = [name for name in REPRESENTATIVE if name != "open"]


def tolerance(campaign: Campaign, row: Mapping[str, float], truth: float, items: int) -> float:
    """Return how far an estimate of one of `items` items may be off, all together failing below ALPHA.

    Noise: given the functions, an item's score is a sum of independent bits, so Bernstein's inequality holds with the
    exact variance and a largest step of `1/(p*-q*)` users, twice that where a score may be -1; two sides and `items`
    items by Bonferroni, at half of ALPHA. Collisions: a pair of items shares Binomial(k, 1/m) of a pool's rows, 8 on
    average here; 12 standard deviations are exceeded with a probability far below the other half.
    """
    mechanism = campaign.require_frequency()
    variance = max(float(mechanism.variance(TOTAL, truth / TOTAL)), row["standard_error"] ** 2)
    step = (1.0 - mechanism.law.least) / float(mechanism.law.gain)
    log = math.log(2.0 * items / (ALPHA / 2.0))
    noise = log * step / 3.0 + math.sqrt((log * step / 3.0) ** 2 + 2.0 * log * variance)
    return noise + 12.0 * row["collision_error"]


def agrees(campaign: Campaign, rows: Mapping[str, Mapping[str, float]], truth: Mapping[str, float]) -> bool:
    return all(
        abs(row["count"] - truth[item]) <= tolerance(campaign, row, truth[item], len(rows))
        for item, row in rows.items()
    )


def noise(mechanism: Mechanism, listed: Sequence[str]) -> np.ndarray:
    """Return float64[items]: the exact standard errors of the listed items, in this order, given who holds what."""
    held = np.array([*(LISTED[item] for item in listed), OUTSIDE])
    near = mechanism.encoder.near_users(np.arange(len(held), dtype=np.uint64), held)
    return np.sqrt(mechanism.variance(TOTAL, held / TOTAL, None if near is None else near / TOTAL))[:-1]


@pytest.mark.parametrize("name", WITH_DICTIONARY)
@pytest.mark.long(but=("ais", "gcms", "ss"))
def test_estimates_hold_the_truth(collected: Collected, name: str) -> None:
    """Fails with probability below 1e-6 for each mechanism, half for items, half for `other`; a wrong truth fails."""
    chain = collected(name)
    rows = estimates(chain.path("results"))
    assert sorted(rows) == sorted(LISTED)
    # Without --items, the largest count is the first row.
    assert [row["count"] for row in rows.values()] == sorted((row["count"] for row in rows.values()), reverse=True)
    assert agrees(chain.campaign, rows, LISTED)
    turned = dict(zip(LISTED, reversed(LISTED.values()), strict=True))
    assert not agrees(chain.campaign, rows, turned)
    mechanism = chain.campaign.require_frequency()
    dictionary = chain.campaign.read_dictionary()
    assert dictionary is not None
    stated = np.array([rows[item]["standard_error"] for item in dictionary.items])
    assert np.all(np.abs(stated / noise(mechanism, dictionary.items) - 1.0) < 0.25)
    pooled = isinstance(mechanism.encoder, Pooled)
    assert all((row["collision_error"] > 0.0) == pooled for row in rows.values())
    # `other` stands in the summary and not among the items, and is not what a dictionary without it would give, zero:
    # that is told apart where the tolerances of 0 and of the truth together are below the truth.
    other = summary(chain.path("results"))["other"]
    assert set(other) == {"count", *ERRORS, "low", "high", "detected"}
    assert abs(other["count"] - OUTSIDE) <= tolerance(chain.campaign, other, OUTSIDE, 1)
    if name in PRECISE:
        assert abs(other["count"]) > tolerance(chain.campaign, other, 0.0, 1)
        assert other["detected"]
    assert other["low"] < other["count"] < other["high"]


def test_estimates_of_an_open_domain_hold_the_truth(collected: Collected, world: World) -> None:
    """Fails with probability below 1e-6: listed, unlisted and never sent items alike are asked of the tally."""
    chain = collected("open")
    files = files_under(chain.path("results"))
    assert set(files) == {"summary.json", "tally.npz", "report.html", "estimates.parquet"}
    assert pq.read_table(chain.path("results") / "estimates.parquet").num_rows == 0
    assert "other" not in summary(chain.path("results"))
    results = chain.analyze("--items", world.items, out="asked")
    rows = estimates(results)
    truth = {**LISTED, **POPULAR, "never sent": 0}
    assert list(rows) == list(truth)
    assert agrees(chain.campaign, rows, truth)
    assert not agrees(chain.campaign, rows, dict(zip(truth, reversed(truth.values()), strict=True)))


def test_received_is_accepted_and_rejected_at_every_hop(subtests: pytest.Subtests, collected: Collected) -> None:
    for name in ("ais", "grr", "open"):
        with subtests.test(name=name):
            chain = collected(name)
            campaign = chain.campaign
            hops = {hop: summary(chain.path(directory)) for hop, directory in JOBS.items()}
            for hop, data in hops.items():
                assert data["hop"] == hop
                assert data["campaign"] == name
                assert data["fingerprint"] == campaign.fingerprint.hex()
                # What analyze accepts of discovery is no frequency report: that stream is another job's.
                streams = ("reports",) if hop == "analyze" else campaign.streams
                assert tuple(data["streams"]) == streams
                for counts in (data, *data["streams"].values()):
                    assert counts["received"] == counts["accepted"] + sum(counts["rejected"].values())
                assert all(counts["received"] == counts["accepted"] == TOTAL for counts in data["streams"].values())
                assert data["received"] == TOTAL * len(streams)
            assert [hop["hop"] for hop in hops["analyze"]["upstream"]] == ["encode", "shuffle"]


JOBS = {"encode": "encoded", "shuffle": "shuffled", "analyze": "results"}


def test_csv_and_parquet_hold_the_same(subtests: pytest.Subtests, collected: Collected) -> None:
    for name in ("ais", "wss"):
        with subtests.test(name=name):
            results = collected(name).path("results")
            table = pq.read_table(results / "estimates.parquet")
            rows = read_csv(results / "estimates.csv")
            assert table.column_names == schema().names
            # Nobody told a job by hand which window its reports are of.
            assert {table[name].null_count for name in ("window", "window_start", "window_end")} == {table.num_rows}
            assert list(rows[0]) == COLUMNS
            *listed, last = table.to_pylist()
            assert (last["item"], last["other"], len(listed)) == (None, True, len(LISTED))
            for whole, text in zip(listed, rows, strict=True):
                stored = {name: whole[name] for name in COLUMNS}
                marks = {column: str(stored[column]).lower() for column in COLUMNS[-2:]}
                assert {**text, **{name: float(text[name]) for name in COLUMNS[1:-2]}} == {**stored, **marks}
                assert stored["low_all"] < stored["low"] < stored["count"] < stored["high"] < stored["high_all"]


def test_detected_items_are_in_the_table_the_summary_and_the_page(collected: Collected) -> None:
    chain = collected("wss")
    results, bold = chain.path("results"), chain.path("bold")
    asked = ("--tally", results / "tally.npz", "--items", results / "estimates.csv")
    done("job", "estimate", "--campaign", chain.campaign_path, *asked, "--out", bold, "--false-positives", 0.4)
    with (results / "tally.npz").open("rb") as stream:
        tally = load(stream, chain.campaign.fingerprint)
    mechanism, items = chain.campaign.require_frequency(), list(estimates(results))
    estimate = mechanism.estimate(tally, known_items(mechanism, chain.campaign.read_dictionary(), items))
    for directory, rate in ((results, 0.001), (bold, 0.4)):
        rows, data = estimates(directory), summary(directory)
        low, high = estimate.interval(0.95)
        low_all, high_all = estimate.interval(0.95, len(items))
        for place, row in enumerate(rows.values()):
            assert row["detected"] == (estimate.p_values()[place] <= rate)
            told = [row[name] for name in ("low", "high", "low_all", "high_all")]
            assert told == pytest.approx([each[place] for each in (low, high, low_all, high_all)], abs=1e-3)
        number = sum(row["detected"] for row in rows.values())
        assert rows["alpha"]["detected"]
        assert (data["false_positive_rate"], data["detected"], data["items"]) == (rate, number, len(LISTED))
        page = (directory / "report.html").read_text(encoding="utf-8")
        together = estimate.p_values() <= 0.05 / len(items)
        assert [row["detected_all"] for row in rows.values()] == together.tolist()
        assert data["detected_all"] == together.sum()
        # The largest are of these only: the largest of raw estimates are noise.
        counts = sorted((row["count"] for row in rows.values() if row["detected_all"]), reverse=True)[:10]
        largest = [one["item"] for one in data["largest"]]
        # Items of equal counts may be in any order.
        assert [rows[item]["count"] for item in largest] == counts
        assert len(set(largest)) == len(largest)
        assert all(rows[item]["detected_all"] for item in largest)
        assert all(one["share"] == one["count"] / TOTAL for one in data["largest"])
        assert re.search(rf"{together.sum()} items .*among {len(items)}:", page)
        assert f"the {number} items that are detected if each is tested alone" in page
        assert f"{100 * rate:g} %" in page
        assert page.count("<td>detected</td>") == number + together.sum()
        assert (
            "".join(f"<th scope='col'>{head}</th>" for head in ("low all", "high all", "detected", "detected all"))
            in page
        )
    assert summary(bold)["detected"] >= summary(results)["detected"]


@pytest.mark.parametrize("name", ["ss", *(pytest.param(name, marks=pytest.mark.long) for name in ("gcms", "open"))])
def test_a_stored_tally_gives_exactly_the_estimates_of_analyze(collected: Collected, world: World, name: str) -> None:
    chain = collected(name)
    asked = world.items if name == "open" else world.dictionary
    first = estimates(chain.analyze("--items", asked, out="first") if name == "open" else chain.path("results"))
    tally = chain.path("results") / "tally.npz"
    arguments = ("--campaign", chain.campaign_path, "--tally", tally, "--items", asked)
    done("job", "estimate", *arguments, "--out", chain.path("again"))
    assert estimates(chain.path("again")) == first
    few = write_lines(chain.path("few.txt"), list(first)[3:5])
    done("job", "estimate", *arguments[:-1], few, "--out", chain.path("few"), "--confidence", "0.5")
    part = estimates(chain.path("few"))
    assert list(part) == list(first)[3:5]
    for item, row in part.items():
        chosen = ("low", "high", "low_all", "high_all", "detected_all")
        assert {**first[item], **{name: row[name] for name in chosen}} == row
        assert row["detected_all"] >= first[item]["detected_all"]
        assert first[item]["low"] < row["low"] < row["count"] < row["high"] < first[item]["high"]


def test_both_streams_are_separate_and_lead_to_estimates_and_found_words(collected: Collected) -> None:
    chain = collected("ais")
    for name in ("encoded", "shuffled"):
        assert {path.split("/")[0] for path in files_under(chain.path(name))} == {
            "reports",
            "discovery",
            "summary.json",
        }
    directory = chain.discover(*BEAM)
    assert found(directory) == sorted(POPULAR)
    data = summary(directory)
    assert data["hop"] == "discover"
    assert data["streams"] == {"discovery": {"received": TOTAL, "accepted": TOTAL, "rejected": {}}}
    assert data["bins"] == {"kept": len(POPULAR), "found": len(POPULAR), "rejected": {}}
    assert [hop["hop"] for hop in data["upstream"]] == ["encode", "shuffle", "release"]
    assert set(files_under(directory)) == {"found.csv", "summary.json"}


def test_popular_is_certain_and_rare_next_to_impossible_for_the_rule(collected: Collected) -> None:
    """So that the test above fails with probability below 1e-6."""
    rule = collected("ais").campaign.require_keep_rule()
    assert all(rule.keep_probability(count) == 1.0 for count in POPULAR.values())
    assert 0.0 < sum(rule.keep_probability(count) for count in RARE.values()) < ALPHA


def test_found_words_are_shown_on_the_page(collected: Collected) -> None:
    chain = collected("ais")
    directory = chain.discover(out="found-for-page")
    page = (chain.analyze("--found", directory, out="with-found") / "report.html").read_text(encoding="utf-8")
    assert "plantedsecret" in page
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "default-src 'none'" in page
    for reference in ("src=", "<link", "@import", "url("):
        assert reference not in page


def test_discovery_by_two_parties_gives_what_one_machine_with_both_keys_gives(
    collected: Collected, world: World
) -> None:
    chain = collected("ais")
    together = chain.discover(out="together")
    alone = world.root / "alone"
    for role in OPENING_ROLES:
        (alone / role).mkdir(parents=True)
        kept = key_file(world.keys, role)
        (alone / role / kept.name).write_bytes(kept.read_bytes())
        (alone / role / kept.name).chmod(0o600)
    arguments = ("job", "discover", "--campaign", chain.campaign_path)
    released, revealed = chain.path("released"), chain.path("revealed")
    source = ("--input", chain.path("shuffled"), "--keys", alone / "aux_server", "--out", released)
    done(*arguments, "--party", "aux-server", *source, *BEAM)
    assert not (released / "found.csv").exists()
    assert summary(released)["hop"] == "release"
    source = ("--input", released, "--keys", alone / "analyzer", "--out", revealed)
    done(*arguments, "--party", "analyzer", *source, *BEAM)
    assert (revealed / "found.csv").read_bytes() == (together / "found.csv").read_bytes()
    both, apart = summary(together), summary(revealed)
    # The operator names a batch by its folder.
    assert apart == {**both, "batch": apart["batch"], "made_from": digest_of_json(summary(released))}


def test_released_records_of_a_campaign_with_counts_show_them(world: World) -> None:
    """Each count is off by more than its limits with probability 1e-9 at most."""
    path = new_campaign(
        world.root / "counted.json", world.keys, "--discovery-counts", mechanism=None, discovery=1.0
    )  # fmt: skip
    chain = Chain(path, world.keys)
    chain.encode(write_lines(world.root / "counted.txt", values_of({**POPULAR, **RARE})))
    chain.shuffle()
    released, found_in = chain.path("released"), chain.path("found")
    arguments = ("job", "discover", "--campaign", path, "--keys", world.keys)
    done(*arguments, "--party", "aux-server", "--input", chain.path("shuffled"), "--out", released)
    (file,) = (released / "bins").glob("*.blocks")
    header, rows = read_file(file)
    form, law = chain.campaign.discovery_format, chain.campaign.require_keep_rule().count_law
    assert header.record_bytes == chain.campaign.released_bytes == form.pair_bytes + COUNT_BYTES
    shown = {pair[:HASH_BYTES]: count for pair, count in (split_released(bytes(row), form, True) for row in rows)}
    assert shown.keys() == {form.hash(value) for value in POPULAR}
    for value, number in POPULAR.items():
        assert law.quantile(1e-9) <= (shown[form.hash(value)] or 0) - number <= law.most
    done(*arguments, "--party", "analyzer", "--input", released, "--out", found_in)
    assert found(found_in) == sorted(POPULAR) == found(chain.discover(out="at-once"))
    stated = summary(found_in)["privacy"]["discovery"]
    assert stated["count_deviation"] == law.standard_deviation


def test_a_campaign_of_discovery_only(world: World) -> None:
    path = new_campaign(world.root / "only.json", world.keys, mechanism=None, discovery=1.0)
    chain = Chain(path, world.keys)
    values = write_lines(world.root / "only.txt", values_of({**POPULAR, **RARE}))
    chain.encode(values)
    chain.shuffle()
    assert {name.split("/")[0] for name in files_under(chain.path("shuffled"))} == {"discovery", "summary.json"}
    assert found(chain.discover()) == sorted(POPULAR)
    assert summary(chain.path("found"))["privacy"].keys() >= {"discovery", "unit", "relation"}
    assert "local" not in summary(chain.path("found"))["privacy"]


@pytest.mark.parametrize("cap", [1, 3])
def test_the_cap_is_exact(world: World, cap: int) -> None:
    sent = {"anna": 1, "ben": 2, "cleo": 3, "dora": 4, "émile": 9, " ": 5}
    crowd = {f"client {index}": 1 for index in range(60)}
    lines = [f"{client}\talpha" for client, count in {**sent, **crowd}.items() for _ in range(count)]
    chain = Chain(
        new_campaign(
            world.root / f"cap{cap}.json", world.keys, "--cap", cap, dictionary=world.dictionary, discovery=2.0
        ),
        world.keys,
    )
    chain.encode(write_lines(world.root / f"cap{cap}.txt", lines), "--clients")
    chain.shuffle()
    kept = sum(min(count, cap) for count in {**sent, **crowd}.values())
    expected = {"received": len(lines), "accepted": kept, "rejected": {"over_cap": len(lines) - kept}}
    data = summary(chain.path("shuffled"))
    assert data["streams"] == {"reports": expected, "discovery": expected}
    assert not list(chain.path("shuffled").rglob("dead_letter"))
    assert summary(chain.analyze())["accepted"] == kept


def test_every_command_prints_json(world: World) -> None:
    root = world.root / "json"
    root.mkdir()
    keys = done("keys", "new", "--out", root / "keys", "--json").json
    assert [(key["role"], key["state"]) for key in keys["keys"]] == [("analyzer", "active"), ("aux_server", "active")]
    assert done("keys", "list", "--keys", root / "keys", "--json").json == keys
    path = root / "c.json"
    new = ("--id", "c", "--mechanism", "ss", "--epsilon", 1, "--dictionary", world.dictionary, "--keys", root / "keys")
    more = ("--discovery-epsilon", 1, "--discovery-delta", 1e-6, "--min-batch", 50)
    made = done("campaign", "new", *new, *more, "--out", path, "--json").json
    assert done("campaign", "show", "--campaign", path, "--json").json == made
    assert made["fingerprint"] == Campaign.read(path).fingerprint.hex()
    chain = Chain(path, root / "keys")
    common = ("--campaign", path)
    encoded, shuffled = chain.path("encoded"), chain.path("shuffled")
    runs: list[tuple[str, Run]] = [
        ("encoded", done("job", "encode", *common, "--values", world.values, "--out", encoded, "--json")),
        ("shuffled", done("job", "shuffle", *common, "--input", encoded, "--out", shuffled, "--json")),
        ("results", done(*chain.analyze_arguments(), "--json")),
        ("found", done(*chain.discover_arguments(), "--uncapped", "--json")),
    ]
    tally = chain.path("results") / "tally.npz"
    asked = ("--tally", tally, "--items", world.dictionary, "--out", chain.path("again"), "--json")
    runs.append(("again", done("job", "estimate", *common, *asked)))
    for directory, run in runs:
        assert run.json == {**summary(chain.path(directory)), "out": str(chain.path(directory))}
        # No line named its client.
        assert (run.json["authentication"], run.json["privacy"]["per"]) == ("none", "report")
    schema = done("campaign", "schema").json
    assert schema["title"] == "Campaign"


def test_without_json_people_get_a_table_and_sentences(collected: Collected) -> None:
    chain = collected("grr")
    run = done(*chain.analyze_arguments(out="for-people"))
    said = " ".join(run.out.split())
    assert f"{TOTAL:,}" in said
    assert in_one_line(statement(chain.campaign, TOTAL, Senders("client-token")))[1] in said
    assert str(chain.path("for-people")) in said


def test_the_statement_is_for_the_reports_that_arrived(collected: Collected) -> None:
    chain = collected("ais")
    privacy = summary(chain.path("results"))["privacy"]
    assert privacy["local"]["epsilon_per_report"] == chain.campaign.require_frequency().epsilon
    assert privacy["shuffled"]["reports"] == TOTAL
    assert privacy["shuffled"]["epsilon"] < privacy["local"]["epsilon"]
    assert privacy["discovery"]["epsilon"] == 1.0
    assert privacy["discovery"]["relation"] == "replace-one"
    total = privacy["total"]
    assert total["epsilon"] == privacy["shuffled"]["epsilon"] + 1.0
    assert sum(TRUTH.values()) == TOTAL
