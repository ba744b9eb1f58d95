"""What the collectors take of a client's stream in one window is at most the cap, under all tokens, whatever happens.

Random histories: the clock of the device is set by seconds up to years, in both directions, requests and answers are
lost, processes are killed, two processes report at the same moment, and two collectors have clocks that differ.
"""

from __future__ import annotations

import random
from collections import defaultdict
from datetime import datetime, timezone
from email.utils import formatdate
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest

from hushcount.allowance import OverCap
from hushcount.budget import Budget
from hushcount.clock import Clock
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import window_start
from hushcount.delivery import delivering, posting
from hushcount.delivery.arrivals import Arrivals
from hushcount.delivery.delivering import Deliverer
from hushcount.delivery.events import Delivery
from hushcount.delivery.exchange import NoAnswer, Reply
from hushcount.delivery.making import Made
from hushcount.delivery.passes import Passes
from hushcount.delivery.queue import Queue, database
from hushcount.delivery.site import Site
from hushcount.delivery.waiting import Claimed, Waiting
from hushcount.report_making import Measurement
from hushcount.window_starts import Starts
from tests.hushcount.delivery.fake_collector import campaign

START = 1_795_392_000.0
DAY = 86_400.0
DAYS = Starts(86_400)
BERLIN = [
    int(start.timestamp())
    for start in Tiling("day", "Europe/Berlin").begins(
        datetime(2026, 11, 20, tzinfo=timezone.utc), datetime(2027, 5, 1, tzinfo=timezone.utc)
    )
]
LISTED = Starts(86_400, tuple(BERLIN))
"""Of the collectors. A client may know fewer of them."""
PROBLEM = {"content-type": "application/problem+json"}
SKEWS = (0.0, 3.0)
"""By how many seconds the clocks of the two collectors are ahead."""
LENGTH = 8
SITE = Site("https://collector.example")
FATES = (
    *5 * ("answered",),
    "answer lost",
    "answer lost",
    "request lost",
    "killed",
    "refused",
    "page",
    "too long",
    "busy",
    "closed",
)
JUMPS = (1.0, 50.0, 301.0, DAY / 2, DAY, 2 * DAY, 30 * DAY, 400 * DAY, 20_000 * DAY)
WAITS = (1.0, 301.0, DAY / 4, DAY / 2, DAY - 100.0)


class Killed(BaseException):
    """The process ends, wherever it is."""


class History:
    """A client of two processes that share a queue, and its two collectors; `chance` says what happens."""

    def __init__(
        self,
        chance: random.Random,
        refuses: bool = True,
        queue: type[Queue] = Queue,
        windows: Starts = DAYS,
        known: Starts = DAYS,
    ) -> None:
        self.chance, self.refuses, self.windows = chance, refuses, windows
        self.now, self.wrong, self.cap = START, 0.0, chance.randint(1, 3)
        self.number = self.epoch = self.flying = 0
        self.campaigns = [campaign(shuffle={"cap": self.cap, "minimum_batch": 10, "delta": 1e-7})]
        self.campaigns.append(campaign(self.campaigns[0], shuffle=self.campaigns[0].shuffle))
        tables, clock = queue(database(None), "words", lease=300.0), Clock(lambda: self.now + self.wrong)
        self.arrivals = Arrivals(tables, lambda: known, clock)
        parts = {
            "present": SimpleNamespace(refreshed=self.refreshed),
            "budget": SimpleNamespace(opted_out=False),
            "maker": SimpleNamespace(made=self.made_of),
            "asker": SimpleNamespace(ask=lambda _: {}, evaluations=SimpleNamespace(add=lambda _: None)),
        }
        parts["passes"] = Passes(None, None, tables, self.arrivals, Budget(), lambda *_: None, clock)
        self.deliverer = Deliverer(SITE, tables, self.arrivals, **cast(Any, parts), tell=lambda *_: None, clock=clock)
        self.taken = defaultdict[float, set[bytes]](set)
        """The different reports of each window, by the clock of the collector that took them."""
        self.tokens = defaultdict[bytes, set[str]](set)

    def refreshed(self, sends: bool = False, anyway: bool = False) -> Any:
        """Return the client, and sometimes hear the time of a collector with its campaign file."""
        if sends or anyway or self.chance.random() < 0.1:
            self.arrivals.heard(self.now + self.chance.choice(SKEWS))
        return SimpleNamespace(campaign=self.campaigns[self.epoch])

    def report_of(self, measurement: Measurement | None) -> Waiting:
        self.number += 1
        named = self.campaigns[self.epoch].fingerprint.hex()
        return Waiting(named, "reports", b"%08d" % self.number, measurement, collector="one", cap=self.cap)

    def made_of(self, _client: object, _stream: str, measurement: Measurement, keep_value: bool) -> Made:
        return Made(self.report_of(measurement))

    def report(self) -> None:
        """Report in one process, or in both at the same moment: both see room before either queues."""
        free = 0
        for _ in range(self.chance.randint(1, 2)):
            try:
                self.arrivals.require_room(self.campaigns[self.epoch], ["reports"])
                free += 1
            except OverCap:
                pass
        value = Measurement("x") if self.chance.random() < 0.5 else None
        self.arrivals.queue.put([self.report_of(value) for _ in range(free)])

    def deliver(self) -> Delivery | None:
        try:
            return self.deliverer.deliver(early=self.chance.random() < 0.3)
        except Killed:
            return None

    def post(self, _site: Site, path: str, body: bytes, headers: dict[str, str]) -> Reply:
        """Be the network and the collectors."""
        fate, skew = self.chance.choice(FATES), self.chance.choice(SKEWS)
        if self.flying == 0 and self.chance.random() < 0.2:
            # The other process delivers while this request is under way.
            self.flying += 1
            self.deliver()
            self.flying -= 1
        self.now += self.chance.choice((0.0, 1.0, 60.0))
        reply = self.answer(fate, path, body, headers, self.now + skew)
        self.now += self.chance.choice((0.0, 1.0, 60.0))
        self.set_clock(0.1)
        self.arrivals.queue.note(posting.COLLECTOR, "0 0")
        if fate == "killed":
            raise Killed
        if reply is None:
            raise NoAnswer(SITE, "unreachable")
        return reply

    def answer(  # noqa: PLR0911  # one for each fate
        self, fate: str, path: str, body: bytes, headers: dict[str, str], now: float
    ) -> Reply | None:
        reports = {body[at : at + LENGTH] for at in range(0, len(body), LENGTH)}
        for report in reports:
            self.tokens[report].add(headers["Client-Token"])
        dated = {**PROBLEM, "date": formatdate(int(now), usegmt=True)}
        if fate == "request lost" or (fate == "killed" and self.chance.random() < 0.5):
            return None
        if fate == "page":
            return Reply(403, {}, b"<html>")
        if fate == "too long":
            return Reply(413, {}, b"")
        begins = window_start(parse_qs(urlsplit(path).query)["window"][0]).timestamp()
        if begins > now and self.refuses:
            return Reply(425, dated, b'{"type": "urn:hushcount:problem:window_not_begun"}')
        if fate == "busy":
            return Reply(503, dated, b'{"type": "urn:hushcount:problem:queue_full"}')
        if fate == "refused":
            return Reply(400, dated, b'{"type": "urn:hushcount:problem:wrong_length"}')
        if fate == "closed":
            self.epoch = 1
            return Reply(409, dated, b'{"type": "urn:hushcount:problem:epoch_closed"}')
        self.taken[self.windows.at(now)] |= reports
        return Reply(202, dated, b"") if fate == "answered" else None

    def set_clock(self, often: float) -> None:
        if self.chance.random() < often:
            self.wrong = self.chance.choice((0.0, 0.0, self.wrong)) + self.chance.choice(
                (-1, 0, 0, 1)
            ) * self.chance.choice(JUMPS)

    def step(self) -> None:
        self.set_clock(0.1)
        self.chance.choice((self.report, self.report, self.deliver, self.deliver, self.wait))()

    def wait(self) -> None:
        self.now += self.chance.choice(WAITS)

    def holds(self) -> bool:
        return all(len(reports) <= self.cap for reports in self.taken.values())


def history(monkeypatch: pytest.MonkeyPatch, seed: int, steps: int = 60, **options: Any) -> History:
    """Return what became of a client after some steps."""
    one = History(random.Random(seed), **options)  # of a test
    monkeypatch.setattr(posting, "post_octets", one.post)
    monkeypatch.setattr(delivering, "MOST_REFUSALS", 2)
    for _ in range(steps):
        one.step()
    return one


class Forgetful(Queue):
    """A queue in which reports that wait for another attempt have no places."""

    def claim(self, *given: Any, **named: Any) -> Claimed | None:
        with self.database.change() as tables:
            tables.execute("UPDATE rows SET is_tried = 0")
        return super().claim(*given, **named)


@pytest.mark.parametrize(
    ("windows", "known"),
    [(DAYS, DAYS), (LISTED, LISTED), (LISTED, Starts(86_400, LISTED.listed[:8]))],
    ids=["counted from 1970", "listed", "listed for some days"],
)
def test_whatever_clocks_and_networks_do_at_most_the_cap_is_taken_in_a_window(
    monkeypatch: pytest.MonkeyPatch, windows: Starts, known: Starts
) -> None:
    taken = 0
    for seed in range(200):
        one = history(monkeypatch, seed, windows=windows, known=known)
        assert one.holds(), (seed, one.cap, one.taken)
        assert all(len(tokens) == 1 for tokens in one.tokens.values()), "the same bytes, the same token"
        taken += sum(map(len, one.taken.values()))
    assert taken > 500, "the search is not idle"


def test_the_search_sees_a_collector_that_takes_reports_before_their_window(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(not history(monkeypatch, seed, refuses=False).holds() for seed in range(200))


def test_the_search_sees_a_client_that_counts_other_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(not history(monkeypatch, seed, windows=LISTED).holds() for seed in range(200))


def test_the_search_sees_a_client_that_keeps_no_place_for_what_may_arrive(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(not history(monkeypatch, seed, queue=Forgetful).holds() for seed in range(200))
