"""The outbox: one message for each fact, none lost by a kill or by a receiver that is away, and a loud end."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest

from pipelines.alerts import outbox
from pipelines.alerts.alert import Alert
from pipelines.alerts.delivering import Delivered, deliver
from pipelines.alerts.sending import Undelivered, Webhook
from pipelines.alerts.signing import Secret
from pipelines.deployment.alerting import AlertsPart, site_of
from pipelines.deployment.settings import Deployment
from pipelines.files import storage
from pipelines.log.entries import Noted, Over
from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from tests.pipelines.alerts.receiver import KEY, Receiver, is_signed, receiving

NOW = datetime(2026, 11, 1, tzinfo=timezone.utc)
PART = AlertsPart(command=("tell",), timeout="1s", give_up_after="1d")
CAMPAIGN = "words"


def alert(about: str = "alpha", fact: str = "rose") -> Alert:
    return Alert("change", CAMPAIGN, about, fact, f"{about} {fact}")


def deployment_in(root: Path) -> Deployment:
    path = root / "deployment.toml"
    path.write_text('store = "store"\n[windows]\nlength = "1d"\ngrace = "2d"\n')
    (root / "store").mkdir(exist_ok=True)
    return Deployment.read(path)


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(deployment_in(tmp_path))


def fold_in(logs: Logs) -> Fold:
    return logs.shared(CAMPAIGN).read()


def entries_in(root: Path) -> int:
    return len([*(root / "store" / "log").glob(f"*/{CAMPAIGN}/000001/*.json")])


def noted(logs: Logs, *alerts: Alert, unjudged: set[tuple[str, str]] | None = None, hours: float = 0.0) -> list[str]:
    """Put what is to be put after a look, and return the ids of what is news."""
    now = NOW + timedelta(hours=hours)
    return put(logs, outbox.notes(fold_in(logs), alerts, unjudged or set(), now), now)


def put(logs: Logs, notes: list[Noted | Over], now: datetime = NOW) -> list[str]:
    done = [logs.decide(CAMPAIGN, partial(outbox.still, note), now) for note in notes]
    return [one.decision.id for one in done if one is not None and isinstance(one.decision, Noted)]


def sent(logs: Logs, place: Place, hours: float = 0.0) -> Delivered:
    return deliver(logs, [fold_in(logs)], place, PART, NOW + timedelta(hours=hours))


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


def test_a_fact_is_told_once_and_again_only_if_it_changed_or_ended(logs: Logs) -> None:
    rose, fell, other = alert(), alert(fact="fell"), alert("beta")
    first = noted(logs, rose, other)
    assert first == [rose.id(0), other.id(0)]
    assert noted(logs, Alert("change", "words", "alpha", "rose", "in other words"), other) == []
    assert noted(logs, fell, other) == [fell.id(1)]
    assert noted(logs, rose, other) == [rose.id(2)]
    assert noted(logs, other) == []
    assert noted(logs, other, rose) == [rose.id(3)]
    place = Place()
    sent(logs, place)
    assert sorted(id for id, _ in place.got) == sorted([*first, fell.id(1), rose.id(2), rose.id(3)])
    assert sent(logs, place) == Delivered()


def test_what_could_not_be_looked_at_goes_on_standing(logs: Logs) -> None:
    noted(logs, alert())
    assert noted(logs, unjudged={("change", "words")}) == []
    assert noted(logs, alert()) == []
    # Of another campaign nothing was missed.
    noted(logs, unjudged={("change", "other")})
    assert noted(logs, alert()) == [alert().id(1)]


def test_a_place_that_is_away_gets_each_later_with_the_same_id_and_body(logs: Logs) -> None:
    noted(logs, *(alert(f"item {number}") for number in range(5)))
    place = Place(None, REFUSED, DOWN)
    assert len(sent(logs, place).sent) == 1
    # After an attempt without an answer nothing more was tried.
    assert len(place.got) == 3
    assert outbox.failing([fold_in(logs)])[0] == 2
    assert len(sent(logs, place).sent) == 2
    assert sent(logs, place, 0.001) == Delivered()
    assert len(sent(logs, place, 0.01).sent) == 2
    bodies = dict(place.got)
    assert len(bodies) == 5
    assert all(bodies[id] == body for id, body in place.got)


def test_waits_become_longer_and_in_the_end_it_is_given_up_loudly(logs: Logs, tmp_path: Path) -> None:
    (id,) = noted(logs, alert())
    place = Place(*[DOWN] * 1000)
    tried, said, minute = [], [], 0.0
    while not said:
        assert sent(logs, place, (minute - 0.02) / 60) == Delivered()
        before = entries_in(tmp_path)
        said = list(sent(logs, place, minute / 60).problems)
        assert entries_in(tmp_path) == before + 1
        tried.append(minute)
        assert len(place.got) == len(tried)
        due = fold_in(logs).alerts[id].next_at
        minute = minute if due is None else (due - NOW) / timedelta(minutes=1)
    pauses = [later - earlier for earlier, later in itertools.pairwise(tried)]
    assert pauses[:4] == [0.5, 1.0, 2.0, 4.0]
    assert max(pauses) == 60.0
    assert 24 * 60 <= tried[-1] <= 25 * 60
    assert said == [f"alert {id} was given up after {len(tried)} attempts: it is away"]
    after = NOW + timedelta(minutes=minute)
    given_up = partial(outbox.given_up, [fold_in(logs)])
    assert outbox.failing([fold_in(logs)]) == (0, "")
    assert given_up(after) == (1, "it is away")
    # As long as it stands it is said, and a week longer.
    assert given_up(after + timedelta(days=30))[0] == 1
    noted(logs, hours=24)
    given_up = partial(outbox.given_up, [fold_in(logs)])
    assert given_up(after + timedelta(days=6))[0] == 1
    assert given_up(after + timedelta(days=8))[0] == 0
    assert outbox.numbers([fold_in(logs)]) == (0, 0)


def test_a_clock_that_jumps_ahead_gives_nothing_up(logs: Logs) -> None:
    noted(logs, alert())
    assert sent(logs, Place(DOWN), 24 * 400) == Delivered()
    assert sent(logs, Place(), 24 * 401).sent


def test_a_slow_place_delays_a_run_by_a_bounded_time(logs: Logs) -> None:
    noted(logs, *(alert(f"item {number}") for number in range(100)))
    spent = [0.0]

    class Slow(Place):
        def send(self, id: str, body: bytes) -> None:
            super().send(id, body)
            spent[0] += 0.9

    place = Slow()
    deliver(logs, [fold_in(logs)], place, PART, NOW, lambda: spent[0])
    assert spent[0] <= 3.0
    assert len(place.got) == 3


def test_a_look_without_news_writes_nothing(tmp_path: Path, logs: Logs) -> None:
    noted(logs)
    assert sent(logs, Place()) == Delivered()
    assert not (tmp_path / "store" / "log").exists()
    noted(logs, alert())
    sent(logs, Place())
    before = entries_in(tmp_path)
    noted(logs, alert(), hours=1)
    sent(logs, Place(), 1)
    assert entries_in(tmp_path) == before


def test_two_runs_at_once_note_a_fact_once(tmp_path: Path) -> None:
    first, second = (Logs(deployment_in(tmp_path)) for _ in range(2))
    noted(first, alert(), alert("beta"))
    looks = [outbox.notes(fold_in(logs), [alert(fact="fell"), alert("beta")], (), NOW) for logs in (first, second)]
    assert put(first, looks[0]) == [alert(fact="fell").id(1)]
    before = entries_in(tmp_path)
    assert put(second, looks[1]) == []
    assert entries_in(tmp_path) == before
    # Nor does an older look bring back what ended since.
    older = outbox.notes(fold_in(second), [alert("gamma")], {("change", CAMPAIGN)}, NOW)
    put(first, older)
    noted(first, alert(fact="fell"), alert("beta"))
    assert put(second, older) == []
    standing = {one.id for one in fold_in(second).alerts.values() if one.standing}
    assert standing == {alert(fact="fell").id(1), alert("beta").id(0)}


def test_of_two_runs_that_send_at_once_one_records_a_failure_and_an_answer_wins(tmp_path: Path) -> None:
    first, second = (Logs(deployment_in(tmp_path)) for _ in range(2))
    (id,) = noted(first, alert())

    class Both(Place):
        """While one run waits for the answer, another one tries as well."""

        def __init__(self, answer: Undelivered | None, other: Undelivered | None) -> None:
            super().__init__(answer)
            self.other = Place(other)

        def send(self, id: str, body: bytes) -> None:
            sent(second, self.other, hours)
            super().send(id, body)

    hours = 0.0
    before = entries_in(tmp_path)
    sent(first, Both(DOWN, DOWN))
    assert fold_in(first).alerts[id].attempts == 1
    assert entries_in(tmp_path) == before + 1
    hours = 1.0
    both = Both(None, DOWN)
    assert sent(first, both, hours).sent == (id,)
    assert (len(both.got), len(both.other.got)) == (1, 1)
    assert fold_in(second).alerts[id].state == "sent"
    assert sent(second, both.other, 2.0) == Delivered()
    assert len(both.other.got) == 1
    # Two answers are one entry.
    noted(first, alert("beta"))
    before = entries_in(tmp_path)
    sent(first, Both(None, None))
    assert entries_in(tmp_path) == before + 1


def test_what_another_run_has_tried_meanwhile_is_not_sent(tmp_path: Path) -> None:
    first, second = (Logs(deployment_in(tmp_path)) for _ in range(2))
    noted(first, alert())
    seen, place = fold_in(second), Place()
    sent(first, place)
    assert deliver(second, [seen], place, PART, NOW) == Delivered()
    assert len(place.got) == 1


def test_alerts_prove_no_time_and_keep_no_body_once_they_are_sent(logs: Logs) -> None:
    ahead = 24 * 400
    (id,) = noted(logs, alert(), hours=ahead)
    opened = fold_in(logs).latest
    sent(logs, Place(DOWN), ahead)
    assert fold_in(logs).alerts[id].body
    sent(logs, Place(), ahead + 1)
    noted(logs, hours=ahead + 1)
    assert fold_in(logs).latest == opened
    assert fold_in(logs).alerts[id].body == ""


def test_a_campaign_whose_log_is_damaged_holds_up_no_other(tmp_path: Path, logs: Logs) -> None:
    other = Alert("change", "other", "alpha", "rose", "alpha rose")
    noted(logs, alert())
    for note in outbox.notes(Fold("other"), [other], (), NOW):
        logs.decide("other", partial(outbox.still, note), NOW)
    folds = [logs.shared(name).fold for name in (CAMPAIGN, "other")]
    path = tmp_path / "store" / "log" / "shuffler" / CAMPAIGN / "000001" / "0000000003.json"
    path.write_bytes(b"{")
    done = deliver(logs, folds, Place(), PART, NOW)
    assert done.sent == (other.id(0),)
    (problem,) = done.problems
    assert problem.startswith(f"{CAMPAIGN}: its alerts cannot be sent: {path}")
    # A run that goes on finds the log as it is once it is mended.
    path.unlink()
    assert sent(logs, Place()).sent == (alert().id(0),)


def test_a_log_that_is_restored_under_a_watch_loses_no_alert(tmp_path: Path) -> None:
    first = noted(Logs(deployment_in(tmp_path)), alert("beta"))
    shutil.copytree(tmp_path / "store", tmp_path / "yesterday")
    watch = Logs(deployment_in(tmp_path))
    alerts = [alert("beta"), alert(), alert("gamma")]
    later = noted(watch, *alerts)

    class Restoring(Place):
        """While an answer is waited for, the operator restores the store."""

        def send(self, id: str, body: bytes) -> None:
            shutil.rmtree(tmp_path / "store", ignore_errors=True)
            shutil.copytree(tmp_path / "yesterday", tmp_path / "store")
            super().send(id, body)

    # The first that is tried is not in the restored log, nor is a later one.
    assert sorted([*first, *later])[0] in later
    place = Restoring(REFUSED)
    assert sent(watch, place) == Delivered(tuple(first))
    assert len(place.got) == 2
    assert noted(watch, *alerts) == later
    assert sorted(sent(watch, Place(), 1.0).sent) == sorted(later)


class Killed(BaseException):
    """Stands for a kill: nothing of ours catches it."""


@contextmanager
def killed_at(monkeypatch: pytest.MonkeyPatch, place: Place, step: int) -> Iterator[list[int]]:
    """Kill at one step: before or after an entry is put, and before or after something is sent."""
    steps = [0]

    def strike() -> None:
        steps[0] += 1
        if steps[0] == step:
            raise Killed

    plain, plainly_put = place.send, storage.put_absent

    def send(id: str, body: bytes) -> None:
        strike()
        plain(id, body)
        strike()

    def put_absent(path: str, data: bytes) -> bool:
        if f"/{CAMPAIGN}/" not in path:
            # What proves that the store keeps a name for one writer, before the first entry.
            return plainly_put(path, data)
        strike()
        done = plainly_put(path, data)
        strike()
        return done

    with monkeypatch.context() as patched:
        patched.setattr(place, "send", send)
        patched.setattr(storage, "put_absent", put_absent)
        yield steps


def test_a_kill_at_any_step_loses_no_alert_and_makes_no_second_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts = [alert("alpha"), alert("beta")]
    wanted = {one.id(0) for one in alerts}
    step, twice = 0, 0
    while True:
        step += 1
        (root := tmp_path / str(step)).mkdir()
        deployment, place = deployment_in(root), Place()
        with killed_at(monkeypatch, place, step) as steps:
            try:
                noted(Logs(deployment), *alerts)
                sent(Logs(deployment), place)
            except Killed:
                pass
        logs = Logs(deployment)
        noted(logs, *alerts)
        sent(logs, place)
        ids = [id for id, _ in place.got]
        assert set(ids) == wanted
        assert len(ids) <= 3
        twice += len(ids) == 3
        assert len(dict(place.got)) == len(set(place.got)) == 2
        assert sent(logs, place) == Delivered()
        if steps[0] < step:
            break
    # Five entries, the first of which opens the log, and two alerts.
    assert step == 2 * (5 + 2) + 1
    # A kill after the answer and before it is recorded: the id tells the receiver.
    assert twice == 4


CHILD = """
import sys
from pathlib import Path
from tests.pipelines.alerts.test_outbox import send_to
send_to(Path(sys.argv[1]), sys.argv[2])
"""


def send_to(root: Path, address: str) -> None:
    site, path = site_of(address, False, timedelta(seconds=5))
    logs = Logs(deployment_in(root))
    noted(logs, alert())
    deliver(logs, [fold_in(logs)], Webhook(site, path, Secret(KEY)), PART, NOW)


@pytest.mark.long
def test_a_process_that_is_killed_while_the_receiver_reads_sends_it_again(tmp_path: Path) -> None:
    with receiving() as receiver:
        child: list[subprocess.Popen[bytes]] = []

        def kill() -> None:
            os.kill(child[0].pid, signal.SIGKILL)

        receiver.on_request = kill
        words = [sys.executable, "-c", CHILD, str(tmp_path), receiver.address]
        child.append(subprocess.Popen(words))  # noqa: S603  # our own code
        assert child[0].wait(60) == -signal.SIGKILL
        receiver.on_request = lambda: None
        send_to(tmp_path, receiver.address)
        send_to(tmp_path, receiver.address)
        assert_same(receiver, 2)


def assert_same(receiver: Receiver, times: int) -> None:
    assert receiver.ids == [alert().id(0)] * times
    assert len({body for _, body in receiver.got}) == 1
    assert all(is_signed(headers, body) for headers, body in receiver.got)
