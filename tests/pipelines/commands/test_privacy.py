"""hushcount privacy: its figures, its inverses, its notes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushcount.discovery.keep_rules import KeepRule
from tests.pipelines.conftest import World
from tests.support.jobs import done, new_campaign, refused
from tests.support.noise_campaigns import noise_campaign

ANY = ("privacy", "--epsilon", "1", "--reports", "100000", "--delta", "1e-8")
AIS = (*ANY, "--mechanism", "ais", "--dictionary-size", "26000")


def test_any_mechanism() -> None:
    assert done(*ANY, "--json").json == {
        "local_epsilon": 1.0,
        "shuffled_epsilon": pytest.approx(0.016867, abs=1e-5),
        "bound": "general",
        "shuffled_epsilon_general": pytest.approx(0.016867, abs=1e-5),
        "shuffled_epsilon_blanket": None,
        "shuffled_epsilon_closed_form": pytest.approx(0.0686, abs=5e-5),
        "reports": 100_000,
        "delta": 1e-8,
        "relation": "replace-one",
    }


def test_a_mechanism_by_name() -> None:
    run = done(*AIS, "--json")
    found = run.json
    assert run.err == ""
    assert found["bound"] == "blanket"
    assert found["shuffled_epsilon"] == found["shuffled_epsilon_blanket"] == pytest.approx(0.01172, abs=1e-5)
    assert found["shuffled_epsilon_general"] == pytest.approx(0.016867, abs=1e-5)
    assert 0.999999 < found["local_epsilon"] <= 1.0


@pytest.mark.long
def test_parameters_and_an_open_domain() -> None:
    wide = done(*ANY, "--mechanism", "gcms", "--set", "k=64", "--set", "m=16", "--set", "s=8", "--json").json
    narrow = done(*ANY, "--mechanism", "gcms", "--set", "k=64", "--set", "m=16", "--set", "s=1", "--json").json
    assert narrow["shuffled_epsilon"] < wide["shuffled_epsilon"] < wide["shuffled_epsilon_general"]


def test_a_table_for_people_is_rounded_up() -> None:
    run = done(*AIS, "--explain")
    assert "0.01172" in run.out
    assert "replace-one: one client" in run.out
    assert "100,000" in run.out
    assert "blanket" in run.out


def test_a_guarantee_is_two_lines_of_a_terminal() -> None:
    for asked, figures in [
        (AIS, ("a factor of 2.72 at most", "(epsilon 1)", "100,000", "epsilon 0.01172, delta 1e-08")),
        (("privacy", "--discovery", "--epsilon", 1, "--delta", "1e-8"), ("epsilon 1, delta 1e-08", " 25 ", " 34 ")),
    ]:
        said = done(*asked).out
        assert len(said.splitlines()) == 2
        assert max(map(len, said.splitlines())) <= 88
        assert all(figure in said for figure in figures)
        assert "--explain" in said
    assert "no gain is claimed" in done("privacy", "--epsilon", 20, "--reports", 1000, "--delta", "1e-8").out
    assert "0.5061 as a sum, 0.08432 jointly" in done(*ANY, "--windows", 30).out


def test_a_campaign_fixes_mechanism_epsilon_and_delta(world: World) -> None:
    path = new_campaign(world.root / "asked.json", world.keys, mechanism="ais", dictionary=world.dictionary)
    found = done("privacy", "--campaign", path, "--reports", 5000, "--json").json
    assert found["local_epsilon"] == pytest.approx(2.0, rel=1e-9)
    assert (found["delta"], found["bound"]) == (1e-8, "blanket")
    other = done("privacy", "--campaign", path, "--reports", 5000, "--delta", "1e-6", "--json").json
    assert other["shuffled_epsilon"] < found["shuffled_epsilon"]


def test_below_the_floor_nothing_is_claimed(world: World) -> None:
    path = new_campaign(world.root / "floor.json", world.keys, mechanism="ais", dictionary=world.dictionary)
    run = done("privacy", "--campaign", path, "--reports", 49, "--json")
    assert "minimum batch of 50" in run.err
    assert run.json["bound"] is None
    assert run.json["shuffled_epsilon"] == run.json["local_epsilon"]


def test_a_local_epsilon_too_large_to_gain_anything() -> None:
    run = done("privacy", "--epsilon", 20, "--reports", 1000, "--delta", "1e-8", "--json")
    assert " 1 %" in run.err
    assert (run.json["shuffled_epsilon"], run.json["bound"]) == (20.0, None)


def test_a_delta_that_allows_to_reveal_a_report_is_noted() -> None:
    run = done("privacy", "--epsilon", 1, "--reports", 1000, "--delta", "0.001", "--json")
    assert "delta is 0.001" in run.err
    assert run.json["bound"] == "general"
    assert done("privacy", "--epsilon", 1, "--reports", 1000, "--delta", "0.0009", "--json").err == ""


def test_discovery(subtests: pytest.Subtests) -> None:
    for rule in ["optimal", "laplace"]:
        for cap, relation in [(1, "replace-one"), (3, "add-remove")]:
            with subtests.test(cap=cap, relation=relation, rule=rule):
                options = ("--cap", cap, "--relation", relation, "--rule", rule, "--json")
                found = done("privacy", "--discovery", "--epsilon", 1, "--delta", "1e-6", *options).json
                truth = KeepRule(rule, 1.0, 1e-6, relation, cap)  # type: ignore[arg-type]
                assert (found["epsilon"], found["delta"], found["relation"], found["cap"]) == (1.0, 1e-6, relation, cap)
                assert found["clients_for_even_chance"] == truth.count_for(0.5)
                assert found["clients_for_95_percent"] == truth.count_for(0.95)
                for count, probability in found["keep_probability"].items():
                    assert probability == truth.keep_probability(int(count))
                assert list(found["keep_probability"].values()) == sorted(found["keep_probability"].values())
                noisy = rule == "laplace"
                assert found["threshold"] == (truth.laplace_threshold if noisy else None)
                assert found["noise_scale"] == (truth.noise_scale if noisy else None)
                assert (found["counts"], found["count_deviation"]) == (False, None)


def test_discovery_with_counts() -> None:
    asked = ("privacy", "--discovery", "--epsilon", 1, "--delta", "1e-8", "--counts")
    found, law = done(*asked, "--json").json, KeepRule("optimal", 1.0, 1e-8, counts=True).count_law
    assert (found["clients_for_even_chance"], found["clients_for_95_percent"]) == (30, 36)
    assert (found["threshold"], found["noise_mean"]) == (law.threshold, law.mean)
    assert found["count_deviation"] == law.standard_deviation
    assert " 2.98;" in done(*asked, "--explain").out
    refused(*asked, "--rule", "laplace", says=["optimal"])
    refused("privacy", "--epsilon", 1, "--counts", says=["--counts", "--discovery"])


def test_discovery_for_people_and_of_a_campaign(world: World) -> None:
    path = new_campaign(world.root / "search.json", world.keys, mechanism=None, discovery=1.0)
    truth = KeepRule("optimal", 1.0, 1e-9)
    even, sure = truth.count_for(0.5), truth.count_for(0.95)
    for asked in (("--campaign", path), ("--epsilon", 1, "--delta", "1e-9")):
        said = done("privacy", "--discovery", *asked).out
        assert f" {even} clients " in said
        assert f" {sure} with 95 %" in said


def test_what_is_refused(subtests: pytest.Subtests) -> None:
    for options, says in [
        ((), "--epsilon, --reports and --delta, or --campaign"),
        (("--epsilon", 1), "and --delta ("),
        (("--epsilon", 1, "--reports", 10), "give --delta"),
        (("--epsilon", 1, "--reports", 0, "--delta", 0.1), "reports is 0"),
        (("--epsilon", 1, "--reports", 10, "--delta", 0), "delta is 0.0"),
        (("--epsilon", 1, "--reports", 10, "--delta", 1), "delta is 1.0"),
        (("--epsilon", 1, "--reports", 10, "--delta", "nan"), "delta is nan"),
        (("--epsilon", 41, "--reports", 10, "--delta", 0.1), "epsilon is 41.0"),
        (("--epsilon", 0, "--reports", 10, "--delta", 0.1), "epsilon is 0.0"),
        (("--epsilon", 1, "--reports", 10, "--delta", 0.1, "--cap", 2), "--cap"),
        (("--epsilon", 1, "--reports", 10, "--delta", 0.1, "--dictionary-size", 2), "--mechanism"),
        (("--epsilon", 1, "--reports", 10, "--delta", 0.1, "--mechanism", "aes"), "mechanism is 'aes'"),
        (("--epsilon", 1, "--reports", 10, "--delta", 0.1, "--mechanism", "ss"), "ss needs"),
        (("--discovery",), "--epsilon and --delta"),
        (("--discovery", "--epsilon", 1, "--delta", 2), "delta is 2.0"),
        (("--discovery", "--epsilon", 1, "--delta", 0.1, "--cap", 0), "1..1000"),
        (("--discovery", "--epsilon", 1, "--delta", 0.1, "--rule", "best"), "rule is 'best'"),
        (("--discovery", "--epsilon", 1, "--delta", 0.1, "--relation", "swap"), "relation is 'swap'"),
        (("--discovery", "--epsilon", 1, "--delta", 0.1, "--reports", 9), "--reports"),
        (("--campaign", "none.json", "--reports", 10), "none.json"),
        (("--campaign", "none.json", "--reports", 10, "--epsilon", 1), "--campaign"),
        (("--discovery", "--campaign", "none.json", "--epsilon", 1), "--campaign"),
    ]:
        with subtests.test(options=options):
            refused("privacy", *options, says=[says])


@pytest.mark.long
def test_thirty_windows_by_their_sum_and_jointly() -> None:
    found = done(*AIS, "--windows", 30, "--json").json
    assert found["windows"] == 30
    assert found["windows_delta"] == 3e-7
    assert found["windows_local_epsilon"] == pytest.approx(30.0)
    assert found["windows_epsilon_sum"] == pytest.approx(30 * found["shuffled_epsilon"])
    assert found["windows_epsilon_joint"] == pytest.approx(0.05829, abs=1e-4)
    alone = done(*AIS, "--windows", 1, "--json").json
    assert alone["windows_epsilon_joint"] == alone["windows_epsilon_sum"] == alone["shuffled_epsilon"]
    # Where shuffling gains nothing, the local epsilons compose.
    few = done("privacy", "--epsilon", 1, "--reports", 2, "--delta", 1e-8, "--windows", 100, "--json").json
    assert few["windows_epsilon_sum"] == 100.0
    assert 60.0 < few["windows_epsilon_joint"] < 100.0
    # At a delta that is too small for a joint bound, the sum is both.
    tiny = done("privacy", "--epsilon", 1, "--reports", 9_000, "--delta", 1e-40, "--windows", 3, "--json").json
    assert tiny["windows_epsilon_joint"] == tiny["windows_epsilon_sum"] == pytest.approx(3 * tiny["shuffled_epsilon"])
    refused(*AIS[:-6], "--delta", 0.1, "--windows", 10, says=["windows is 10"])
    refused("privacy", "--discovery", "--epsilon", 1, "--delta", 1e-8, "--windows", 2, says=["--windows"])


def test_noise_of_the_mixes(tmp_path: Path) -> None:
    path = tmp_path / "noise.json"
    noise_campaign().write(path)
    run = done("privacy", "--campaign", path, "--windows", 30, "--json")
    assert run.json | {"odds": 0, "count_deviation": 0, "windows_epsilon_joint": 0} == {
        "epsilon": 1.0, "delta": 1e-8, "local": "none: sealed, not randomised", "odds": 0, "count_deviation": 0,
        "relation": "replace-one", "windows": 30, "windows_delta": 1e-6, "windows_epsilon_sum": 30.0,
        "windows_epsilon_joint": 0,
    }  # fmt: skip
    assert run.json["odds"] == pytest.approx(2.718, abs=1e-3)
    assert run.json["count_deviation"] == pytest.approx(4.21, abs=0.01)
    assert run.json["windows_epsilon_joint"] == pytest.approx(22.856, abs=1e-3)
    assert "one of shuffler and auxiliary server keeps to its role" in run.err
    assert "every exact count" in run.err
    shown = done("privacy", "--campaign", path, "--windows", 30).out
    assert "sealed and not randomised: epsilon 1, delta 1e-08" in shown
    assert "in 30 windows: epsilon 30 as a sum, 22.86 jointly at delta 1e-06" in shown
    assert "windows" not in done("privacy", "--campaign", path, "--json").json
    for option in ("--reports", "--delta"):
        says = ("with noise, which depends on no number of reports",)
        refused("privacy", "--campaign", path, option, "0.5" if option == "--delta" else 10, says=says)


def test_noise_beside_other_campaigns_is_no_local_guarantee(world: World, tmp_path: Path) -> None:
    noise, other = tmp_path / "noise.json", new_campaign(world.root / "beside.json", world.keys, mechanism="ais")
    noise_campaign(0.5).write(noise)
    asked = ("privacy", "--campaign", noise, "--campaign", other)
    found = done(*asked, "--json").json
    assert (found["noise"], found["discovery"]) == (0.5, 0.0)
    assert [(one["epsilon"] > 0.0, one["noise_epsilon"]) for one in found["campaigns"]] == [(False, 0.5), (True, 0.0)]
    assert "0.5 for reports that are sealed, not randomised" in done(*asked).out


def test_windows_of_clients_that_remember_are_linked(world: World) -> None:
    path = new_campaign(
        world.root / "remembers.json", world.keys, "--memory", mechanism="grr", dictionary=world.dictionary
    )
    asked = ("privacy", "--campaign", path, "--reports", 5000)
    assert "windows" not in done(*asked, "--json").json
    refused(*asked, "--windows", 3, says=["windows", "repeat"])
