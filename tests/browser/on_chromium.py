"""The whole way from a web page: people report in a real browser, a run closes the window, estimates hold the truth."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from hushcount.campaigns.campaign import Campaign
from hushcount.clock import MACHINE
from tests.browser.chromium import Chromium, Tab
from tests.browser.deployment import WORDS, Measured, prepared
from tests.evaluator.running import manifests
from tests.shuffler.collector.running import wait_for
from tests.support.jobs import ALPHA, estimates, found, summary

EXAMPLE = Path(__file__).parents[2] / "examples" / "web"
PEOPLE = 2000
AT_ONCE = 20
LISTED = {WORDS[0]: 600, WORDS[1]: 400, WORDS[2]: 200, WORDS[3]: 100}
NEW = {"a new feature": 400, "größe": 280}
"""Values outside the dictionary that so many send that the keep rule keeps them, but with probability below 1e-6."""
RARE = {f"secret-{number}": 1 for number in range(20)}
"""Values outside it that one person sends: all together kept with probability below 1e-6."""
TRUTH = {**LISTED, **NEW, **RARE}


@pytest.fixture
def measured(tmp_path: Path) -> Measured:
    return prepared(tmp_path, cap=10)


def tolerance(campaign: Campaign, truth: int, items: int) -> float:
    """Return how far an estimate of one of `items` items may be off, all together failing below ALPHA.

    A count is a sum of independent bits, so Bernstein's inequality holds with the exact variance and a largest step of
    `1/(p*-q*)` people; two sides and all items by Bonferroni. The encoder makes no collisions.
    """
    mechanism = campaign.require_frequency()
    variance = float(mechanism.variance(PEOPLE, truth / PEOPLE))
    step = (1.0 - mechanism.law.least) / float(mechanism.law.gain)
    log = math.log(2.0 * items / ALPHA)
    return log * step / 3.0 + math.sqrt((log * step / 3.0) ** 2 + 2.0 * log * variance)


def person(tab: Tab, where: dict[str, Any], options: dict[str, Any] | None = None) -> None:
    """Give a page its one sender."""
    code = "async ([where, options]) => { globalThis.sender = await people.person(where, options); }"
    tab.run(code, [where, options or {}])


def report(tab: Tab, *values: str) -> None:
    tab.run("async (values) => { for (const value of values) await sender.report(value); }", list(values))


def deliver(tab: Tab) -> dict[str, Any]:
    answer: dict[str, Any] = tab.run("() => sender.deliver(true)")
    return answer


def test_estimates_hold_the_truth_of_2000_people_and_new_values_appear(browser: Chromium, measured: Measured) -> None:
    values = list(Counter(TRUTH).elements())
    assert len(values) == PEOPLE
    with measured.open():
        page = browser.device(measured.pages.origin)
        done = page.run("people.crowd", {**measured.where, "values": values, "atOnce": AT_ONCE})
    asked = {"answered": 0, "blank": 0}
    assert done == {"sent": 2 * PEOPLE, "waiting": 0, "dropped": 0, **asked, "tokens": PEOPLE}

    results = measured.close_window()
    campaign, rows = measured.site.campaign(), estimates(results)
    truth = {word: LISTED.get(word, 0) for word in WORDS}
    print(f"\n{PEOPLE} people reported from Chromium; estimates against truth, and what they may miss at {ALPHA:g}:")
    for item, count in truth.items():
        most = tolerance(campaign, count, len(truth))
        print(f"  {item:12} {rows[item]['count']:8.1f} {count:5d} {most:8.1f}")
        assert abs(rows[item]["count"] - count) <= most, item
    # The bounds tell 200 people from nobody.
    assert tolerance(campaign, 0, len(truth)) < LISTED[WORDS[2]]
    new = found(results.parents[2] / "found" / "words" / results.name)
    print(f"  discovered: {new}")
    assert set(new) == set(NEW)


def test_values_whose_names_an_evaluator_gives_are_discovered(browser: Chromium, tmp_path: Path) -> None:
    # With these numbers the keep rule keeps the new value, and no rare one, but with probability below 1e-6.
    values = list(Counter({WORDS[0]: 80, "größe": 150, **RARE}).elements())
    measured = prepared(tmp_path, oblivious=True)
    with measured.open():
        page = browser.device(measured.pages.origin)
        done = page.run("people.crowd", {**measured.where, "values": values, "atOnce": AT_ONCE})
    # One token for the collector, another for the evaluator.
    everyone = {"sent": 2 * len(values), "answered": len(values), "tokens": 2 * len(values)}
    assert done == {**everyone, "waiting": 0, "dropped": 0, "blank": 0}
    (counted,) = manifests(measured.site)
    print(f"\n{len(values)} people asked for one evaluation each; the evaluator counted {counted.clients}")
    assert (counted.clients.evaluations, counted.clients.refused) == (len(values), {})
    results = measured.close_window()
    assert set(found(results.parents[2] / "found" / "words" / results.name)) == {"größe"}


def test_where_no_evaluator_is_the_value_is_lost_and_no_report(browser: Chromium, tmp_path: Path) -> None:
    measured = prepared(tmp_path, oblivious=True)
    with measured.open() as collector:
        for evaluator, lost in ((measured.where["evaluator"], 0), (collector.url, 1)):
            page = browser.device(measured.pages.origin)
            person(page, {**measured.where, "evaluator": evaluator})
            report(page, "größe")
            done = deliver(page)
            assert (done["sent"], done["waiting"], sum(done["blank"].values())) == (2, 0, lost)
    assert [len(measured.site.sealed(stream)) for stream in ("reports", "discovery")] == [2, 2]


def test_what_is_reported_offline_is_sent_when_the_device_is_back(browser: Chromium, measured: Measured) -> None:
    with measured.open() as collector:
        page = browser.device(measured.pages.origin)
        person(page, measured.where)
        report(page, WORDS[0])
        page.run("() => void sender.start()")
        wait_for(lambda: page.run("() => sender.deliver()")["waiting"] == 0)
        page.offline(True)
        report(page, WORDS[1], WORDS[2], "a new feature")
        assert deliver(page)["waiting"] == 6
        assert {event["what"] for event in page.run("() => sender.log")} >= {"queued", "again"}
        page.offline(False)
        # Nothing is asked of the page: it hears that the network is back.
        wait_for(
            lambda: page.run("async () => (await sender.spent()).streams.length && sender.log.at(-1).what") == "sent"
        )
        wait_for(lambda: deliver(page)["waiting"] == 0)
        assert not collector.ended()
    assert [len(set(measured.site.sealed(stream))) for stream in ("reports", "discovery")] == [4, 4]


def test_a_killed_tab_loses_nothing_acknowledged_and_nothing_counts_twice(browser: Chromium, tmp_path: Path) -> None:
    wait_for(lambda: f"{MACHINE.now():%H:%M}" < "23:50", 660.0, "a new day")
    measured, made = prepared(tmp_path, cap=1000), 0
    with measured.open():
        page = browser.device(measured.pages.origin)
        for _ in range(4):
            person(page, measured.where)
            page.run(
                """() => {
                  globalThis.made = 0;
                  const pause = () => new Promise((resolve) => setTimeout(resolve, 20));
                  const make = async () => { for (;;) { await sender.report("feature-0"); made += 1; await pause(); } };
                  const send = async () => { for (;;) await sender.deliver(true); };
                  make().catch(() => 0);
                  send().catch(() => 0);
                }"""
            )
            wait_for(lambda page=page: page.run("() => globalThis.made") >= 20)
            made += page.run("() => globalThis.made")
            successor = page.another(measured.pages.origin)
            page.crash()
            page = successor
        person(page, measured.where)
        # What a killed tab was sending stays claimed for five minutes: let them pass. On the next day the collector
        # would have the reports wait for its window.
        page.run("() => { const now = Date.now; Date.now = () => now() + 301_000; }")
        wait_for(lambda: deliver(page)["waiting"] == 0)
        charged = {part["stream"]: part["reports"] for part in page.run("() => sender.spent()")["streams"]}
    arrived = {stream: measured.site.sealed(stream) for stream in charged}
    distinct = {stream: len(set(sealed)) for stream, sealed in arrived.items()}
    print(f"\n4 tabs killed: {made} acknowledged, {charged} charged, {distinct} arrived and some of them twice")
    for stream, number in distinct.items():
        # A tab that was killed between charging a report and queueing it had acknowledged nothing.
        assert made <= number <= charged[stream]
    assert summary(measured.close_window())["accepted"] == distinct["reports"]


@pytest.mark.parametrize(
    ("signer", "of_policy", "says"),
    [
        ("", {}, "must be signed by the operator"),
        ("stranger", {}, "sign"),
        ("operator", {"max_epsilon": 2.0}, "raise max_epsilon"),
        ("operator", {"min_batch": 1000}, "minimum batch"),
    ],
    ids=["unsigned", "signed by a stranger", "more epsilon", "a smaller batch"],
)
def test_nothing_is_sent_for_a_campaign_that_the_policy_refuses(
    browser: Chromium, tmp_path: Path, signer: str, of_policy: dict[str, Any], says: str
) -> None:
    measured = prepared(tmp_path, signer=signer, of_policy=of_policy)
    with measured.open():
        page = browser.device(measured.pages.origin)
        person(page, measured.where, {"strict": False})
        became, log = page.run("async (value) => [await sender.report(value), sender.log]", WORDS[0])
        deliver(page)
    assert became == "untrusted"
    said = [event["reason"] for event in log if event["what"] == "not_queued"]
    assert len(said) == 1
    assert says in said[0], said
    assert browser.posts() == []
    assert measured.site.sealed("reports") == measured.site.sealed("discovery") == []


def test_the_example_page_counts_a_click_shows_its_cost_and_can_be_switched_off(
    browser: Chromium, tmp_path: Path
) -> None:
    measured = prepared(tmp_path, page=EXAMPLE, cap=10)
    click = "(name) => document.querySelector(`[data-feature=${name}]`).click()"
    switch = "() => document.getElementById('counting').click()"
    spent = "() => document.getElementById('spent').innerText"
    with measured.open():
        measured.pages.made["/settings.json"] = json.dumps(
            {**measured.where, "windowSeconds": 60, "factor": 2.8}
        ).encode()
        page = browser.device(measured.pages.origin, viewport={"width": 380, "height": 800})
        assert page.run("() => document.documentElement.scrollWidth") == 380
        wait_for(lambda: "by a factor of 2.8 at most" in page.run("() => document.body.innerText"))
        page.run(click, "sort")
        assert page.run("() => document.getElementById('text').value.split('\\n')[0]") == "apples"
        wait_for(lambda: "made 1 blurred report" in page.run(spent))
        wait_for(lambda: len(browser.posts()) > 0)
        page.run(switch)
        wait_for(lambda: "opted out" in page.run(spent))
        browser.posts()
        page.run(click, "reverse")
        page.run("() => new Promise((resolve) => setTimeout(resolve, 3000))")
        assert "made 1 blurred report" in page.run(spent)
        assert browser.posts() == []
