"""The outbox: one message for each fact, none lost by a kill or by a receiver that is away, and a loud end."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from sqlalchemy import Engine, event, inspect, select, update

from pipelines.alerts import outbox
from pipelines.alerts.alert import Alert
from pipelines.alerts.delivering import Delivered, deliver
from pipelines.alerts.sending import Undelivered, Webhook
from pipelines.alerts.signing import Secret
from pipelines.batches.state import ALERTS, VERSION, VERSIONS, opened
from pipelines.deployment.alerting import AlertsPart, site_of
from tests.pipelines.alerts.receiver import KEY, Receiver, is_signed, receiving
from tests.support.postgres import postgresql

NOW = datetime(2026, 11, 1, tzinfo=timezone.utc)
PART = AlertsPart(command=("tell",), timeout="1s", give_up_after="1d")


def alert(about: str = "alpha", fact: str = "rose") -> Alert:
    return Alert("change", "words", about, fact, f"{about} {fact}")


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Engine]:
    with opened(str(tmp_path / "state.db")) as state:
        yield state


def noted(state: Engine, *alerts: Alert, unjudged: set[tuple[str, str]] | None = None, hours: float = 0.0) -> list[str]:
    with state.begin() as connection:
        return outbox.note(connection, alerts, unjudged or set(), NOW + timedelta(hours=hours))


def sent(state: Engine, place: Place, hours: float = 0.0) -> Delivered:
    return deliver(state, place, PART, NOW + timedelta(hours=hours))


class Place:
    """A place whose answers are listed; from then on it takes everything."""

    name = "the test"

    def __init__(self, *answers: Undelivered | None) -> None:
        self.answers = list(answers)
        self.got: list[tuple[str, bytes]] = []

    def send(self, id: str, body: bytes) -> None:
        self.got.append((id, body))
        if self.answers and (answer := self.answers.pop(0)) is not None:
            raise answer


DOWN, REFUSED = Undelivered("it is away", down=True), Undelivered("it does not like it", down=False)


def test_a_fact_is_told_once_and_again_only_if_it_changed_or_ended(state: Engine) -> None:
    rose, fell, other = alert(), alert(fact="fell"), alert("beta")
    first = noted(state, rose, other)
    assert first == [rose.id(0), other.id(0)]
    assert noted(state, Alert("change", "words", "alpha", "rose", "in other words"), other) == []
    assert noted(state, fell, other) == [fell.id(1)]
    assert noted(state, rose, other) == [rose.id(2)]
    assert noted(state, other) == []
    assert noted(state, other, rose) == [rose.id(3)]
    place = Place()
    sent(state, place)
    assert sorted(id for id, _ in place.got) == sorted([*first, fell.id(1), rose.id(2), rose.id(3)])
    assert sent(state, place) == Delivered()


def test_what_could_not_be_looked_at_goes_on_standing(state: Engine) -> None:
    noted(state, alert())
    assert noted(state, unjudged={("change", "words")}) == []
    assert noted(state, alert()) == []
    # Of another campaign nothing was missed.
    noted(state, unjudged={("change", "other")})
    assert noted(state, alert()) == [alert().id(1)]


def test_a_place_that_is_away_gets_each_later_with_the_same_id_and_body(state: Engine) -> None:
    noted(state, *(alert(f"item {number}") for number in range(5)))
    place = Place(None, REFUSED, DOWN)
    assert len(sent(state, place).sent) == 1
    # After an attempt without an answer nothing more was tried.
    assert len(place.got) == 3
    with state.begin() as connection:
        assert outbox.failing(connection)[0] == 2
    assert len(sent(state, place).sent) == 2
    assert sent(state, place, 0.001) == Delivered()
    assert len(sent(state, place, 0.01).sent) == 2
    bodies = dict(place.got)
    assert len(bodies) == 5
    assert all(bodies[id] == body for id, body in place.got)


def test_waits_become_longer_and_in_the_end_it_is_given_up_loudly(state: Engine) -> None:
    (id,) = noted(state, alert())
    place = Place(*[DOWN] * 1000)
    tried, said, minute = [], [], 0.0
    while not said:
        assert sent(state, place, (minute - 0.001) / 60) == Delivered()
        said = list(sent(state, place, minute / 60).given_up)
        tried.append(minute)
        assert len(place.got) == len(tried)
        with state.begin() as connection:
            due = datetime.fromisoformat(connection.execute(select(ALERTS.c.next_at)).scalar_one())
        minute = (due - NOW) / timedelta(minutes=1)
    pauses = [later - earlier for earlier, later in itertools.pairwise(tried)]
    assert pauses[:4] == [0.5, 1.0, 2.0, 4.0]
    assert max(pauses) == 60.0
    assert 24 * 60 <= tried[-1] <= 25 * 60
    assert said == [f"alert {id} was given up after {len(tried)} attempts: it is away"]
    with state.begin() as connection:
        after = NOW + timedelta(minutes=minute)
        assert outbox.failing(connection) == (0, "")
        assert outbox.given_up(connection, after) == (1, "it is away")
        # As long as it stands it is said, and a week longer.
        assert outbox.given_up(connection, after + timedelta(days=30))[0] == 1
    noted(state, hours=24)
    with state.begin() as connection:
        assert outbox.given_up(connection, after + timedelta(days=6))[0] == 1
        assert outbox.given_up(connection, after + timedelta(days=8))[0] == 0


def test_a_clock_that_jumps_ahead_gives_nothing_up(state: Engine) -> None:
    noted(state, alert())
    assert sent(state, Place(DOWN), 24 * 400) == Delivered()
    assert sent(state, Place(), 24 * 401).sent


def test_a_slow_place_delays_a_run_by_a_bounded_time(state: Engine) -> None:
    noted(state, *(alert(f"item {number}") for number in range(100)))
    spent = [0.0]

    class Slow(Place):
        def send(self, id: str, body: bytes) -> None:
            super().send(id, body)
            spent[0] += 0.9

    place = Slow()
    deliver(state, place, PART, NOW, lambda: spent[0])
    assert spent[0] <= 3.0
    assert len(place.got) == 3


class Killed(BaseException):
    """Stands for a kill: nothing of ours catches it."""


@contextmanager
def killed_at(state: Engine, place: Place, step: int) -> Iterator[list[int]]:
    """Kill at one step: before a statement, before a commit, or before or after something is sent."""
    steps = [0]

    def strike(*_: object, **__: object) -> None:
        steps[0] += 1
        if steps[0] == step:
            raise Killed

    names = ("before_cursor_execute", "commit")
    for name in names:
        event.listen(state, name, strike)
    plain = place.send

    def send(id: str, body: bytes) -> None:
        strike()
        plain(id, body)
        strike()

    place.send = send  # type: ignore[method-assign]
    try:
        yield steps
    finally:
        place.send = plain  # type: ignore[method-assign]
        for name in names:
            event.remove(state, name, strike)


def test_a_kill_at_any_step_loses_no_alert_and_makes_no_second_id(tmp_path: Path) -> None:
    alerts = [alert("alpha"), alert("beta")]
    wanted = {one.id(0) for one in alerts}
    step, twice = 0, 0
    while True:
        step += 1
        with opened(str(tmp_path / f"{step}.db")) as state:
            place = Place()
            with killed_at(state, place, step) as steps:
                try:
                    noted(state, *alerts)
                    sent(state, place)
                except Killed:
                    pass
            noted(state, *alerts)
            sent(state, place)
            ids = [id for id, _ in place.got]
            assert set(ids) == wanted
            assert len(ids) <= 3
            twice += len(ids) == 3
            assert len(dict(place.got)) == len(set(place.got)) == 2
            assert sent(state, place) == Delivered()
        if steps[0] < step:
            break
    assert step > 15
    # A kill after the answer and before it is recorded: the id tells the receiver.
    assert twice >= 2


CHILD = """
import sys
from datetime import datetime, timezone
from tests.pipelines.alerts.test_outbox import alert, send_to
send_to(sys.argv[1], sys.argv[2])
"""


def send_to(state: str, address: str) -> None:
    site, path = site_of(address, False, timedelta(seconds=5))
    with opened(state) as database:
        noted(database, alert())
        deliver(database, Webhook(site, path, Secret(KEY)), PART, NOW)


@pytest.mark.long
def test_a_process_that_is_killed_while_the_receiver_reads_sends_it_again(tmp_path: Path) -> None:
    state = str(tmp_path / "state.db")
    with receiving() as receiver:
        child: list[subprocess.Popen[bytes]] = []

        def kill() -> None:
            os.kill(child[0].pid, signal.SIGKILL)

        receiver.on_request = kill
        words = [sys.executable, "-c", CHILD, state, receiver.address]
        child.append(subprocess.Popen(words))  # noqa: S603  # our own code
        assert child[0].wait(60) == -signal.SIGKILL
        receiver.on_request = lambda: None
        send_to(state, receiver.address)
        send_to(state, receiver.address)
        assert_same(receiver, 2)


def assert_same(receiver: Receiver, times: int) -> None:
    assert receiver.ids == [alert().id(0)] * times
    assert len({body for _, body in receiver.got}) == 1
    assert all(is_signed(headers, body) for headers, body in receiver.got)


def without_alerts(address: str) -> None:
    """Make of a state what the version before would have."""
    with opened(address) as state, state.begin() as connection:
        ALERTS.drop(connection)
        connection.execute(update(VERSIONS).values(version=VERSION - 1))


def test_a_state_of_the_version_before_takes_alerts(tmp_path: Path) -> None:
    address = str(tmp_path / "state.db")
    without_alerts(address)
    for _ in range(2):
        with opened(address) as state:
            noted(state, alert())
            with state.begin() as connection:
                assert connection.execute(select(VERSIONS.c.version)).scalar_one() == VERSION
                assert connection.execute(select(ALERTS.c.id)).scalars().all() == [alert().id(0)]


@pytest.mark.long
def test_postgresql_keeps_alerts_as_sqlite_does() -> None:
    with postgresql() as address:
        without_alerts(address)
        with opened(address) as state:
            assert ALERTS.name in inspect(state).get_table_names()
            assert noted(state, alert(), alert("größe\u2028")) != []
            assert noted(state, alert(fact="fell")) == [alert(fact="fell").id(1)]
            place = Place(DOWN)
            assert sent(state, place) == Delivered()
            assert len(sent(state, place, 1.0).sent) == 3
            assert sent(state, place, 2.0) == Delivered()
