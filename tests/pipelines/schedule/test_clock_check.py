"""The one rule for clocks, as a table: what tells the time, whether the clock is far ahead of it, and the present."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from hushcount.collection.manifests import Manifest
from hushcount.collection.tilings import Tiling
from hushcount.collection.windows import Window
from pipelines.deployment.settings import Deployment
from pipelines.ledger.file import opened, put_newest, read_newest, writing
from pipelines.log import entries
from pipelines.log.facts import Times
from pipelines.log.fold import Fold
from pipelines.log.log import Logs
from pipelines.schedule.clock_check import Told, settled, told_time
from pipelines.windows.calendar import Calendar
from pipelines.windows.closing import Listed, Rule, next_window
from tests.support.clocks import stopped
from tests.support.collecting import DAY, START, window_name
from tests.support.stub_store import StubStore

MINUTE = 1 / 1440
pytestmark = pytest.mark.usefixtures("store")
BOUND = 4 + 1 / 24
"""Days: two windows, grace and patience."""
FORTY = tuple(40 + number * MINUTE / 60 for number in range(40))
"""When a collector whose clock jumped by weeks wrote an empty manifest for each window that it passed over."""


def at(day: float) -> datetime:
    return START + day * DAY


def listed(written: Sequence[float]) -> list[Listed]:
    """Return empty manifests of one window after another, and written at these moments."""
    first = 40 - len(written)
    found = []
    for number, day in enumerate(written):
        window = Window(at(first + number), at(first + number + 1))
        manifest = Manifest(
            collector="fast", campaign="words", epoch=1, fingerprint="0" * 64, window=window.name, seconds=86_400,
            authentication="client-token", segments={}, refused={},
        )  # fmt: skip
        found.append(Listed(f"words/000001-0/{window.name}/fast.manifest.json", at(day), manifest))
    return found


def deployment(folder: Path, store: str = "store") -> Deployment:
    (folder / "deployment.toml").write_text(
        f'store = "{store}"\nledger = "ledger.db"\n[windows]\nlength = "1d"\ngrace = "2d"\npatience = "1h"\n'
    )
    return Deployment.read(folder / "deployment.toml")


@dataclass(frozen=True)
class Case:
    """Days from START on; `present`: that of `now` by default; `store`: of objects, and its clock."""

    name: str
    now: float
    trusted: float | None = 3
    written: tuple[float, ...] = ()
    ledger: float | None = None
    store: float | None = None
    far: bool = False
    present: float | None = None


CASES = (
    Case("nothing else tells the time", 400, trusted=None),
    Case("the last entry is new", 3.2),
    Case("idle for less than the bound", 3 + BOUND),
    Case("idle for longer, or a jump", 3 + BOUND + MINUTE, far=True, present=3),
    Case("a jump", 403, far=True, present=3),
    Case("collectors went on while no run looked", 20, written=tuple(range(4, 20)), present=20),
    Case("forty manifests of a fast clock, and the run has it too", 40.1, written=FORTY, far=True, present=3),
    Case("forty manifests of a fast clock, and the run's is right", 3.1, written=FORTY),
    Case("forty after a right one", 40.1, written=(4, *FORTY), far=True, present=4),
    Case("forty before any entry", 40.1, trusted=None, written=(0, *FORTY), far=True, present=0),
    Case("forty, and reports among them", 40.1, written=(*FORTY, 40.05), far=True, present=3),
    # Nothing is lost: there was nothing before.
    Case("forty are all that there is", 40.1, trusted=None, written=FORTY),
    Case("the ledger was used while no run looked", 9, ledger=6),
    Case("the ledger was used by the fast clock", 402.1, ledger=402, far=True, present=3),
    Case("the clock went back", 1),
    Case("the store agrees after an idle year", 403, store=403.001),
    Case("the store does not agree", 403, store=3.1, far=True, present=3.1),
    Case("the store does not agree within the bound", 5, store=3.1, far=True, present=3.1),
    Case("the store does not agree with an entry and manifests", 403, 403, (402.0,), 402, 3.1, True, 3.1),
    Case("a little ahead of the store", 3.1 + 4 * MINUTE, store=3.1, present=3.1),
    Case("further ahead of the store", 3.1 + 6 * MINUTE, store=3.1, far=True, present=3.1),
    Case("behind the store", 1, store=3.1),
    Case("the first look at a store", 0.5, trusted=None, store=0.5),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_rule(case: Case, tmp_path: Path) -> None:
    site = deployment(tmp_path, "store" if case.store is None else "stub://b/store")
    if case.store is not None:
        moment = at(case.store).timestamp()
        StubStore.clock = lambda: moment
    if case.ledger is not None:
        assert site.ledger is not None
        with opened(site.ledger, create=True) as connection, writing(connection):
            put_newest(connection, at(case.ledger))
    folds = [Fold("words", latest=None if case.trusted is None else at(case.trusted)), Fold("new")]
    time = told_time(site, folds, listed(case.written), at(case.now))
    assert time.problems == ()
    assert time.clock.is_far == case.far
    wanted = case.now if case.present is None else case.present
    assert abs(time.present - at(wanted)) < timedelta(seconds=1)
    assert StubStore.named == []


def test_a_fast_clock_closes_none_of_its_windows() -> None:
    fast = listed(FORTY)
    rule = Rule(Calendar((Times(None, Tiling(DAY), 2 * DAY),)), DAY / 24, frozenset({"fast"}), {})
    assert next_window(None, (), fast, rule, at(40.1)) is not None
    assert (
        next_window(at(3), (), fast, rule, at(3)) is None or next_window(at(3), (), fast, rule, at(3)) == fast[2].window
    )


def test_what_is_said(tmp_path: Path) -> None:
    site = deployment(tmp_path)
    said = told_time(site, [Fold("words", latest=at(3))], listed(FORTY), at(40.1)).says
    assert "37 d 2 h ahead of all else that tells the time: the log" in said
    assert "after a gap, so that it proves nothing: the newest manifest" in said
    assert said.endswith("confirm it once: hushcount run --clock-is-right")
    StubStore.clock = lambda: at(3).timestamp()
    said = told_time(deployment(tmp_path, "stub://b/store"), [], [], at(40)).says
    assert f"37 d ahead of the store's own clock, {at(3):%Y-%m-%d} 00:00 UTC: nothing was deleted" in said


def test_a_store_that_does_not_answer_is_said_and_the_rule_of_disks_holds(tmp_path: Path) -> None:
    def away() -> float:
        raise RuntimeError("no answer")

    StubStore.clock = away
    time = told_time(deployment(tmp_path, "stub://b/store"), [Fold("words", latest=at(3))], [], at(403))
    assert time.problems == ("store: cannot reach stub://b/store/log: no answer",)
    assert (time.clock.is_far, time.present) == (True, at(3))


# What the logs say of the clock.


@dataclass
class World:
    """The logs of a deployment with one campaign, which a run looks at now and then."""

    deployment: Deployment
    logs: Logs

    def fold(self) -> Fold:
        return self.logs.read("words")

    def look(self, day: float, *, confirmed: bool = False, logs: Logs | None = None) -> Told:
        time = told_time(self.deployment, [self.fold()], [], at(day))
        return settled(self.deployment, logs or self.logs, [self.fold()], time, stopped(at(day)), confirmed=confirmed)

    def decide(self, day: float) -> None:
        """Decide something at a moment, in the log of each party."""
        for party in self.deployment.file.parties:
            self.logs.of(party, "words").decide(lambda _: entries.Deleted(folder="shuffled"), at(day))

    def numbers(self) -> list[int]:
        self.fold()
        return [self.logs.of(party, "words").head.number for party in self.deployment.file.parties]


@pytest.fixture
def world(tmp_path: Path) -> World:
    site = deployment(tmp_path)
    return World(site, Logs(site))


def test_a_look_writes_nothing_where_nothing_was_decided(world: World) -> None:
    for day in (0, 10, 400):
        assert not world.look(day).clock.is_far
    assert world.numbers() == [0, 0, 0]
    assert not os.path.exists(world.deployment.folder("log"))


def test_a_month_in_which_nothing_comes_leaves_no_gap_and_few_entries(world: World) -> None:
    world.decide(0)
    before = world.numbers()
    for hour in range(60 * 24):
        time = world.look(hour / 24)
        assert not time.clock.is_far
        assert time.present == at(hour / 24)
    assert 1 <= world.numbers()[0] - before[0] <= 60 / (BOUND / 2)
    assert world.numbers()[1:] == before[1:]
    assert world.look(460).clock.is_far


def test_of_several_runs_one_notes_that_the_clock_is_right(world: World) -> None:
    world.decide(0)
    before = world.numbers()[0]
    time = told_time(world.deployment, [world.fold()], [], at(3))
    old = [world.fold()]
    for _ in range(3):
        settled(world.deployment, Logs(world.deployment), old, time, stopped(at(3)), confirmed=False)
    assert world.numbers()[0] == before + 1


def test_looks_by_a_clock_that_is_far_ahead_move_nothing(world: World) -> None:
    world.decide(3)
    before = world.numbers()
    for minute in range(100):
        assert world.look(403 + minute * MINUTE).present == at(3)
    assert world.numbers() == before


def test_a_clock_is_confirmed_once_for_the_run_and_the_ledger(world: World) -> None:
    ledger = world.deployment.ledger
    assert ledger is not None
    with opened(ledger, create=True) as connection, writing(connection):
        put_newest(connection, at(3))
    world.decide(3)
    assert world.look(403).clock.is_far
    sure = world.look(403, confirmed=True)
    assert (sure.clock.is_far, sure.present) == (False, at(403))
    with opened(ledger) as connection:
        assert read_newest(connection) == at(403)
    confirmed = world.numbers()
    # In the log of each party, and once.
    assert confirmed == [3, 3, 3]
    assert not world.look(403.1).clock.is_far
    assert not world.look(403.2, confirmed=True).clock.is_far
    assert world.numbers() == confirmed


def test_a_clock_is_confirmed_where_no_log_has_begun(world: World) -> None:
    def look(confirmed: bool) -> Told:
        time = told_time(world.deployment, [world.fold()], listed((0, *FORTY)), at(40.1))
        return settled(world.deployment, world.logs, [world.fold()], time, stopped(at(40.1)), confirmed=confirmed)

    assert look(confirmed=False).clock.is_far
    assert not look(confirmed=True).clock.is_far
    assert world.numbers() == [2, 0, 0]
    assert not look(confirmed=False).clock.is_far


def test_who_began_with_a_wrong_clock_confirms_the_right_one(world: World) -> None:
    """Else it would be believed again whenever it is as wrong."""
    world.decide(403)
    assert not world.look(3).clock.is_far
    assert not world.look(403).clock.is_far
    world.look(3, confirmed=True)
    assert world.fold().latest == at(3)
    assert world.look(403).clock.is_far
    assert not world.look(3.1).clock.is_far


def test_an_alert_by_a_clock_that_is_far_ahead_proves_no_time(world: World) -> None:
    told = entries.Told(window=window_name(0), up={"a": True})
    world.logs.of("analyzer", "words").decide(lambda _: told, at(403))
    assert world.fold().latest is None
    world.decide(3)
    assert world.look(403).clock.is_far
