"""Dead letters stay sealed, are listed by reason, and can be read again with what was wrong put right."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.discovery.keep_rules import KeepRule
from hushcount.errors import UsageError
from hushcount.many_clients import ManyClients
from hushcount.senders import Senders
from hushcount.wire.blocks import Kind
from pipelines.jobs.dead_letters import claim, replay
from pipelines.outputs.counts import StreamCounts
from pipelines.outputs.summary import make_summary
from tests.support.jobs import (
    done,
    files_under,
    new_campaign,
    new_keys,
    refused,
    summary,
    values_of,
    write_lines,
)
from tests.support.records import write_rows

TRUTH = {"alpha": 300, "beta": 200}


@pytest.fixture
def mixed(tmp_path: Path) -> tuple[Path, Path, Path]:
    """Reports of two epochs in one shuffled directory, as analyze refuses those of the other epoch."""
    keys = new_keys(tmp_path / "keys")
    words = write_lines(tmp_path / "words.txt", ["alpha", "beta"])
    campaigns = []
    for epoch in (1, 2):
        (tmp_path / str(epoch)).mkdir()
        path = new_campaign(tmp_path / str(epoch) / "words.json", keys, "--epoch", epoch, dictionary=words)
        values = write_lines(tmp_path / f"{epoch}.txt", values_of(TRUTH))
        encoded, shuffled = tmp_path / f"encoded{epoch}", tmp_path / f"shuffled{epoch}"
        done("job", "encode", "--campaign", path, "--values", values, "--out", encoded)
        done("job", "shuffle", "--campaign", path, "--input", encoded, "--out", shuffled)
        campaigns.append(path)
    shuffled = tmp_path / "shuffled1"
    for part in (tmp_path / "shuffled2" / "reports").glob("*.blocks"):
        part.rename(shuffled / "reports" / f"other-{part.name}")
    results = tmp_path / "results"
    done("job", "analyze", "--campaign", campaigns[0], "--input", shuffled, "--keys", keys, "--out", results)
    return results, campaigns[1], keys


def test_they_are_listed_by_reason_without_what_is_in_them(
    mixed: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    results, other, _ = mixed
    (letter,) = done("repair", "dead-letters", "--input", results, "--json").json
    assert (letter["hop"], letter["stream"], letter["reason"], letter["records"]) == (
        "analyze", "reports", "wrong_campaign", 500,
    )  # fmt: skip
    assert letter["record_bytes"] == Campaign.read(other).sealed_bytes("reports")
    monkeypatch.setenv("COLUMNS", "60")
    shown = done("repair", "dead-letters", "--input", results).out
    assert "wrong_campaign" in shown
    assert "500" in shown
    assert f"{letter['record_bytes']}" in shown
    assert "replay" in shown
    assert "…" not in shown
    assert done("repair", "dead-letters", "--input", results, "--reason", "malformed", "--json").json == []


@pytest.mark.usefixtures("either_engine")
def test_replayed_with_the_right_campaign_file_they_are_counted(mixed: tuple[Path, Path, Path], tmp_path: Path) -> None:
    _, other, keys = mixed
    again = tmp_path / "again"
    done(*replayed(mixed, again))
    assert summary(again)["replayed"] == "wrong_campaign"
    done("job", "analyze", "--campaign", other, "--input", again, "--keys", keys, "--out", tmp_path / "second")
    second = summary(tmp_path / "second")
    assert (second["received"], second["accepted"]) == (500, 500)


def replayed(mixed: tuple[Path, Path, Path], out: Path, *options: object) -> tuple[object, ...]:
    results, other, _ = mixed
    campaign = () if "--campaign" in options else ("--campaign", other)
    common = ("--input", results, *campaign, "--reason", "wrong_campaign")
    return ("repair", "replay", *common, "--out", out, *options)


def test_the_same_letters_are_counted_once_however_often_they_are_replayed(
    mixed: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    """Into a second output they are not replayed, and that is said; into the same one as often as one likes."""
    results, other, keys = mixed
    done(*replayed(mixed, tmp_path / "again"))
    first = files_under(tmp_path / "again" / "reports")
    done(
        "job",
        "analyze",
        "--campaign",
        other,
        "--input",
        tmp_path / "again",
        "--keys",
        keys,
        "--out",
        tmp_path / "second",
    )
    refused(*replayed(mixed, tmp_path / "twice"), says=[str(tmp_path / "again")])
    assert not (tmp_path / "twice").exists()
    refused(*replayed(mixed, tmp_path / "again"), says=[str(tmp_path / "again"), "--overwrite"])
    done(*replayed(mixed, tmp_path / "twice" / ".." / "again", "--overwrite"))
    assert files_under(tmp_path / "again" / "reports") == first
    # Refused by one campaign file, they may be those of another.
    done(*replayed(mixed, tmp_path / "first", "--campaign", results.parent / "1" / "words.json"))
    assert done("repair", "dead-letters", "--input", results, "--json").json[0]["records"] == 500


def test_a_replay_that_was_stopped_is_done_again_into_the_same_output(
    mixed: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr("pipelines.jobs.dead_letters.write_file", stopped)
        with pytest.raises(KeyboardInterrupt):
            replay(mixed[1], str(mixed[0]), "reports", "wrong_campaign", str(tmp_path / "again"))
    refused(*replayed(mixed, tmp_path / "twice"), says=[str(tmp_path / "again")])
    done(*replayed(mixed, tmp_path / "again"))


def stopped(*_: object) -> None:
    raise KeyboardInterrupt


def test_of_two_replays_at_once_one_goes_on(tmp_path: Path) -> None:
    folder, both = str(tmp_path / "letters"), Barrier(2)

    def said(name: str) -> str:
        both.wait(120)
        try:
            claim(folder, b"f" * 32, b"letters", str(tmp_path / name))
        except UsageError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(2) as pool:
        left, right = pool.map(said, ("left", "right"))
    assert sorted([left == "", right == ""]) == [False, True]
    assert str(tmp_path / ("left" if left == "" else "right")) in left + right


def test_what_cannot_be_cured_is_refused(mixed: tuple[Path, Path, Path], tmp_path: Path) -> None:
    results, other, _ = mixed
    replay = ["repair", "replay", "--input", results, "--out", tmp_path / "again"]
    refused(*replay, "--campaign", other, "--reason", "malformed", says=["malformed"])
    refused(*replay, "--campaign", other, "--reason", "not_opened", says=["not_opened"])
    wrong = ("--campaign", other, "--reason", "wrong_campaign")
    refused(*replay, *wrong, "--stream", "discovery", says=["discovery"])
    data = json.loads(other.read_text())
    data["shuffle"]["minimum_batch"] = 501
    high = other.with_name("high.json")
    high.write_text(json.dumps(data))
    refused(*replay, "--campaign", high, "--reason", "wrong_campaign", status=1, says=["500", "501"])
    shuffled = results.with_name("shuffled1")
    replay[3] = shuffled
    refused(*replay, *wrong, says=[str(shuffled), "reports"])
    # The shuffler's own, which it keeps without a token.
    (results / "dead_letter").rename(shuffled / "dead_letter")
    refused(*replay, *wrong, says=["token", "cap"])


def test_who_came_through_under_a_larger_cap_is_stated_with_it(subtests: pytest.Subtests, tmp_path: Path) -> None:
    """One client of epoch 2, whose cap is 1, sends its value 3 times to epoch 1's address: all 3 are forwarded there.

    Replayed with epoch 2's file they were stated as one report of a client, and revealed by the rule for one.
    """
    for before, times, allotments in ((3, 1, 3), (3, 2, 6), (1, 1, 1), (None, 1, None)):
        with subtests.test(before=before, times=times):
            here = tmp_path / f"{before}-{times}"
            here.mkdir()
            keys, words = new_keys(here / "keys"), write_lines(here / "words.txt", ["alpha"])
            for epoch in (1, 2):
                (here / f"{epoch}").mkdir()
            first, second = (
                Campaign.read(
                    new_campaign(
                        here / f"{epoch}" / "words.json", keys, "--epoch", epoch, "--cap", cap, dictionary=words,
                        discovery=1.0, min_batch=3,
                    )
                )
                for epoch, cap in ((1, before or 1), (2, 1))
            )  # fmt: skip
            made = ManyClients(second).discovery_reports(["secret"] * 3)
            released, length = here / "released", second.sealed_bytes("discovery")
            letters = released / "dead_letter" / "discovery" / f"wrong_campaign-{length}.blocks"
            letters.parent.mkdir(parents=True)
            write_rows(letters, Kind.DEAD_LETTER, made, first)
            counts = {"discovery": StreamCounts(53, 50, {"wrong_campaign": 3})}
            told = make_summary("release", first, counts, None, senders=Senders("client-token", times, times)).data()
            if before is None:
                del told["cap"]
            (released / "summary.json").write_text(json.dumps({**told, "released": 0}))
            done(
                "repair", "replay", "--input", released, "--stream", "discovery", "--reason", "wrong_campaign",
                "--campaign", here / "2" / "words.json", "--out", here / "again",
            )  # fmt: skip
            again = summary(here / "again")
            assert again["privacy"]["per"] == ("report" if allotments is None else "client")
            if allotments is not None:
                assert again["allotments"]["discovery"] == allotments
                even = KeepRule("optimal", 1.0, 1e-9, cap=allotments).count_for(0.5)
                assert again["privacy"]["discovery"]["clients_for_even_chance"] == even
