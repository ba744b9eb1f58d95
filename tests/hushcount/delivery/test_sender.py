"""A sender loses nothing that it acknowledged, sends the same bytes at retries, and gives nothing up in silence."""

from __future__ import annotations

import stat
import time
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hushcount.allowance import OverCap
from hushcount.budget import Budget, BudgetSpent, OptedOut
from hushcount.delivery import Delivery, QueueFull, Sender, Site
from hushcount.delivery.delivering import Deliverer
from hushcount.delivery.queue import Queue
from hushcount.delivery.tokens import derived_token, secret_of
from hushcount.errors import NotYet, UsageError
from hushcount.newest import Newest, Untrusted
from hushcount.passes.slots import Slot
from hushcount.policy import Policy
from hushcount.sampling import Installation, bucket_of
from tests.hushcount.campaigns.vouched import (
    KEY,
    NOW,
    STRANGER,
    delegated,
    delegation_for,
    public_part,
    restart_at,
    signed,
)
from tests.hushcount.delivery.fake_collector import (
    FakeCollector,
    campaign,
    collecting,
    oblivious,
    policy,
    sender,
    wait_for,
)
from tests.support.clocks import Hands

VALUE = "one"
LONG = "too long to be discovered: more than the campaign's 32 bytes"


def again_now(one: Sender) -> None:
    """End the pause after a failure, and let all that waits be due."""
    one._queue.note("hold", "1 0")
    with one._queue.database.change() as tables:
        tables.execute("UPDATE rows SET due = 0")


def refresh(one: Sender) -> None:
    """Let a round ask for the campaign file now."""
    one._present.client()
    one._present._due = one._present._drawn = 0.0
    one._present.refreshed()


def told(one: Sender) -> list[tuple[str, str, int]]:
    return [(event.what, event.reason, event.reports) for event in one.log]


@pytest.mark.parametrize("durable", [True, False])
def test_a_value_becomes_a_report_of_each_stream_at_the_collector(
    collector: FakeCollector, tmp_path: Path, durable: bool
) -> None:
    one = sender(collector, tmp_path / "own" if durable else None)
    for value in (VALUE, "four", LONG, "", 4.5):
        one.report(value)
    assert collector.posts == []
    assert one.deliver() == Delivery(sent=10)
    assert {len(report) for report in collector.received()} == {collector.campaign.sealed_bytes("reports")}
    assert {len(report) for report in collector.received("discovery")} == {collector.campaign.sealed_bytes("discovery")}
    assert [len(collector.received(stream)) for stream in ("reports", "discovery")] == [5, 5]
    (token,) = {post.token for post in collector.posts}
    assert len(token) == 43
    assert one.deliver() == Delivery()
    assert one.spent().streams[0].reports == 5


def test_requests_for_documents_show_no_token(collector: FakeCollector, tmp_path: Path) -> None:
    one = sender(collector, tmp_path)
    one.report(VALUE)
    one.deliver()
    asked = [path.partition("?")[0] for path, _ in collector.gets]
    assert asked == ["/v1/campaigns/words", "/v1/campaigns/words/log", "/v1/campaigns/words/dictionary"]
    assert all("client-token" not in headers for _, headers in collector.gets)


def test_everything_in_the_folder_is_private_and_the_token_is_kept(collector: FakeCollector, tmp_path: Path) -> None:
    home = tmp_path / "a" / "b"
    for _ in range(2):
        one = sender(collector, home)
        one.report(VALUE)
        one.deliver()
    assert len({post.token for post in collector.posts}) == 1
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    names = {path.name for path in home.iterdir() if not path.name.startswith(".")}
    assert names == {"queue.sqlite", "queue.sqlite-journal", "budget.json", "allowance.json", "newest.json"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in home.iterdir())
    other = sender(collector, tmp_path / "c")
    other.report(VALUE)
    other.deliver()
    assert len({post.token for post in collector.posts}) == 2


OUTSIDE = {"layer": "words", "buckets": [[0, 5000], [5001, 10_000]]}
"""A sample that asks all but one bucket."""


def not_asked(home: Path) -> Path:
    """Return a sender's folder with an id that OUTSIDE does not ask."""
    home.mkdir(mode=0o700)
    drawn = next(f"{number:032x}" for number in count() if bucket_of(f"{number:032x}", "words") == 5000)
    installation = Installation(home / "installation.json")
    installation._kept.change(lambda kept: (kept.model_copy(update={"id": drawn, "drawn": NOW.date()}), None))
    return home


def test_who_is_not_asked_sends_charges_and_keeps_nothing_whatever_the_value(
    collector: FakeCollector, tmp_path: Path
) -> None:
    collector.epochs = [campaign(sample={"layer": "words", "buckets": [[0, 1]]})]
    policy_of_layer = policy(layers=("words",), least_share=0.01)
    with pytest.raises(Untrusted, match=r"0\.0001"):
        sender(collector, tmp_path / "narrow", policy=policy_of_layer).report(VALUE)
    collector.epochs = [campaign(sample=OUTSIDE)]
    home = not_asked(tmp_path / "own")
    one = sender(collector, home, policy=policy_of_layer, strict=False)
    for value in (VALUE, "four", LONG, ""):
        assert one.report(value) == "not_asked"
    gets = len(collector.gets)
    for value in (VALUE, LONG):
        assert one.report(value) == "not_asked"
    assert one.deliver() == Delivery()
    assert (len(collector.gets), collector.posts, one.waiting) == (gets, [], 0)
    assert one.spent().streams == ()
    assert one.dropped == {"not_asked": 6}


def test_a_value_that_waited_for_a_campaign_that_does_not_ask_is_given_up(
    collector: FakeCollector, tmp_path: Path
) -> None:
    collector.down = True
    home = not_asked(tmp_path / "own")
    one = sender(collector, home, policy=policy(layers=("words",)), keep_values=True)
    assert one.report(VALUE) == "queued"
    collector.down = False
    collector.epochs = [campaign(sample=OUTSIDE)]
    refresh(one)
    assert one.deliver() == Delivery(dropped={"not_asked": 1})
    assert (one.waiting, collector.posts, one.spent().streams) == (0, [], ())


def test_retries_send_the_same_bytes_under_the_same_fingerprint(collector: FakeCollector, tmp_path: Path) -> None:
    collector.takes_before_answering = True
    collector.answers = [(503, "queue_full", {"Retry-After": "5"})] * 2
    one = sender(collector, tmp_path)
    one.report(VALUE)
    first = one.deliver()
    assert (first.sent, first.waiting, first.dropped) == (0, 2, {})
    assert first.held_until is not None
    assert one.deliver() == first, "nothing is asked before the pause is over"
    assert len(collector.posts) == 1
    again_now(one)
    one = sender(collector, tmp_path)
    one.deliver()
    again_now(one)
    assert one.deliver().sent == 2
    copies = [(post.stream, post.fingerprint, post.token, post.reports) for post in collector.posts]
    assert len(copies) == 4
    assert len(set(copies)) == 2


def test_what_may_succeed_later_waits(subtests: pytest.Subtests) -> None:
    for status in [408, 425, 429, 500, 502, 503, 504]:
        with collecting() as collector, subtests.test(status=status):
            one = sender(collector)
            one.report(VALUE)
            collector.always = (status, "", {"Retry-After": "999999999999"})
            done = one.deliver()
            assert (done.sent, done.waiting, done.dropped) == (0, 2, {})
            assert done.held_until is not None
            assert done.held_until.timestamp() < time.time() + 86_400
            assert ("again", f"status_{status}", 1) in told(one)


def test_what_the_collector_refuses_for_good_is_dropped_with_its_name(subtests: pytest.Subtests) -> None:
    for name in ["unauthorised", "unknown_campaign", "wrong_length", "wrong_type"]:
        with collecting() as collector, subtests.test(name=name):
            one = sender(collector)
            one.report(VALUE)
            collector.always = (400, name, {})
            assert one.deliver() == Delivery(dropped={name: 2})
            assert told(one)[-1] == ("dropped", name, 1)


def test_a_page_that_no_collector_wrote_gives_nothing_up(collector: FakeCollector) -> None:
    one = sender(collector)
    one.report(VALUE)
    for status in (200, 302, 403, 404):
        collector.always = (status, "Not a name of ours", {"Location": "/elsewhere"})
        done = one.deliver()
        assert (done.sent, done.waiting, done.dropped) == (0, 2, {})
        again_now(one)


def test_no_network_is_no_error_and_pauses_grow(collector: FakeCollector) -> None:
    one = sender(collector)
    one.report(VALUE)
    one._deliverer.site.__dict__["address"] = "http://127.0.0.1:1"
    waits = []
    for failures in range(1, 6):
        held = one.deliver().held_until
        assert held is not None
        waits.append(held.timestamp() - time.time())
        with one._queue.database.change() as tables:
            tables.execute("UPDATE rows SET due = 0")
        one._queue.note("hold", f"{failures} 0")
    for number, wait in enumerate(waits):
        assert 2.4 * 2**number < wait <= 5.0 * 2**number
    assert one.deliver().waiting == 2


def test_after_an_answer_pauses_are_short_again(collector: FakeCollector) -> None:
    one = sender(collector)
    one.report(VALUE)
    one._queue.note("hold", "9 0")
    assert one.deliver().sent == 2
    one.report(VALUE)
    collector.down = True
    held = one.deliver().held_until
    assert held is not None
    assert held.timestamp() <= time.time() + 5.0


def test_a_batch_that_is_too_large_is_halved(collector: FakeCollector) -> None:
    collector.most_reports = 3
    one = sender(collector)
    for _ in range(20):
        one.report(VALUE)
    assert one.deliver() == Delivery(sent=40)
    assert max(len(post.reports) for post in collector.posts) <= 3
    collector.most_reports = 0
    one.report(VALUE)
    assert one.deliver() == Delivery(dropped={"too_many_reports_at_once": 2})


def test_a_proxy_that_refuses_a_batch_as_too_large_gets_smaller_ones(collector: FakeCollector) -> None:
    one = sender(collector)
    collector.most_bytes = 3 * collector.campaign.sealed_bytes("discovery")
    for _ in range(9):
        one.report(VALUE)
    assert one.deliver() == Delivery(sent=18)
    one.report(VALUE)
    collector.always = (413, "", {})
    assert one.deliver() == Delivery(dropped={"too_long": 2})


def test_a_report_that_others_than_the_collector_refuse_is_posted_200_times(collector: FakeCollector) -> None:
    one = sender(collector)
    one.report(VALUE)
    collector.always = (403, "A page of its own", {})
    for _ in range(199):
        assert not one.deliver().dropped
        again_now(one)
    # One that is not refused so often stays.
    one.report(VALUE)
    assert one.deliver().dropped == {"no_collector": 1}
    again_now(one)
    collector.always = None
    assert one.deliver() == Delivery(sent=3)


# Epochs.


def test_reports_of_a_closed_epoch_are_dropped_with_a_count(collector: FakeCollector) -> None:
    one = sender(collector)
    one.report(VALUE)
    collector.epochs.append(campaign(collector.campaign))
    assert one.deliver() == Delivery(dropped={"epoch_closed": 2})
    one.report(VALUE)
    assert one.deliver() == Delivery(sent=2), "the next report is of the present epoch"


def test_with_plain_values_they_are_made_anew_under_the_present_epoch(collector: FakeCollector, tmp_path: Path) -> None:
    one = sender(collector, tmp_path, keep_values=True)
    one.report(VALUE)
    one.report("four")
    old = collector.campaign
    collector.epochs.append(campaign(old))
    assert one.deliver() == Delivery(sent=4, remade=4)
    assert {post.fingerprint for post in collector.posts} == {collector.campaign.fingerprint.hex()}
    assert one.spent().streams[0].reports == 4, "two reports of each value, and both were charged"
    assert b"four" not in (tmp_path / "queue.sqlite").read_bytes()


def test_an_unknown_fingerprint_is_asked_for_again_before_anything_is_given_up(collector: FakeCollector) -> None:
    """A collector that has not read the newest file yet says the same as one that never had this file."""
    one = sender(collector)
    one.report(VALUE)
    collector.always = (409, "unknown_fingerprint", {})
    assert one.deliver().waiting == 2
    again_now(one)
    collector.always = None
    collector.epochs[:] = [campaign(campaign())]
    assert one.deliver() == Delivery(dropped={"unknown_fingerprint": 2})


def test_a_collector_that_closes_the_epoch_that_it_serves_does_not_make_a_client_spend(
    collector: FakeCollector,
) -> None:
    one = sender(collector, keep_values=True)
    one.report(VALUE)
    collector.always = (409, "epoch_closed", {})
    for _ in range(5):
        assert one.deliver().waiting == 2
        again_now(one)
    assert one.spent().streams[0].reports == 1


def test_the_campaign_is_fetched_anew_only_if_it_changed(collector: FakeCollector, tmp_path: Path) -> None:
    one = sender(collector, tmp_path)
    one.report(VALUE)
    refresh(one)
    assert told(one) == [("fetched", "epoch 2", 0), ("queued", "", 2), ("unchanged", "", 0)]
    assert len(collector.gets) == 4
    # The next process has the kept copies.
    other = sender(collector, tmp_path)
    refresh(other)
    assert told(other) == [("unchanged", "", 0)]
    collector.epochs.append(campaign(collector.campaign))
    refresh(other)
    assert told(other)[-1] == ("fetched", "epoch 3", 0)


def test_a_campaign_that_is_signed_anew_is_vouched_for_longer(collector: FakeCollector) -> None:
    later = public_part(STRANGER, days=60)
    one = sender(collector, policy=policy(operator_keys=(public_part(KEY), later)))
    one.report(VALUE)
    collector.signature = signed(collector.campaign, STRANGER)
    refresh(one)
    client = one._present.client()
    assert client is not None
    assert client._vouched_until == later.not_after


def test_a_stale_copy_serves_while_the_collector_fails(collector: FakeCollector, tmp_path: Path) -> None:
    sender(collector, tmp_path).report(VALUE)
    collector.down = True
    one = sender(collector, tmp_path)
    refresh(one)
    one.report(VALUE)
    assert [what for what, _, _ in told(one)] == ["not_fetched", "queued"]
    one._present.refreshed()
    one._present.refreshed(sends=True)
    assert [what for what, _, _ in told(one)] == ["not_fetched", "queued"], "it asks again after an hour"
    assert one.deliver().waiting == 4


@pytest.mark.parametrize("durable", [True, False])
def test_without_a_campaign_values_wait_if_the_app_keeps_them(
    collector: FakeCollector, tmp_path: Path, durable: bool
) -> None:
    home = tmp_path / "own" if durable else None
    collector.down = True
    with pytest.raises(NotYet, match=r"^campaign words .*503 .*keep_values"):
        sender(collector, tmp_path / f"other of {durable}").report(VALUE)
    one = sender(collector, home, keep_values=True)
    one.report(VALUE)
    one.report("four")
    assert one.deliver() == Delivery(waiting=2)
    collector.down = False
    one._present._due = 0.0
    assert one.deliver() == Delivery(sent=4, remade=4, added=2)


def test_a_campaign_that_the_policy_refuses_is_an_error_if_there_is_no_other(
    collector: FakeCollector, tmp_path: Path
) -> None:
    collector.signature = signed(collector.campaign, STRANGER)
    one = sender(collector, tmp_path, keep_values=True)
    with pytest.raises(Untrusted, match=KEY.id):
        one.report(VALUE)
    assert [path for path, _ in collector.gets] == ["/v1/campaigns/words"], "nothing more is fetched"
    assert one.deliver() == Delivery()
    assert told(one)[0][0] == "refused"


def test_a_refused_successor_changes_nothing(collector: FakeCollector, tmp_path: Path) -> None:
    """It costs more than the policy allows."""
    one = sender(collector, tmp_path)
    one.report(VALUE)
    dear = campaign(collector.campaign, mechanism={"name": "ss", "epsilon": 3.0, "parameters": {"s": 1}})
    collector.epochs.append(dear)
    refresh(one)
    one.report(VALUE)
    assert "max_epsilon" in told(one)[-2][1]
    collector.accepted = {collector.epochs[0].fingerprint.hex()}
    assert one.deliver() == Delivery(sent=4)


def test_an_older_epoch_is_refused_also_by_the_next_process(collector: FakeCollector, tmp_path: Path) -> None:
    collector.epochs.append(campaign(collector.campaign))
    sender(collector, tmp_path).report(VALUE)
    collector.epochs.pop()
    other = sender(collector, tmp_path)
    refresh(other)
    assert "epoch 3" in told(other)[0][1]


def test_a_client_that_missed_an_epoch_follows_the_log(collector: FakeCollector, tmp_path: Path) -> None:
    sender(collector, tmp_path).report(VALUE)
    for _ in range(3):
        collector.epochs.append(campaign(collector.campaign))
    with collecting() as other:
        other.epochs = collector.epochs
        one = sender(other, tmp_path)
        one._present._documents = {}
        one._present.refreshed(anyway=True)
        assert told(one)[-1] == ("fetched", "epoch 5", 0)


# Limits of the person and of the device.


def test_a_client_that_a_thief_deceived_is_set_back_by_the_collectors_newest_file(
    collector: FakeCollector, tmp_path: Path
) -> None:
    """It was offline when the restart was published: the publisher of later epochs hands it on."""
    honest = [campaign()]
    honest += [campaign(honest[-1])]
    thiefs = campaign(honest[0], epoch=1000)
    collector.epochs, collector.max_age = [honest[0], thiefs], 0
    stolen = delegation_for(thiefs, last_epoch=1000)
    collector.signature = delegated(thiefs, stolen)
    one = sender(collector, tmp_path)
    one.report(VALUE)
    assert one.deliver().sent == 2
    collector.epochs, restart = [*honest, campaign(honest[-1])], restart_at(honest[0], 2)
    renewed = delegation_for(honest[0], publisher=public_part(STRANGER), serial=3)
    for signature, taken in (
        (None, False),
        (delegated(collector.campaign, renewed, key=STRANGER), False),
        (delegated(collector.campaign, renewed, key=STRANGER, restart=restart), True),
    ):
        collector.signature = signature
        again = sender(collector, tmp_path)
        again._present.refreshed(anyway=True)
        assert ("refused" in {what for what, _, _ in told(again)}) != taken
    again.report(VALUE)
    assert again.deliver().sent == 2
    assert collector.posts[-1].fingerprint == collector.campaign.fingerprint.hex()
    collector.epochs, collector.signature = [honest[0], thiefs], delegated(thiefs, stolen)
    last = sender(collector, tmp_path)
    last._present.refreshed(anyway=True)
    assert "refused" in {what for what, _, _ in told(last)}


def test_a_full_queue_refuses_before_anything_is_charged(collector: FakeCollector) -> None:
    one = sender(collector, most_queued=5)
    one.report(VALUE)
    one.report(VALUE)
    with pytest.raises(QueueFull, match=r"^4 .*words"):
        one.report(VALUE)
    assert one.spent().streams[0].reports == 2
    one.deliver()
    one.report(VALUE)


def test_what_the_cap_or_the_budget_forbids_is_raised_and_what_was_charged_is_sent(collector: FakeCollector) -> None:
    budget = Budget(lifetime=1.5, when_spent="nothing")
    one = sender(collector, budget=budget)
    with pytest.raises(BudgetSpent):
        one.report(VALUE)
    assert one.deliver() == Delivery(sent=1)
    collector.epochs[:] = [campaign(shuffle={"cap": 1, "minimum_batch": 10, "delta": 1e-7})]
    other = sender(collector)
    other.report(VALUE)
    with pytest.raises(OverCap):
        other.report(VALUE)
    assert other.deliver() == Delivery(sent=2)


def test_values_over_the_cap_wait_for_the_next_window(collector: FakeCollector) -> None:
    collector.epochs[:] = [campaign(shuffle={"cap": 1, "minimum_batch": 10, "delta": 1e-7})]
    collector.down = True
    one = sender(collector, keep_values=True)
    for _ in range(3):
        one.report(VALUE)
    collector.down = False
    one._present._due = 0.0
    assert one.deliver(early=True) == Delivery(sent=2, remade=2, added=1, waiting=2)
    assert one.deliver() == Delivery(waiting=2)


def test_values_wait_while_no_key_vouches_and_other_reports_are_sent(collector: FakeCollector) -> None:
    one = sender(collector, keep_values=True)
    collector.down = True
    one.report("two")
    collector.down = False
    one._present._due = 0.0
    one.report(VALUE)
    client = one._present.client()
    assert client is not None
    object.__setattr__(client, "_vouched_until", NOW)
    done = one.deliver(early=True)
    assert (done.sent, done.waiting) == (2, 1)
    assert any("were valid until" in event.reason for event in one.log)
    assert one.deliver().waiting == 1


def test_whatever_the_value_is_a_sender_that_keeps_values_acts_alike(subtests: pytest.Subtests, tmp_path: Path) -> None:
    homes = (tmp_path / str(number) for number in count())
    for value in ["very\ud800secret", "very\x00secret", "very secret" * 10_000, "", "\ud800"]:
        for fetched in [True, False]:
            home = next(homes)
            home.mkdir()
            with collecting() as collector, subtests.test(fetched=fetched, value=value[:40]):
                one = sender(collector, home / "own", keep_values=True)
                collector.down = not fetched
                one.report(value)
                collector.down = False
                one._present._due = 0.0
                if fetched:
                    collector.epochs.append(campaign(collector.campaign))
                done = one.deliver(early=True)
                assert (done.sent, done.remade, done.waiting) == (2, 2, 0)
                assert "secret" not in repr(one.log)
                assert all(b"secret" not in path.read_bytes() for path in (home / "own").iterdir())


@pytest.mark.parametrize("durable", [True, False])
def test_opting_out_empties_the_queue_and_nothing_is_made_or_sent_any_more(
    collector: FakeCollector, tmp_path: Path, durable: bool
) -> None:
    home = tmp_path / "own" if durable else None
    budget = Budget(None if home is None else home / "budget.json")
    one = sender(collector, home, budget=budget, keep_values=True)
    one.report("four")
    token = one._queue.noted_once("token", lambda: "a" * 40)
    asked = len(collector.gets)
    one.forget()
    assert one.deliver() == Delivery()
    with pytest.raises(OptedOut):
        one.report(VALUE)
    assert collector.posts == []
    assert len(collector.gets) == asked
    assert one.spent().streams[0].reports == 1
    if home is not None:
        assert b"four" not in (home / "queue.sqlite").read_bytes()
    budget.opt_in()
    one.report(VALUE)
    assert one.deliver() == Delivery(sent=2)
    assert {post.token for post in collector.posts} != {token}


def test_who_opts_out_while_a_report_is_made_finds_nothing_left(
    collector: FakeCollector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = sender(collector, tmp_path / "own", keep_values=True)
    put = Queue.put

    def late(queue: Queue, waiting: Any) -> None:
        one.forget()
        put(queue, waiting)

    monkeypatch.setattr(Queue, "put", late)
    with pytest.raises(OptedOut):
        one.report("four")
    monkeypatch.undo()
    assert b"four" not in (tmp_path / "own" / "queue.sqlite").read_bytes()
    one._budget.opt_in()
    assert one.deliver(early=True) == Delivery()


def test_a_process_that_slept_between_its_claim_and_its_post_posts_nothing_again(
    subtests: pytest.Subtests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, day = Queue.claim, 86_400.0
    for woken in (6 * day, -6 * day, 3 * day):
        (home := tmp_path / str(woken)).mkdir()
        with collecting() as collector, subtests.test(woken=woken), monkeypatch.context() as patched:
            began = time.time()
            hands = Hands(began)
            one, other = (sender(collector, home, clock=hands.clock) for _ in range(2))
            one.report(VALUE)

            def asleep(
                queue: Queue,
                *given: Any,
                patched: Any = patched,
                other: Sender = other,
                hands: Hands = hands,
                to: float = began + woken,
            ) -> Any:
                """Claim; the other process delivers after three days, and then this one goes on."""
                patched.setattr(Queue, "claim", claim)
                claimed = queue.claim(*given)
                hands.now += 3 * day
                assert other.deliver() == Delivery(sent=2)
                hands.now = to
                return claimed

            patched.setattr(Queue, "claim", asleep)
            assert one.deliver() == Delivery()
            assert [len(collector.received(stream)) for stream in ("reports", "discovery")] == [1, 1]


def test_opting_out_deletes_the_answers_that_a_client_remembers(collector: FakeCollector, tmp_path: Path) -> None:
    collector.epochs[:] = [campaign(memory=True)]
    one = sender(collector, tmp_path)
    for value in (VALUE, VALUE, "two"):
        one.report(value)
    assert one.deliver() == Delivery(sent=6)
    assert one.spent().epsilon == 1.5 + 3 * 1.0
    assert (tmp_path / "memory.json").exists()
    one.forget()
    assert not (tmp_path / "memory.json").exists()


def test_whoever_opts_out_elsewhere_has_what_waits_deleted(collector: FakeCollector, tmp_path: Path) -> None:
    one = sender(collector, tmp_path)
    one.report(VALUE)
    Budget(tmp_path / "budget.json").opt_out()
    assert one.deliver() == Delivery(dropped={"opted_out": 2})
    assert collector.posts == []


@pytest.mark.parametrize("durable", [True, False])
def test_after_an_opt_out_by_the_budget_the_end_of_a_block_asks_and_sends_nothing(
    tmp_path: Path, durable: bool
) -> None:
    with collecting(epochs=[oblivious()]) as collector:
        budget = Budget(tmp_path / "budget.json") if durable else Budget()
        with sender(collector, tmp_path / "own" if durable else None, delay=timedelta(hours=1), budget=budget) as one:
            one.report("four")
            asked = len(collector.gets)
            budget.opt_out()
        assert (collector.posts, collector.asked, len(collector.gets)) == ([], [], asked)


def test_a_campaign_of_several_collectors_gets_nothing_until_the_app_names_the_site(
    collector: FakeCollector, subtests: pytest.Subtests
) -> None:
    collector.epochs[:] = [campaign(collectors=["one", "two"])]
    for name in (None, "three"):
        with subtests.test(name=name):
            one = sender(collector, site=Site(collector.address, name))
            with pytest.raises(Untrusted, match=r"^name of the site is .*words, one, two: give Site\(address, name="):
                one.report(VALUE)
            assert one.deliver(early=True) == Delivery()
    assert collector.posts == []
    two = sender(collector, site=Site(collector.address, "two"))
    two.report(VALUE)
    assert two.deliver(early=True) == Delivery(sent=2)
    assert {post.token for post in collector.posts} == {
        derived_token(secret_of(two._queue), Slot(two._queue.campaign, "collector", "two", two._arrivals.present()))
    }


# Time.


def test_each_report_waits_a_time_of_its_own(collector: FakeCollector) -> None:
    one = sender(collector, delay=timedelta(hours=1))
    for _ in range(24):
        one.report(VALUE)
    now = time.time()
    assert one.deliver() == Delivery(waiting=48)
    claimed = one._queue.claim(now, 100, 10**6, plain=False, early=True, turn=one._arrivals.turns()())
    assert claimed is not None
    dues = [row.due - now for row in claimed.waiting]
    assert all(-60 < due < 3600 for due in dues)
    # 24 uniform draws fall into one half of the hour with probability 1.2e-7 at most.
    assert min(dues) < 1800 < max(dues)
    one._queue.give_back(claimed)
    assert one.deliver(early=True) == Delivery(sent=48)


def test_a_thread_delivers_and_the_block_ends_it(collector: FakeCollector, tmp_path: Path) -> None:
    with sender(collector, tmp_path) as one:
        one.report(VALUE)
        wait_for(lambda: not one._queue.waiting())
    assert len(collector.posts) == 2
    assert not one._background.is_running


def test_a_thread_rests_while_a_value_waits_for_a_campaign(
    collector: FakeCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    deliver = Deliverer.deliver

    def counted(self: Deliverer, early: bool) -> Delivery:
        calls.append(early)
        return deliver(self, early)

    monkeypatch.setattr(Deliverer, "deliver", counted)
    collector.down = True
    with sender(collector, keep_values=True) as one:
        one.report(VALUE)
        time.sleep(0.2)
        assert len(calls) <= 3
        collector.down = False
        one._present._due = 0.0
    assert len(collector.posts) == 2


def test_without_a_folder_the_end_of_the_block_sends_what_waits(collector: FakeCollector) -> None:
    with sender(collector, delay=timedelta(hours=1)) as one:
        one.report(VALUE)
    assert len(collector.posts) == 2


def test_what_cannot_be_used_is_refused(subtests: pytest.Subtests, collector: FakeCollector) -> None:
    for options, says in [
        ({"policy": Policy.trusting()}, "policy"),
        ({"delay": timedelta(days=2)}, "^delay is 2 days"),
        ({"delay": timedelta(seconds=-1)}, "^delay is -1 day"),
        ({"most_queued": 0}, "^most_queued is 0"),
    ]:
        with subtests.test(says=says):
            with pytest.raises(UsageError, match=says):
                sender(collector, **options)
            with pytest.raises(UsageError, match="value is a list"):
                sender(collector).report([5])  # type: ignore[arg-type]


def test_a_folder_that_others_can_change_is_refused(collector: FakeCollector, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(UsageError, match="0777"):
        sender(collector, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        sender(collector, tmp_path / "file")


def test_no_value_is_in_what_a_sender_shows(collector: FakeCollector, tmp_path: Path) -> None:
    value = "a-secret-value"
    collector.answers = [(503, "queue_full", {}), (400, "wrong_type", {})]
    one = sender(collector, tmp_path, keep_values=True)
    one.report(value)
    one.deliver()
    again_now(one)
    one.deliver()
    one.forget()
    assert value not in repr(one.log)
    assert value not in repr(one._queue) + str(one.spent().words())


def test_a_policy_that_names_its_own_file_keeps_it(collector: FakeCollector, tmp_path: Path) -> None:
    kept = Newest(tmp_path / "elsewhere.json")
    sender(collector, tmp_path / "own", policy=policy(newest=kept)).report(VALUE)
    assert (tmp_path / "elsewhere.json").exists()
    assert not (tmp_path / "own" / "newest.json").exists()
