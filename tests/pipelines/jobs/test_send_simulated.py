"""hushcount simulate --send: many people's real reports at a real collector, and the true counts of their values."""

from __future__ import annotations

import csv
import math
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from hushcount.campaigns.dictionary import Dictionary
from hushcount.delivery import Site
from hushcount.delivery.verdicts import Verdict
from hushcount.errors import UsageError
from hushcount.strata import STRATUM_BYTES
from pipelines.jobs import send_simulated
from pipelines.jobs.send_simulated import _Post, _settled
from pipelines.jobs.simulated_people import UNLISTED, UNLISTED_SHARE, Law, as_in, counted, zipf
from tests.hushcount.campaigns.vouched import STRANGER, signed
from tests.hushcount.delivery.fake_collector import FakeCollector, oblivious, policy
from tests.hushcount.delivery.test_real_collector import policy as policy_of
from tests.hushcount.delivery.test_real_collector import prepared, stopped
from tests.support.clocks import Hands
from tests.support.jobs import cli, done, refused, write_lines

ERROR = 1e-6
"""The probability at most with which a statistical test here fails though all is right."""
PEOPLE = 1_000


def follows(law: Law, drawn: list[str], shares: dict[str, float]) -> bool:
    """Return whether each value's count is within Hoeffding's bound of its share, all together with 1 - ERROR."""
    counts, people = Counter(drawn), len(drawn)
    bound = math.sqrt(people * math.log(2 * len(shares) / ERROR) / 2)
    return all(abs(counts[value] - people * share) <= bound for value, share in shares.items())


def test_values_follow_the_stated_law_and_no_other() -> None:
    listed = Dictionary(("a", "b", "c", "d"))
    harmonic = sum(1 / rank for rank in range(1, 5))
    tail = sum(1 / rank for rank in range(1, len(UNLISTED) + 1))
    shares = {value: (1 - UNLISTED_SHARE) / harmonic / rank for rank, value in enumerate(listed.items, start=1)}
    shares |= {value: UNLISTED_SHARE / tail / rank for rank, value in enumerate(UNLISTED, start=1)}
    law = zipf(listed, unlisted=True)
    drawn = [law.values[index] for index in law.draw(200_000, None)]
    assert follows(law, drawn, shares)
    assert set(law.values) == set(shares)
    wrong = zipf(listed, unlisted=False)
    assert not follows(law, [wrong.values[index] for index in wrong.draw(200_000, None)], shares)
    assert set(wrong.values) == set(listed.items)
    flat = Law("", law.values, np.ones(len(law.values)))
    assert not follows(law, [law.values[index] for index in flat.draw(200_000, None)], shares)


def test_a_seed_repeats_the_values_and_no_seed_does_not() -> None:
    law = zipf(None, unlisted=True)
    assert not any(value.startswith("unlisted") for value in law.values)
    assert law.draw(100, 7).tolist() == law.draw(100, 7).tolist() != law.draw(100, 8).tolist()
    # Two draws of 100 values agree with a probability below 1e-60.
    assert law.draw(100, None).tolist() != law.draw(100, None).tolist()


def test_a_file_of_values_is_a_law(tmp_path: Path) -> None:
    law = as_in(write_lines(tmp_path / "values.txt", ["x"] * 3 + ["y"]))
    drawn = law.draw(100_000, None)
    assert follows(law, [law.values[index] for index in drawn], {"x": 0.75, "y": 0.25})
    assert not follows(law, [law.values[index] for index in drawn], {"x": 0.77, "y": 0.23})
    assert [value for value, _ in counted(law.values, drawn)] == ["x", "y"]
    assert sum(count for _, count in counted(law.values, drawn)) == 100_000


def test_a_file_of_values_has_coordinates_by_tabs_or_by_columns(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "values.txt", ["x\t1\tlinux"] * 3 + ["y\t2"])
    table = write_lines(tmp_path / "values.csv", ["item,by.platform,by.version,count", "x,linux,1,3", "y,,2,1"])
    axes = ("version", "platform")
    assert as_in(lines, axes).values == ("x\t1\tlinux", "y\t2")
    assert as_in(table, axes).values == ("x\t1\tlinux", "y\t2\t")
    for wrong in (("version",), ("version", "country")):
        with pytest.raises(UsageError, match=r"version|by\.country"):
            as_in(lines if len(wrong) == 1 else table, wrong)


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_each_person_sends_a_report_of_each_stream_under_a_token_of_their_own(tmp_path: Path, suffix: str) -> None:
    site, truth = prepared(tmp_path / "site", cap=1), tmp_path / f"truth.{suffix}"
    (tmp_path / "policy.json").write_text(policy_of(site).text())
    with stopped(site) as collector:
        where = ("--site", collector.url, "--policy", tmp_path / "policy.json")
        run = done("simulate", "--send", *where, "--people", PEOPLE, "--out", truth, "--seed", 1, "--json").json
    assert run["sent"] == {"reports": PEOPLE, "discovery": PEOPLE}
    assert (run["accepted"], run["given_up"], sum(row["count"] for row in run["truth"])) == (PEOPLE, {}, PEOPLE)
    tokens = {}
    for stream in ("reports", "discovery"):
        assert len(set(site.sealed(stream))) == PEOPLE
        rows = (bytes(row[:16]) for rows in site.stored(stream) for row in rows.view("u1").reshape(len(rows), -1))
        tokens[stream] = set(rows)
        assert len(tokens[stream]) == PEOPLE
    assert tokens["reports"] == tokens["discovery"], "a person's two reports come under one token"
    unlisted = {row["item"] for row in run["truth"] if not row["listed"]}
    assert unlisted == set(UNLISTED)
    with truth.open(newline="") as stream_of_rows:
        if suffix == "csv":
            counts = {row["item"]: int(row["count"]) for row in csv.DictReader(stream_of_rows)}
        else:
            people = [line.rstrip("\n").split("\t") for line in stream_of_rows]
            assert len({name for name, _ in people}) == PEOPLE
            counts = dict(Counter(value for _, value in people))
    assert counts == {row["item"]: row["count"] for row in run["truth"]}


def test_people_send_their_public_coordinates_and_the_truth_has_them(tmp_path: Path) -> None:
    site, truth = prepared(tmp_path / "site", axis=("platform", ("linux", "mac"))), tmp_path / "truth.csv"
    (tmp_path / "policy.json").write_text(policy_of(site).text())
    lines = write_lines(tmp_path / "values.txt", ["word-1\tlinux"] * 3 + ["word-2\tmac", "word-2", "word-3\tbsd"])
    with stopped(site) as collector:
        where = ("--site", collector.url, "--policy", tmp_path / "policy.json", "--people", 300)
        done("simulate", "--send", *where, "--values", lines, "--out", truth, "--seed", 1)
        refused("simulate", "--send", *where, says=["--values", "coordinates"])
    with truth.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    told = Counter[str]()
    for row in rows:
        told[row["by.platform"]] += int(row["count"])
    assert {(row["item"], row["by.platform"]) for row in rows} == {
        ("word-1", "linux"), ("word-2", "mac"), ("word-2", "other"), ("word-3", "other")
    }  # fmt: skip
    sent = Counter(int.from_bytes(report[:STRATUM_BYTES], "little") for report in site.sealed("reports"))
    assert [sent[place] for place in range(3)] == [told[name] for name in ("linux", "mac", "other")]


def test_a_refusal_that_asks_to_wait_is_honoured_and_nothing_is_lost_or_sent_twice(
    collector: FakeCollector, terms: Path
) -> None:
    collector.answers = [(503, "queue_full", {"Retry-After": "2"})]
    began = time.monotonic()
    run = done("simulate", "--send", "--site", collector.address, "--policy", terms, "--people", 20, "--json").json
    assert time.monotonic() - began >= 2.0
    assert (run["sent"], run["given_up"], run["accepted"]) == ({"reports": 20, "discovery": 20}, {}, 20)
    for stream in ("reports", "discovery"):
        assert len(set(collector.received(stream))) == 20


def test_patience_begins_anew_with_each_success(monkeypatch: pytest.MonkeyPatch) -> None:
    hands = Hands(0.0)
    monkeypatch.setattr(send_simulated, "MACHINE", hands.clock)
    monkeypatch.setattr(time, "sleep", lambda seconds: setattr(hands, "now", hands.now + seconds))
    again, posts = Verdict("again", "queue_full", 40.0), [_Post(person, "reports", b"") for person in range(5)]
    for first, sent in ((Verdict("sent"), 5), (again, 0)):
        monkeypatch.setattr(
            send_simulated, "_verdicts", lambda _, asked, first=first: [first, *[again] * (len(asked) - 1)]
        )
        settled = dict(_settled(Site("http://127.0.0.1:1"), posts))
        assert sum(said.fate == "sent" for said in settled.values()) == sent


def test_a_refusal_for_good_is_counted_and_the_truth_is_of_the_people_who_arrived(
    collector: FakeCollector, terms: Path
) -> None:
    collector.answers = [(409, "epoch_closed", {})] * 3
    run = cli("simulate", "--send", "--site", collector.address, "--policy", terms, "--people", 20, "--json")
    assert run.status == 1
    assert run.json["given_up"] == {"epoch_closed": 3}
    lost = 20 - run.json["accepted"]
    assert 2 <= lost <= 3
    assert sum(row["count"] for row in run.json["truth"]) == 20 - lost
    assert "epoch_closed 3" in run.err


def test_the_campaign_is_checked_as_a_client_checks_it(collector: FakeCollector, terms: Path) -> None:
    words = ("simulate", "--send", "--site", collector.address, "--policy", terms, "--people", 5)
    terms.write_text(policy(max_epsilon=1.0).text())
    refused(*words, status=1, says=["policy", " 1"])
    terms.write_text(policy().text())
    collector.signature = signed(collector.campaign, STRANGER)
    refused(*words, status=1, says=["signed", "trusted"])
    collector.signature, collector.epochs[:] = None, [oblivious()]
    refused(*words, says=["words", "evaluator"])
    collector.down = True
    refused(*words, status=1, says=["503"])
    assert collector.posts == []


def test_each_use_names_what_it_needs_and_refuses_what_the_other_has(
    collector: FakeCollector, terms: Path, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    there = ("--send", "--site", collector.address, "--policy", terms)
    values = write_lines(tmp_path / "values.txt", ["a", "b"])
    of_runs = ("--mechanism", "grr", "--epsilon", 1, "--values", values)
    for words, says in (
        (("--send", "--policy", terms), "--site"),
        (("--send",), "--site and --policy"),
        (("--mechanism", "grr"), "--epsilon and --values"),
        ((), "--mechanism and --epsilon and --values"),
        ((*there, "--runs", 5), "--runs"),
        ((*there, "--mechanism", "grr"), "--mechanism"),
        ((*there, "--set", "s=8"), "--set"),
        ((*of_runs, "--people", 5), "--people"),
        ((*of_runs, "--out", "truth.csv"), "--out"),
        ((*of_runs, "--plain-http"), "--plain-http"),
        ((*there, "--people", 0), "people is 0"),
        ((*there, "--out", "truth.txt"), "truth.txt"),
        ((*there, "--out", "none/truth.csv"), "none/truth.csv"),
        ((*there, "--values", "none.txt"), "none.txt"),
        (("--send", "--site", "http://c.example", "--policy", terms), "https://"),
    ):
        with subtests.test(says=says):
            refused("simulate", *words, says=[says])
    assert collector.posts == []
