"""hushcount plan: the JSON that machines read, the file that it writes, and what it refuses."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, fields
from pathlib import Path

import pytest
from scipy.stats import binom

from hushcount.campaigns.campaign import Campaign
from hushcount.campaigns.dictionary import read_dictionary
from hushcount.maths.objectives import Objective
from hushcount.oracles.catalogue import CATALOGUE
from hushcount.planning.planner import Candidate, Task, least_epsilon, make_plan, most_reports
from hushcount.planning.samples import least_sample
from hushcount.privacy.statement import statement
from hushcount.senders import Senders
from tests.pipelines.conftest import LISTED, World
from tests.support.jobs import Chain, cli, done, estimates, files_under, refused, summary, write_lines

KEYS = {"chosen", "reason", "epsilon", "reports", "candidates", "left_out"}
CANDIDATE = {
    "mechanism", "parameters", "p", "q", "variance_users2", "standard_error_users", "collision_error_users",
    "report_bits", "report_bytes", "sealed_bytes", "tally_mib", "decode_operations", "decode_seconds", "epsilon_spent",
}  # fmt: skip
PERFORMANCE = Path(__file__).parents[3] / "docs" / "performance.md"
ASKED = ("plan", "--epsilon", 1, "--reports", 100_000)


def test_the_json_has_these_keys_and_is_the_plan() -> None:
    told = done(*ASKED, "--dictionary-size", 500, "--json").json
    assert set(told) == KEYS | {"sealed"}
    assert {field.name for field in fields(Candidate)} == CANDIDATE
    assert all(set(one) == CANDIDATE for one in [told["chosen"], *told["candidates"]])
    plan = make_plan(Task(500), 1.0, 100_000)
    assert told["candidates"] == [asdict(one) for one in plan.candidates]
    assert told["chosen"] == asdict(plan.chosen)
    assert told["chosen"]["mechanism"] == "ais"
    assert (told["reason"], told["epsilon"], told["reports"]) == (plan.reason, 1.0, 100_000)
    errors = [one["standard_error_users"] ** 2 + one["collision_error_users"] ** 2 for one in told["candidates"]]
    assert errors == pytest.approx(sorted(errors), rel=1e-8)


def test_limits_and_names_narrow_the_choice() -> None:
    told = done(*ASKED, "--dictionary-size", 500, "--max-report-bytes", 2, "--max-tally-mib", 0.005, "--json").json
    assert all(one["report_bytes"] <= 2 and one["tally_mib"] <= 0.005 for one in told["candidates"])
    assert all(text in told["left_out"]["oue"] for text in (" 63 bytes", " 2"))
    assert {one["mechanism"] for one in told["candidates"]} | set(told["left_out"]) == set(CATALOGUE)
    few = done(*ASKED, "--dictionary-size", 500, "--mechanism", "oue", "--mechanism", "grr", "--json").json
    assert [one["mechanism"] for one in few["candidates"]] == ["oue", "grr"]
    assert few["left_out"] == {}
    limits = ("--max-report-bytes", 1, "--mechanism", "oue", "--mechanism", "olh")
    refused(*ASKED, "--dictionary-size", 500, *limits, says=[" oue: ", " 63", " olh:"])


def test_a_target_share_is_an_objective() -> None:
    share = ("--dictionary-size", 1000, "--target-share", 0.2, "--mechanism", "ais", "--json")
    told = done("plan", "--epsilon", 2, "--reports", 100_000, *share).json
    assert told == done("plan", "--epsilon", 2, "--reports", 100_000, *share, "--objective", "target").json
    assert told["chosen"]["parameters"] == {"s": 185}
    assert told["chosen"]["standard_error_users"] == pytest.approx(292.6, abs=0.05)
    worst = done(*ASKED, "--dictionary-size", 1000, "--objective", "mse", "--mechanism", "ais", "--json").json
    assert worst["chosen"] == asdict(make_plan(Task(1000, Objective("mse"), mechanisms=("ais",)), 1.0, 100_000).chosen)


def test_a_dictionary_counts_other_and_an_open_domain_needs_none(world: World) -> None:
    told = done(*ASKED, "--dictionary", world.dictionary, "--json")
    known = read_dictionary(world.dictionary)
    assert re.search(rf" {len(known.text):,} bytes.* {len(known.packed()):,} bytes, packed", " ".join(told.err.split()))
    listed = told.json
    assert listed == done(*ASKED, "--dictionary-size", len(LISTED) + 1, "--json").json
    told = done(*ASKED, "--open-domain", "--json").json
    assert {one["mechanism"] for one in told["candidates"]} == {
        name for name, one in CATALOGUE.items() if one.open_domain
    }
    assert told["chosen"]["mechanism"] == "ais"


@pytest.mark.long
def test_a_wanted_error_is_solved_for_epsilon_or_for_reports() -> None:
    wanted = ("plan", "--dictionary-size", 100, "--want-error", 300, "--json")
    told = done(*wanted, "--reports", 20_000).json
    plan = least_epsilon(Task(100), 20_000, 300.0)
    assert (told["epsilon"], told["reports"], told["chosen"]) == (plan.epsilon, 20_000, asdict(plan.chosen))
    assert told["chosen"]["standard_error_users"] <= 300.0
    told = done(*wanted, "--epsilon", 0.8).json
    assert (told["epsilon"], told["reports"]) == (0.8, most_reports(Task(100), 0.8, 300.0).reports)


def test_a_wanted_share_is_solved_for_reports_and_a_high_epsilon_is_warned_of(world: World, tmp_path: Path) -> None:
    wanted = ("plan", "--dictionary-size", 100, "--want-share", 0.05, "--power", 0.9, "--mechanism", "grr")
    told = done(*wanted, "--epsilon", 2, "--json").json
    assert told["detection"]["power"] >= 0.9
    assert told["detection"]["false_positive_rate"] == 0.05 / 100
    said = done(*wanted, "--epsilon", 2).out
    assert f" {told['detection']['power']:.3f} by {told['reports']:,} reports" in said
    refused(*wanted, says=["--want-share", "--epsilon"])
    refused(*wanted[:-4], "--power", 2, "--epsilon", 1, says=["power is 2", "(0, 1)"])
    arguments = ("--id", "c", "--mechanism", "grr", "--dictionary", world.dictionary, "--keys", world.keys)
    for epsilon in (8, 9):
        run = done("campaign", "new", *arguments, "--epsilon", epsilon, "--out", tmp_path / f"{epsilon}.json")
        assert ("warning: epsilon is 9" in run.err) == (epsilon == 9)


def test_a_mean_is_planned_in_its_unit(world: World, tmp_path: Path) -> None:
    """At epsilon 2 the greatest variance of one report on [-1, 1] is .984 (docs/adr/0055)."""
    asked = ("plan", "--number", "-500:1500", "--unit", "ms", "--mean", "--epsilon", 2)
    told = done(*asked, "--reports", 100_000, "--json").json
    assert (told["chosen"]["mechanism"], told["number"]["unit"], told["number"]["quantiles"]) == ("line", "ms", [])
    assert told["number"]["standard_error"] == pytest.approx(1000.0 * (0.984 / 100_000) ** 0.5, rel=1e-3)
    fewest = done(*asked, "--want-error", 10, "--json").json
    assert fewest["number"]["standard_error"] <= 10.0
    assert fewest["reports"] == pytest.approx(1000.0**2 * 0.984 / 10.0**2, rel=1e-3)
    where = ("--out", tmp_path / "m.json", "--id", "m", "--keys", world.keys)
    done(*asked, "--reports", 1000, *where)
    campaign = Campaign.read(tmp_path / "m.json")
    assert campaign.number is not None
    assert (campaign.number.mean, campaign.number.edges) == (True, ("-500", "1500"))
    for options in (("--objective", "mse"), ("--want-share", 0.1), ("--mechanism", "line")):
        refused(*asked, "--reports", 1000, *options, says=[options[0], "--mean"])
    refused(*asked, "--want-error", 1e-6, says=["want_error is 1e-06 ms"])


@pytest.mark.long
def test_the_least_epsilon_of_a_mean_reaches_the_error() -> None:
    asked = ("plan", "--number", "-500:1500", "--mean", "--reports", 100_000, "--want-error", 3.137, "--json")
    told = done(*asked).json
    assert told["number"]["standard_error"] <= 3.137
    assert told["epsilon"] == pytest.approx(2.0, rel=0.01)


def test_bins_are_planned_as_items_and_their_quantiles_in_the_unit() -> None:
    told = done(*ASKED, "--number", "0:60000", "--unit", "ms", "--bins", "log:64", "--json").json
    items = done(*ASKED, "--dictionary-size", 65, "--json").json
    assert told["chosen"] == items["chosen"]
    assert set(told) == KEYS | {"number", "sealed"}
    few = done("plan", "--reports", 1e6, "--epsilon", 1, "--number", "0:60000", "--bins", "log:64", "--json").json
    for one, better in zip(told["number"]["quantiles"], few["number"]["quantiles"], strict=True):
        assert set(one) == {"at", "bins", "low", "high"}
        assert one["low"] <= better["low"]
        assert one["bins"] >= better["bins"] >= 1
    # Even over 64 bins, with an error of the median of sqrt(32/2) 597 users and 1,562 users a bin: 3 bins on each side.
    assert told["number"]["quantiles"][0]["bins"] in (7, 8, 9)
    refused(*ASKED, "--number", "0:9", "--mechanism", "gcms", says=["gcms"])
    refused(*ASKED, "--number", "0:9", "--dictionary-size", 5, says=["--number", "--dictionary-size"])


def test_public_axes_cost_nothing_at_a_local_epsilon_and_at_a_shuffled_one_what_small_strata_do(
    world: World, tmp_path: Path
) -> None:
    """The local epsilon that fits the smallest stratum is stated of the campaign; the total is then of all reports."""
    axis = ("--public-by", f"platform={write_lines(tmp_path / 'platforms.txt', ['linux', 'mac'])}")
    many = ("--reports", 10**6, "--dictionary-size", 100, "--mechanism", "grr", "--json")
    local = done("plan", "--epsilon", 2, *many, *axis).json
    assert local["public"]["total_error"] == local["public"]["undivided_error"]
    assert local["public"]["total_error"] == done("plan", "--epsilon", 2, *many).json["chosen"]["standard_error_users"]
    limits = ("--shuffled-epsilon", 1, "--delta", 1e-6)
    undivided, totals = done("plan", *limits, *many).json, []
    for smallest in (25_000, 5_000, 1_000):
        told = done("plan", *limits, *many, *axis, "--min-batch", smallest).json
        alone = done("plan", *limits, "--reports", smallest, *many[2:]).json
        assert (told["epsilon"], told["public"]["reports"]) == (alone["epsilon"], smallest)
        assert told["public"]["stratum_error"] == alone["chosen"]["standard_error_users"]
        assert told["public"]["undivided_error"] == undivided["chosen"]["standard_error_users"]
        totals.append(told["public"]["total_error"])
    out, few = tmp_path / "told.json", ("plan", "--epsilon", 2, "--dictionary-size", 100, *axis)
    refused(*few, "--reports", 1000, "--min-batch", 5000, says=["--min-batch", "1,000"])
    refused("plan", "--epsilon", 2, *many, "--min-batch", 5000, says=["--public-by"])
    refused("plan", "--number", "0:10", "--mean", "--epsilon", 2, "--reports", 1000, *axis, says=["--public-by"])
    assert "issuer" in done("plan", *limits, *many[:-1], *axis, "--min-batch", 5000).out
    items = ("--dictionary", world.dictionary, "--id", "told", "--keys", world.keys, "--out", out)
    done("plan", "--epsilon", 2, "--reports", 10**6, *axis, "--min-batch", 5000, *items)
    assert Campaign.read(out).shuffle.minimum_batch == 5000
    # docs/adr/0059 states them.
    assert [round(one) for one in (told["public"]["undivided_error"], *totals)] == [9, 55, 112, 212]


def test_a_plan_names_the_sample_that_suffices() -> None:
    """The sample has too few clients with probability 1e-6 at most, by the binomial law; a smaller one has not."""
    asked = ("plan", "--dictionary-size", 1000, "--epsilon", 4, "--want-share", 0.001)
    told = done(*asked, "--clients", "1e8", "--json").json
    needed, sample = told["reports"], told["sample"]
    assert sample == {"clients": 10**8, "share": sample["share"], "least_share": 0.01}
    assert binom.cdf(needed - 1, 10**8, sample["share"]) <= 1e-6 < binom.cdf(needed - 1, 10**8, sample["share"] - 1e-4)
    assert f"campaign new --sample {sample['share']:.2%};" in " ".join(done(*asked, "--clients", "1e8").out.split())
    # A policy allows no smaller sample.
    assert "--sample 1.00%;" in " ".join(done(*asked, "--clients", "1e9").out.split())
    assert least_sample(needed, needed) == 1.0
    refused(*asked, "--clients", needed - 1, says=[f"clients is {needed - 1:,}", f"{needed:,}"])
    refused(*asked[:-2], "--reports", 10, "--clients", 10, says=["--clients", "--want-share"])


def test_a_local_epsilon_that_protects_nobody_from_the_parties_is_warned_of_and_all_wraps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    asked = ("plan", "--dictionary-size", 26000, "--reports", "1e6", "--mechanism", "grr")
    run = done(*asked, "--shuffled-epsilon", 1)
    local = done(*asked, "--shuffled-epsilon", 1, "--json").json["epsilon"]
    assert local > 8.0
    assert f"warning: epsilon is {local:g}, above 8" in run.err
    for limits in (("--shuffled-epsilon", 1, "--epsilon", 8), ("--epsilon", 8)):
        assert "warning" not in done(*asked, *limits).err
    assert all(len(line) <= 80 for line in run.out.splitlines())


def test_people_get_a_table_the_reason_and_what_is_left_out() -> None:
    run = done(*ASKED, "--dictionary-size", 2000)
    plan = make_plan(Task(2000), 1.0, 100_000)
    assert f"{100_000:,} reports, epsilon 1, 2,000 items" in run.out
    assert plan.reason in run.out
    rows = [line.split()[0] for line in run.out.splitlines() if line.split() and line.split()[0] in CATALOGUE]
    assert rows[: len(plan.candidates)] == [one.mechanism for one in plan.candidates]
    assert "wss: domain is 2000" in run.err
    assert "open domain" in done(*ASKED, "--open-domain").out


def test_sealed_reports_are_named_with_their_error_dummies_cost_and_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world: World
) -> None:
    """The law is summed here: f(z) falls by e^-.6 a step above 0 and by e^-.4 below, up to 29 (epsilon 1)."""
    chances = {z: math.exp(-0.6 * z if z >= 0 else 0.4 * z) for z in range(-400, 30)}
    whole = sum(chances.values())
    mean = sum(z * chance for z, chance in chances.items()) / whole
    variance = sum((z - mean) ** 2 * chance for z, chance in chances.items()) / whole
    asked = ("plan", "--dictionary-size", 26000, "--reports", "1e6", "--mechanism", "grr", "--shuffled-epsilon", 1)
    sealed = done(*asked, "--json").json["sealed"]
    noise, discovery = sealed["ways"]
    assert (sealed["epsilon"], sealed["delta"], sealed["left_out"]) == (1.0, 1e-8, {})
    assert noise["standard_error_users"] == pytest.approx(math.sqrt(2.0 * variance)) == pytest.approx(4.21, abs=0.005)
    assert discovery["standard_error_users"] == pytest.approx(math.sqrt(variance))
    assert noise["dummies_an_item"] == pytest.approx(2.0 * (29.0 - mean))
    assert noise["dummies"] == pytest.approx(26_000 * 2.0 * (29.0 - mean))
    # docs/adr/0061 states it of 30 windows; the ledger adds discovery's up.
    assert noise["windows_epsilon"] == pytest.approx(22.9, abs=0.05)
    assert discovery["windows_epsilon"] == pytest.approx(30.0, abs=0.05)
    assert (noise["shown_from"], discovery["shown_from"], discovery["dummies"]) == (0, 30, 0.0)
    # The shuffler's dummies have two boxes, and those of the auxiliary server one.
    listed = write_lines(tmp_path / "many.txt", (f"{number}" for number in range(25_999)))
    new = ("campaign", "new", "--noise", "--epsilon", 1, "--id", "w", "--dictionary", listed, "--window", "1d")
    done(*new, "--keys", world.keys, "--out", tmp_path / "w.json")
    campaign = Campaign.read(tmp_path / "w.json")
    assert noise["dummy_bytes"] == pytest.approx(noise["dummies"] / 2.0 * (campaign.layer_bytes + campaign.box_bytes))
    costs = re.search(r"\| seal it: two products \| (\S+) \| (\S+) \|", PERFORMANCE.read_text())
    assert costs is not None
    seconds = [float(cost) * 1e-6 * 1.5 * noise["dummies"] for cost in costs.groups()]
    assert [noise["seal_seconds"], noise["lanes_seconds"]] == pytest.approx(seconds)
    monkeypatch.setenv("COLUMNS", "80")
    said = " ".join(done(*asked).out.split())
    assert "sealed, not randomised: epsilon 1, delta 1e-08" in said
    assert "noise of the mixes 4.2 0 1,550,478 158.1 144.2 22.86 discovery with counts 3.0 30 0 0.0 0.0 30" in said
    assert all(sentence in said for sentence in sealed["words"])
    assert "either may be dishonest" in said
    assert "neither has a local guarantee" in said


def test_sealed_reports_are_planned_at_a_local_epsilon_too_and_not_where_no_dictionary_is_counted(
    tmp_path: Path,
) -> None:
    told = done("plan", "--epsilon", 0.5, "--reports", 1000, "--dictionary-size", 9, "--json").json["sealed"]
    assert (told["epsilon"], told["delta"], len(told["ways"])) == (0.5, 1e-8, 2)
    many = done("plan", "--epsilon", 0.5, "--reports", 1000, "--dictionary-size", 10**6, "--mechanism", "grr", "--json")
    assert "1,000,000 items need up to" in many.json["sealed"]["left_out"]["noise of the mixes"]
    assert "left out: noise of the mixes: noise: 1,000,000 items" in " ".join(
        done("plan", "--epsilon", 0.5, "--reports", 1000, "--dictionary-size", 10**6, "--mechanism", "grr").err.split()
    )
    axis = ("--public-by", f"v={write_lines(tmp_path / 'v.txt', ['x', 'y'])}", "--dictionary-size", 9)
    for options in (("--open-domain",), ("--number", "0:9", "--mean"), axis):
        assert "sealed" not in done("plan", "--epsilon", 1, "--reports", 1000, *options, "--json").json


def test_the_file_is_the_campaign_of_the_chosen(world: World, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for domain in ["dictionary", "open"]:
        with subtests.test(domain=domain):
            items = ("--dictionary", world.dictionary) if domain == "dictionary" else ("--open-domain",)
            path = tmp_path / domain / "c.json"
            path.parent.mkdir()
            file = ("--out", path, "--id", "planned", "--keys", world.keys)
            told = done("plan", "--epsilon", 1.5, "--reports", 3000, *items, *file, "--json").json
            campaign = Campaign.read(path)
            assert campaign.mechanism is not None
            assert (campaign.id, campaign.mechanism.epsilon) == ("planned", 1.5)
            assert (campaign.mechanism.name, campaign.mechanism.parameters) == (
                told["chosen"]["mechanism"], told["chosen"]["parameters"],
            )  # fmt: skip
            mechanism = campaign.require_frequency()
            assert mechanism.epsilon == told["chosen"]["epsilon_spent"]
            assert mechanism.report_bytes == told["chosen"]["report_bytes"]
            assert campaign.sealed_bytes("reports") == told["chosen"]["sealed_bytes"]


def test_a_pool_of_a_planned_campaign_has_a_seed_of_its_own(world: World, tmp_path: Path) -> None:
    seeds = set()
    for name in ("one", "two"):
        file = ("--out", tmp_path / f"{name}.json", "--id", name, "--keys", world.keys)
        told = done(*ASKED, "--dictionary", world.dictionary, "--mechanism", "gcms", *file, "--json").json
        campaign = Campaign.read(tmp_path / f"{name}.json")
        assert campaign.mechanism is not None
        seed = campaign.mechanism.parameters["seed"]
        assert campaign.mechanism.parameters == {**told["chosen"]["parameters"], "seed": seed}
        assert campaign.sealed_bytes("reports") == told["chosen"]["sealed_bytes"]
        seeds.add(seed)
    assert len(seeds) == 2
    assert "0" * 64 not in seeds


def test_a_planned_campaign_collects(world: World, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    file = ("--out", path, "--id", "c", "--keys", world.keys)
    assert f"campaign file {path}" in done(*ASKED, "--dictionary", world.dictionary, *file).out
    chain = Chain(path, world.keys)
    chain.encode(write_lines(tmp_path / "v.txt", ["alpha"] * 1100))
    chain.shuffle()
    rows = estimates(chain.analyze())
    assert rows["alpha"]["detected"]
    assert summary(chain.path("results"))["accepted"] == 1100


def test_bad_arguments_are_one_sentence(subtests: pytest.Subtests) -> None:
    for arguments, says in [
        ((), "--dictionary-size D, --dictionary FILE and --open-domain"),
        (("--dictionary-size", 5, "--open-domain"), "--dictionary-size D"),
        (("--dictionary-size", 100), "--epsilon and --reports"),
        (("--dictionary-size", 100, "--epsilon", 1), "--epsilon and --reports"),
        (("--dictionary-size", 100, "--want-error", 5), "--want-error with --reports"),
        (("--dictionary-size", 100, "--want-error", 5, "--epsilon", 1, "--reports", 9), "--want-error with"),
        (("--dictionary-size", 100, "--want-error", 0, "--reports", 9), "--want-error is '0'"),
        (("--dictionary-size", 100, "--want-error", "nan", "--reports", 9), "--want-error is 'nan'"),
        (("--dictionary-size", 100, "--want-error", 0.1, "--epsilon", 1), "epsilon 1"),
        (("--dictionary-size", 1, "--epsilon", 1, "--reports", 9), "2..2147483647"),
        (("--dictionary-size", 100, "--epsilon", 0, "--reports", 9), "epsilon is 0.0"),
        (("--dictionary-size", 100, "--epsilon", "nan", "--reports", 9), "epsilon is nan"),
        (("--dictionary-size", 100, "--epsilon", 1, "--reports", 0), "1..1000000000000"),
        (("--dictionary-size", 100, "--epsilon", 1, "--reports", 9, "--objective", "best"), "objective is 'best'"),
        (("--dictionary-size", 100, "--epsilon", 1, "--reports", 9, "--objective", "target"), "--target-share"),
        (("--dictionary-size", 100, "--epsilon", 1, "--reports", 9, "--target-share", 2), "target_share is 2.0"),
        (("--dictionary-size", 100, "--epsilon", 1, "--reports", 9, "--mechanism", "aiss"), " ais?"),
        (("--dictionary-size", 100, "--epsilon", 1, "--reports", 9, "--max-report-bytes", 0), "max-report-bytes"),
        (("--dictionary", "none.txt", "--epsilon", 1, "--reports", 9), "none.txt"),
        (("--open-domain", "--epsilon", 1, "--reports", 9, "--mechanism", "grr"), " grr: "),
    ]:
        with subtests.test(arguments=arguments):
            run = refused("plan", *arguments, says=[says] if "max-report" not in says else [])
            assert says in run.err.replace("\n", " ")
            assert run.out == ""


def test_a_target_share_with_another_objective_is_refused() -> None:
    for objective in ["mse", "l2"]:
        share = ("--dictionary-size", 100, "--target-share", 0.2, "--objective", objective)
        refused(*ASKED, *share, says=[f"objective is '{objective}'", "target_share"])


def test_a_file_needs_its_items_a_name_and_keys_and_replaces_none(world: World, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    listed, named = ("--dictionary", world.dictionary), ("--id", "c", "--keys", world.keys)
    refused(*ASKED, *listed, "--out", path, says=["--id and --keys"])
    refused(*ASKED, *listed, "--out", path, "--id", "c", says=["--id and --keys"])
    refused(*ASKED, "--dictionary-size", 9, *named, "--out", path, says=["--dictionary FILE or --open-domain"])
    assert files_under(tmp_path) == {}
    done(*ASKED, *listed, *named, "--out", path)
    before = files_under(tmp_path)
    assert cli(*ASKED, *listed, *named, "--out", path).status != 0
    assert files_under(tmp_path) == before


def test_a_planned_campaign_states_no_more_than_the_two_limits(world: World, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    asked = ("plan", "--shuffled-epsilon", 0.5, "--delta", 1e-9, "--reports", "2e4", "--dictionary", world.dictionary)
    file = ("--out", path, "--id", "planned", "--keys", world.keys)
    told = done(*asked, "--mechanism", "ais", "--mechanism", "grr", *file, "--json").json
    campaign = Campaign.read(path)
    stated = statement(campaign, 20_000, Senders("client-token"))
    assert stated.shuffled is not None
    assert stated.local is not None
    assert stated.shuffled.epsilon == told["shuffled"]["chosen"]["shuffled_epsilon"] <= 0.5
    assert stated.shuffled.delta == 1e-9
    assert stated.local.epsilon <= told["shuffled"]["chosen"]["local_epsilon"] == told["epsilon"]
    assert told["epsilon"] > 3.0
    # With a report fewer nothing is released.
    assert statement(campaign, 19_999, Senders("client-token")).shuffled is None
    said = done(*asked, "--epsilon", 2, "--mechanism", "ais").out
    assert "local epsilon 2" in said
    assert " 7.39" in said
    large = done(
        "plan", "--shuffled-epsilon", 1, "--delta", 0.5, "--reports", 100, "--open-domain", "--mechanism", "olh"
    )
    assert "delta is 0.5" in large.err
    assert " 0.01" in large.err
    refused(*asked, "--want-error", 3, says=["--shuffled-epsilon with --reports", "--want-error"])
    refused(*ASKED, "--dictionary-size", 9, "--delta", 1e-8, says=["--delta with --shuffled-epsilon"])
