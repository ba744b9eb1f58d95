"""Senders, a real collector and a real evaluator: names that only its key makes, and a report whatever fails."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from hushcount.campaigns.signatures import signature_path
from hushcount.delivery import Delivery, Sender
from hushcount.delivery.tokens import derived_token, secret_of
from hushcount.discovery.pairs import name_of
from hushcount.passes.slots import EVALUATOR_NAME, Slot
from keys.directories import KeyReference, read_public
from tests.evaluator.running import (
    ask,
    destroy_evaluator_key,
    evaluating,
    keys_of,
    make_asked_site,
    some,
    write_evaluator,
)
from tests.hushcount.campaigns.vouched import signed
from tests.hushcount.delivery.evaluating import pass_time, read, told
from tests.hushcount.delivery.test_real_collector import policy
from tests.shuffler.collector.running import LONG, Running, Site, running, write_config

NEW = "dark-mode"


def prepared(base: Path) -> Site:
    """Return a deployment with a signed campaign that asks an evaluator, and a high cap."""
    site = make_asked_site(base)
    path = site.campaign_file()
    content = json.loads(path.read_text())
    content["shuffle"]["cap"] = 50
    path.write_text(json.dumps(content))
    signature_path(path).write_text(signed(site.campaign()).text())
    return site


@contextmanager
def both(site: Site, **evaluator: Any) -> Iterator[tuple[Running, Running]]:
    """Run a collector and an evaluator, which have brought all to the store when the block ends."""
    with ExitStack() as stack:
        write_config(site, LONG, {"authentication": "client-token"})
        collector = stack.enter_context(running(site))
        write_evaluator(site, LONG, evaluator)
        answers = stack.enter_context(evaluating(site))
        yield collector, answers
        for process in (collector, answers):
            if not process.ended():
                assert process.stop() == 0


def sender(site: Site, collector: Running, evaluator: Running, folder: Path | None) -> Sender:
    return Sender(collector.url, policy(site), folder, delay=timedelta(), evaluator=evaluator.url)


def found(site: Site) -> list[tuple[bytes, str | None]]:
    """Return hash and value of each discovery report in the store, as the two parties read them together."""
    public, home = read_public([site.base / "keys"]), str(site.base / "keys")
    aux_server = KeyReference(home, "aux_server", public.aux_server[0].id).read()
    analyzer = KeyReference(home, "analyzer", public.analyzer[0].id).read()
    return [read(report, site.campaign(), aux_server, analyzer) for report in site.sealed("discovery")]


def name(site: Site, value: str) -> bytes:
    (key,) = site.campaign().keys.evaluator
    held = KeyReference(str(keys_of(site)), "evaluator", key.id).read_evaluator()
    return name_of(held.outputs([site.campaign().binding("discovery") + value.encode()])[0]).hash


def test_equal_values_of_several_people_meet_in_one_bin(tmp_path: Path) -> None:
    site = prepared(tmp_path / "site")
    with both(site) as (collector, evaluator):
        for number in range(3):
            one = sender(site, collector, evaluator, tmp_path / str(number))
            for value in (NEW, "word-1", f"own {number}"):
                one.report(value)
            assert one.deliver() == Delivery(sent=6)
            assert told(one, "answered", "blank", "not_answered") == [("answered", "", 3)]
    reports = found(site)
    assert Counter(value for _, value in reports) == {NEW: 3, None: 3, "own 0": 1, "own 1": 1, "own 2": 1}
    assert {bin_hash for bin_hash, value in reports if value == NEW} == {name(site, NEW)}
    assert len({bin_hash for bin_hash, _ in reports}) == 7


def test_an_evaluator_that_is_killed_and_comes_back_answers_what_was_open(tmp_path: Path) -> None:
    site = prepared(tmp_path / "site")
    with both(site) as (collector, evaluator):
        one = sender(site, collector, evaluator, tmp_path / "own")
        evaluator.kill()
        one.report(NEW)
        assert one.deliver() == Delivery(sent=1, waiting=1)
        assert told(one, "not_answered") == [("not_answered", "unreachable", 1)]
        with evaluating(site) as again:
            one._deliverer.asker.site.__dict__["address"] = again.url
            pass_time(one)
            assert one.deliver() == Delivery(sent=1)
    assert found(site) == [(name(site, NEW), NEW)]


def test_over_the_limit_of_a_client_reports_go_blank(tmp_path: Path) -> None:
    site = prepared(tmp_path / "site")
    with both(site) as (collector, evaluator):
        one = sender(site, collector, evaluator, tmp_path / "own")
        # The cap is 50. Whoever shows the same token has asked most of these evaluations already.
        slot = Slot(one._queue.campaign, "evaluator", EVALUATOR_NAME, one._arrivals.present())
        token = derived_token(secret_of(one._queue), slot)
        assert ask(evaluator, some(45), {"client-token": token}).status_code == 200
        for number in range(8):
            one.report(f"value {number}")
        assert one.deliver() == Delivery(sent=13, waiting=3)
        assert told(one, "not_answered") == [("not_answered", "too_many_evaluations", 1)]
        pass_time(one, 3601.0)
        assert one.deliver() == Delivery(sent=3, blank={"no_answer": 3})
    values = [value for _, value in found(site)]
    assert (len(values), values.count(None)) == (8, 3)


def test_once_the_key_is_gone_reports_are_blank_at_once(tmp_path: Path) -> None:
    site = prepared(tmp_path / "site")
    destroy_evaluator_key(site)
    with both(site) as (collector, evaluator):
        one = sender(site, collector, evaluator, tmp_path / "own")
        one.report(NEW)
        assert one.deliver() == Delivery(sent=2, blank={"key_destroyed": 1})
    assert [value for _, value in found(site)] == [None]
