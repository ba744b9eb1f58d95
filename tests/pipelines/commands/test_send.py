"""hushcount send: what is sent, what waits, how it ends, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hushcount.client import Client
from hushcount.delivery import Sender
from pipelines.cli import app
from tests.hushcount.campaigns.vouched import KEY, public_part
from tests.hushcount.delivery.fake_collector import FakeCollector, campaign, collecting, oblivious, policy
from tests.hushcount.delivery.fake_collector import refused as evaluates_nothing
from tests.support.jobs import Run, cli, done, refused


def words(collector: FakeCollector, terms: Path, *more: object) -> tuple[object, ...]:
    return ("send", "--site", collector.address, "--policy", terms, *more)


def test_values_are_sent_at_once(collector: FakeCollector, terms: Path) -> None:
    run = done(*words(collector, terms, "one", "four"), "--json")
    assert run.json == {
        "values": 2, "sent": 4, "remade": 0, "added": 0, "dropped": {}, "waiting": 0, "held_until": None, "blank": {},
        "no_pass": False,
    }  # fmt: skip
    assert len(collector.received()) == 2
    assert "sent" in done(*words(collector, terms, "one")).out


def test_an_axis_that_the_policy_lacks_is_refused_before_anything_is_spent(
    collector: FakeCollector, terms: Path
) -> None:
    refused(*words(collector, terms, "one", "--by", "verison=2.1"), says=["axis 'verison'", "none"])
    assert collector.received() == []
    data = json.loads(terms.read_text())
    terms.write_text(json.dumps({**data, "axes": ["platform"], "public_axes": ["version"]}))
    run = done(*words(collector, terms, "one", "--by", "version=2.1", "--by", "platform=linux"), "--json")
    assert run.json["values"] == 1


def test_standard_input_holds_one_value_a_line(collector: FakeCollector, terms: Path) -> None:
    result = CliRunner().invoke(
        app, [str(word) for word in words(collector, terms, "-", "--json")], input="one\nfour\r\nx"
    )
    assert Run(result.exit_code, result.stdout, result.stderr).json["values"] == 3
    assert len(collector.received()) == 3


def test_standard_input_that_is_no_utf8_is_refused(collector: FakeCollector, terms: Path) -> None:
    command = [str(word) for word in words(collector, terms, "-")]
    for given, says in (("one\nfour\n".encode("utf-16"), "iconv"), (b"one\n\xff\n", "line 2 of standard input")):
        result = CliRunner().invoke(app, command, input=given)
        assert (result.exit_code, says in result.stderr) == (2, True)
    assert len(collector.received()) == 1


def test_what_cannot_be_sent_waits_in_the_folder_and_the_next_call_sends_it(
    collector: FakeCollector, terms: Path, tmp_path: Path
) -> None:
    home = ("--folder", tmp_path / "own")
    done(*words(collector, terms, "one", *home))
    collector.answers = [(503, "queue_full", {})] * 2
    run = cli(*words(collector, terms, "one", *home, "--json"))
    assert (run.status, run.json["sent"], run.json["waiting"]) == (3, 0, 2)
    assert run.json["held_until"].endswith("Z")
    assert cli(*words(collector, terms, *home)).status == 3, "the pause is not over"
    assert len(collector.received()) == 1


def test_a_call_reports_under_a_newer_campaign_file_and_counts_what_waited(
    collector: FakeCollector, terms: Path, tmp_path: Path
) -> None:
    home = ("--folder", tmp_path / "own")
    done(*words(collector, terms, "one", *home))
    Sender(collector.address, policy(), home[1]).report("one")
    collector.epochs.append(campaign(collector.campaign))
    run = cli(*words(collector, terms, "one", *home, "--json"))
    assert (run.json["sent"], run.json["dropped"], run.json["waiting"]) == (2, {"epoch_closed": 2}, 0)


def test_reports_that_are_lost_are_an_error(collector: FakeCollector, terms: Path) -> None:
    collector.answers = [(503, "queue_full", {})] * 2
    refused(*words(collector, terms, "one"), status=1, says=[" 2 reports", "--folder"])
    collector.answers = [(400, "wrong_length", {})] * 2
    refused(*words(collector, terms, "one"), status=1, says=["wrong_length 2"])


def test_what_was_made_before_a_refusal_is_sent(collector: FakeCollector, terms: Path) -> None:
    collector.epochs[:] = [campaign(shuffle={"cap": 1, "minimum_batch": 10, "delta": 1e-7})]
    says = [
        "1 wait to be sent, and 0 arrived in the collector's present window, in which at most 1 count",
        ": 1; ",
        " sent: 2, waiting: 0",
    ]
    refused(*words(collector, terms, "one", "two"), status=1, says=says)
    assert len(collector.received()) == 1


def test_names_are_asked_for_before_reports_are_sent(collector: FakeCollector, terms: Path, tmp_path: Path) -> None:
    collector.epochs[:] = [oblivious()]
    run = done(*words(collector, terms, "one", "four", "--json"))
    assert (run.json["sent"], run.json["waiting"], run.json["blank"]) == (4, 0, {})
    assert len(collector.evaluations) == 2
    with collecting(evaluate=evaluates_nothing(410, "key_destroyed")) as other:
        run = done(*words(collector, terms, "one", "--evaluator", other.address, "--folder", tmp_path / "own"))
        assert "key_destroyed 1" in run.out
        assert len(other.evaluations) == 1
    assert len(collector.received("discovery")) == 3


def test_what_the_policy_refuses_is_an_error(collector: FakeCollector, terms: Path) -> None:
    terms.write_text(policy(max_epsilon=1.0).text())
    refused(*words(collector, terms, "one"), status=1, says=["policy", " 1"])
    terms.write_text(policy(operator_keys=(public_part(KEY, start=-9, days=3),)).text())
    refused(*words(collector, terms, "one"), status=1, says=["newest"])
    assert collector.posts == []


def test_what_cannot_be_used_is_refused(collector: FakeCollector, terms: Path, tmp_path: Path) -> None:
    refused(*words(collector, terms), says=["values"])
    refused("send", "--site", "http://c.example", "--policy", terms, "a", says=["https://"])
    refused(*words(collector, terms, "one", "--window", "soon"), says=["--window", "'soon'"])
    refused(*words(collector, tmp_path / "none.json", "one"), says=["none.json"])


def test_coordinates_are_reported_with_each_value_and_with_one_that_was_kept_for_another_epoch(
    collector: FakeCollector, terms: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, report = [], Client.report

    def recorded(self: Client, value: str, by: Mapping[str, str] | None = None, due: datetime | None = None) -> bytes:
        told.append((self.campaign.epoch, value, by))
        return report(self, value, by, due)

    monkeypatch.setattr(Client, "report", recorded)
    home = ("--folder", tmp_path / "own", "--keep-values")
    terms.write_text(policy(axes=("version", "platform")).text())
    done(*words(collector, terms, "four", *home, "--by", "version=2.1", "--by", "platform=mac os"))
    Sender(collector.address, policy(), home[1], keep_values=True).report("one", {"version": 2.1, "Version": "x"})
    collector.epochs.append(campaign(collector.campaign))
    assert done(*words(collector, terms, *home, "--json")).json["remade"] == 2
    kept = {"version": "2.1"}
    assert told == [(2, "four", {**kept, "platform": "mac os"}), (2, "one", kept), (3, "one", kept)]
    for wrong in ("version", "=2.1", "version="):
        refused(*words(collector, terms, "one", "--by", wrong), says=["--by", "AXIS=VALUE"])
